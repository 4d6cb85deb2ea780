//! Any bytes as what a client of Network Block Device says: the server ends the conversation or answers, and nothing past the drive changes.
#![no_main]

use planewise_guest::contents::Contents;
use planewise_serve::nbd::Export;
use planewise_serve::nbd::negotiation::negotiate;
use planewise_serve::nbd::replies::Replies;
use planewise_serve::nbd::transmission::transmit;
use planewise_serve::order::{Done, Order, Orders};
use planewise_serve::store::Store;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

const BYTES: u64 = 1 << 16;

struct AtOnce;

impl Orders for AtOnce {
    fn submit(&self, _: Instant, _: Order, done: Done) {
        done(true);
    }
}

struct Said<'a>(Cursor<&'a [u8]>);

impl Read for Said<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Said<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let store = Store::new(Contents::new(BYTES / 512).expect("room"), false);
    let export = Export { name: "drive".into(), bytes: BYTES, is_guarded: false, preferred_bytes: 4096 };
    let (ours, mut theirs) = UnixStream::pair().expect("sockets");
    let listener = std::thread::spawn(move || io::copy(&mut theirs, &mut io::sink()));
    let replies = Arc::new(Replies::new(ours.into()));
    let mut said = Said(Cursor::new(bytes));
    if let Ok(Some(agreed)) = negotiate(&mut said, &export) {
        std::thread::scope(|scope| {
            scope.spawn(|| replies.send_what_is_left());
            let _ = transmit(&mut said, agreed, &store, &AtOnce, &replies);
            replies.wait_until_sent();
            replies.finish();
        });
    }
    replies.hang_up();
    drop(replies);
    let _ = listener.join();
});
