//! What clients of Network Block Device get, and that nothing they say ends the server or reaches past the drive.

#[path = "support/client.rs"]
mod client;

use client::*;
use planewise_guest::contents::Contents;
use planewise_serve::nbd::negotiation::negotiate;
use planewise_serve::nbd::replies::Replies;
use planewise_serve::nbd::server::{Place, Server};
use planewise_serve::nbd::transmission::transmit;
use planewise_serve::nbd::{Export, PAYLOAD_MAX};
use planewise_serve::order::{Done, Order, Orders};
use planewise_serve::store::Store;
use proptest::prelude::*;
use std::fs::File;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const BYTES: u64 = 1 << 20;
/// Behind the drive in its file: what must never change.
const BEHIND: [u8; 8192] = [0xa5; 8192];

/// Answers at once, and remembers.
#[derive(Default)]
struct AtOnce(Mutex<Vec<Order>>);

impl Orders for AtOnce {
    fn submit(&self, _: Instant, order: Order, done: Done) {
        self.0.lock().unwrap().push(order);
        done(true);
    }
}

fn store() -> (Arc<Store>, File) {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(&BEHIND, BYTES).unwrap();
    let contents = Contents::in_file(file.try_clone().unwrap(), BYTES / 512).unwrap();
    (Arc::new(Store::new(contents, true)), file)
}

fn export(is_guarded: bool) -> Export {
    Export { name: "drive".into(), bytes: BYTES, is_guarded, preferred_bytes: 4096 }
}

struct Running {
    server: Server,
    path: PathBuf,
    orders: Arc<AtOnce>,
    _directory: tempfile::TempDir,
}

fn serve(is_guarded: bool) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let orders = Arc::new(AtOnce::default());
    let place = Place::Unix(path.clone());
    let server =
        Server::start(&place, export(is_guarded), store().0, orders.clone(), Box::new(|_| {})).unwrap();
    Running { server, path, orders, _directory: directory }
}

#[test]
fn what_is_written_is_read_in_simple_and_in_structured_replies() {
    let running = serve(false);
    for is_structured in [false, true] {
        let mut client = Client::connect(&running.path, is_structured).unwrap();
        assert_eq!((client.bytes, client.flags & 1), (BYTES, 1));
        let data: Vec<u8> = (0..70_000u32).map(|byte| byte as u8 ^ 0x5a).collect();
        assert_eq!(client.ask(0, WRITE, 4096, 70_000, &data).unwrap().0, 0);
        assert_eq!(client.ask(0, READ, 4096, 70_000, b"").unwrap(), (0, data.clone()));
        // Odd bytes, too.
        assert_eq!(client.ask(FORCED, WRITE, 4097, 1, b"x").unwrap().0, 0);
        assert_eq!(client.ask(4, READ, 4096, 3, b"").unwrap(), (0, vec![data[0], b'x', data[2]]));
        assert_eq!(client.ask(0, FLUSH, 0, 0, b"").unwrap().0, 0);
        assert_eq!(client.ask(0, TRIM, 4096, 4096, b"").unwrap().0, 0);
        assert_eq!(client.ask(0, READ, 4096, 4096, b"").unwrap(), (0, vec![0; 4096]));
        assert_eq!(client.ask(0, READ, 8192, 4, b"").unwrap(), (0, data[4096..4100].to_vec()));
        assert_eq!(client.ask(2 | FORCED, WRITE_ZEROES, 8192, 1000, b"").unwrap().0, 0);
        assert_eq!(client.ask(0, READ, 8192, 1000, b"").unwrap(), (0, vec![0; 1000]));
    }
    let orders = running.orders.0.lock().unwrap();
    assert_eq!(orders[0], Order::Write { at: 4096, bytes: 70_000, is_forced: false });
    assert_eq!(orders[2], Order::Write { at: 4097, bytes: 1, is_forced: true });
    assert_eq!(orders.len(), 20);
}

#[test]
fn what_cannot_be_is_answered_with_the_error_that_the_protocol_has_for_it() {
    let running = serve(false);
    let mut client = Client::connect(&running.path, true).unwrap();
    let end = BYTES;
    for (flags, command, at, bytes, data, error) in [
        (0, READ, end, 1, 0, 22),
        (0, READ, end - 1, 2, 0, 22),
        (0, READ, u64::MAX, 1, 0, 22),
        (0, READ, 0, 0, 0, 22),
        (0, READ, 0, PAYLOAD_MAX + 1, 0, 22),
        (0, READ, 0, u32::MAX, 0, 22),
        (0, WRITE, end, 512, 512, 28),
        (0, WRITE, u64::MAX - 511, 512, 512, 28),
        (0, WRITE, 0, 0, 0, 22),
        (1 << 7, WRITE, 0, 512, 512, 22),
        (0, TRIM, end - 512, 1024, 0, 22),
        (0, WRITE_ZEROES, 512, u32::MAX, 0, 28),
        (0, FLUSH, 512, 0, 0, 22),
        (0, 5, 0, 512, 0, 22),
        (0, 7, 0, 512, 0, 22),
        (0, 999, 0, 512, 0, 22),
    ] {
        let found = client.ask(flags, command, at, bytes, &vec![1; data]).unwrap();
        assert_eq!(found.0, error, "flags {flags}, command {command}, {bytes} bytes at {at}");
    }
    assert!(running.orders.0.lock().unwrap().is_empty(), "none of them reached the drive");
    assert_eq!(client.ask(0, READ, end - 512, 512, b"").unwrap().0, 0);
    // Data that nobody agreed on end the connection, and no other.
    client.send(0, WRITE, 0, PAYLOAD_MAX + 1, b"").unwrap();
    assert_eq!(client.stream.read(&mut [0; 16]).unwrap_or(0), 0);
    assert_eq!(Client::connect(&running.path, false).unwrap().ask(0, READ, 0, 512, b"").unwrap().0, 0);
}

#[test]
fn options_are_answered_and_a_guarded_export_is_got_by_its_name_only() {
    for is_guarded in [false, true] {
        let running = serve(is_guarded);
        let mut stream = Client::greet(&running.path).unwrap();
        let mut ask = |number: u32, data: &[u8]| {
            stream.write_all(&option(number, data)).unwrap();
            option_reply(&mut stream, number).unwrap()
        };
        let refusal = |code: u32| 1 << 31 | code;
        if is_guarded {
            assert_eq!(ask(3, b"").0, refusal(2));
            assert_eq!(ask(6, &wanted("", &[])).0, refusal(6));
        } else {
            assert_eq!(ask(3, b""), (2, b"\0\0\0\x05drive".to_vec()));
            assert_eq!(option_reply(&mut stream, 3).unwrap().0, 1);
            let mut stream = Client::greet(&running.path).unwrap();
            stream.write_all(&option(6, &wanted("", &[1, 3]))).unwrap();
            assert_eq!(option_reply(&mut stream, 6).unwrap().1[2..10], BYTES.to_be_bytes());
            assert_eq!(option_reply(&mut stream, 6).unwrap().1, b"\0\x01drive");
            let sizes = [512, 4096, PAYLOAD_MAX].map(u32::to_be_bytes).concat();
            assert_eq!(option_reply(&mut stream, 6).unwrap().1[2..], sizes);
        }
        let mut stream = Client::greet(&running.path).unwrap();
        let mut ask = |number: u32, data: &[u8]| {
            stream.write_all(&option(number, data)).unwrap();
            option_reply(&mut stream, number).unwrap().0
        };
        assert_eq!(ask(6, &wanted("other", &[])), refusal(6));
        assert_eq!(ask(7, b"\xff\xff\xff\xff"), refusal(3), "a length past the end");
        assert_eq!(ask(7, &[wanted("", &[]), vec![0]].concat()), refusal(3));
        assert_eq!(ask(5, b""), refusal(1), "no TLS");
        assert_eq!(ask(10, b""), refusal(1));
        assert_eq!(ask(11, &[0; 9000]), refusal(9));
        assert_eq!(ask(8, b"x"), refusal(3));
        assert_eq!(ask(2, b""), 1);
        assert_eq!(stream.read(&mut [0]).unwrap(), 0, "it asked for the end");
        // The old way in.
        let mut stream = Client::greet(&running.path).unwrap();
        stream.write_all(&option(1, b"drive")).unwrap();
        assert_eq!(u64::from_be_bytes(take(&mut stream).unwrap()), BYTES);
        take::<2>(&mut stream).unwrap();
        stream.write_all(&request(0, READ, 9, 0, 512)).unwrap();
        assert_eq!(take::<16>(&mut stream).unwrap()[8..], 9u64.to_be_bytes());
        let mut stream = Client::greet(&running.path).unwrap();
        stream.write_all(&option(1, b"")).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap() == 0, is_guarded);
    }
}

#[test]
fn a_client_that_reads_no_answers_holds_up_nobody_but_itself() {
    let running = serve(false);
    let mut deaf = Client::connect(&running.path, true).unwrap();
    deaf.stream.set_write_timeout(Some(std::time::Duration::from_millis(300))).unwrap();
    let mut sent = 0;
    while sent < 20_000 && deaf.send(0, READ, 0, BYTES as u32, b"").is_ok() {
        sent += 1;
    }
    assert!(sent < 20_000, "it is not listened to for ever");
    assert!(running.orders.0.lock().unwrap().len() < 200, "64 MiB of a megabyte each");
    let mut other = Client::connect(&running.path, true).unwrap();
    assert_eq!(other.ask(0, READ, 0, 512, b"").unwrap().0, 0);
    drop(deaf);
    assert_eq!(other.ask(0, FLUSH, 0, 0, b"").unwrap().0, 0);
}

#[test]
fn a_client_that_leaves_has_its_answers_first_and_the_server_ends_whoever_is_there() {
    let running = serve(false);
    let mut client = Client::connect(&running.path, false).unwrap();
    for _ in 0..100 {
        client.send(0, READ, 0, 4096, b"").unwrap();
    }
    client.send(0, DISCONNECT, 0, 0, b"").unwrap();
    for _ in 0..100 {
        assert_eq!(client.receive(|_| 4096).unwrap().1, 0);
    }
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    let mut other = Client::connect(&running.path, false).unwrap();
    assert_eq!(running.server.connections(), 1);
    let Running { server, path, .. } = running;
    drop(server);
    assert_eq!(other.stream.read(&mut [0]).unwrap(), 0);
    assert!(!path.exists(), "the socket is gone");
}

#[test]
fn a_socket_is_never_taken_from_who_has_it() {
    let running = serve(false);
    let again = |path: &std::path::Path| {
        let place = Place::Unix(path.to_owned());
        Server::start(&place, export(false), store().0, Arc::new(AtOnce::default()), Box::new(|_| {}))
            .map(|_| ())
            .map_err(|error| error.to_string())
    };
    assert!(again(&running.path).unwrap_err().contains("another server listens"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letters.txt");
    std::fs::write(&file, "dear mother").unwrap();
    assert!(again(&file).unwrap_err().contains("no socket"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "dear mother");
    // One that a killed server left behind.
    let left = directory.path().join("left");
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    again(&left).unwrap();
}

/// What a client says, all at once, and what it hears.
struct Said(Cursor<Vec<u8>>, Vec<u8>);

impl Read for Said {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lets a client say all that, and returns how many bytes it was answered; the drive's file keeps what is behind the drive.
fn converse(said: Vec<u8>) -> usize {
    let (store, file) = store();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let listener = std::thread::spawn(move || io::copy(&mut theirs, &mut io::sink()).unwrap_or(0));
    let replies = Arc::new(Replies::new(ours.into()));
    let mut said = Said(Cursor::new(said), Vec::new());
    if let Ok(Some(agreed)) = negotiate(&mut said, &export(false)) {
        std::thread::scope(|scope| {
            scope.spawn(|| replies.send_what_is_left());
            let _ = transmit(&mut said, agreed, &store, &AtOnce::default(), &replies);
            replies.wait_until_sent();
            replies.finish();
        });
    }
    replies.hang_up();
    drop(replies);
    let heard = listener.join().unwrap() as usize + said.1.len();
    let mut behind = BEHIND;
    file.read_exact_at(&mut behind, BYTES).unwrap();
    assert!(behind == BEHIND && file.metadata().unwrap().len() == BYTES + 8192, "past the drive");
    heard
}

/// Numbers of the kind at which mistakes are made.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..BYTES + 8192,
        (0..40u64).prop_map(|back| BYTES - 20 + back),
        (0..64u32, 0..3u64).prop_map(|(bit, add)| (1u64 << bit).wrapping_add(add).wrapping_sub(1)),
    ]
}

fn spoken_option() -> impl Strategy<Value = Vec<u8>> {
    let data = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        ("[a-z]{0,9}", proptest::collection::vec(0u16..5, 0..4))
            .prop_map(|(name, kinds)| wanted(&name, &kinds)),
        Just(wanted("", &[3])),
        Just(Vec::new()),
    ];
    (prop_oneof![0u32..13, any::<u32>()], data, any::<Option<u32>>()).prop_map(|(number, data, lie)| {
        let mut bytes = option(number, &data);
        // One in two says another length than it has.
        if let Some(lie) = lie.filter(|lie| lie % 4 == 0) {
            bytes[12..16].copy_from_slice(&(lie % 20_000).to_be_bytes());
        }
        bytes
    })
}

fn spoken_request() -> impl Strategy<Value = Vec<u8>> {
    let bytes = number().prop_map(|number| number as u32);
    let data = proptest::collection::vec(any::<u8>(), 0..2000);
    (
        prop_oneof![3 => 0u16..8, 1 => any::<u16>()],
        0u16..9,
        any::<u64>(),
        number(),
        bytes,
        data,
        any::<bool>(),
    )
        .prop_map(|(flags, command, cookie, at, bytes, data, is_honest)| {
            let bytes = if command == WRITE && is_honest { data.len() as u32 } else { bytes };
            let mut message = request(flags, command, cookie, at, bytes);
            if command == WRITE {
                message.extend(data);
            }
            message
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_without_sense_end_no_server(bytes in proptest::collection::vec(any::<u8>(), 0..400), begin in 0..4) {
        let begin = match begin {
            0 => Vec::new(),
            1 => hello(),
            2 => [hello(), option(8, b"")].concat(),
            _ => [hello(), option(7, &wanted("", &[]))].concat(),
        };
        converse([begin, bytes].concat());
    }

    #[test]
    fn options_and_requests_that_almost_make_sense_reach_nothing_past_the_drive(
        options in proptest::collection::vec(spoken_option(), 0..6),
        is_structured in any::<bool>(),
        requests in proptest::collection::vec(spoken_request(), 0..12),
    ) {
        let structured = if is_structured { option(8, b"") } else { Vec::new() };
        let go = option(7, &wanted("drive", &[]));
        converse([hello(), options.concat(), structured, go, requests.concat()].concat());
    }

    #[test]
    fn requests_after_an_honest_beginning_are_all_heard(
        requests in proptest::collection::vec((0u16..8, 0u64..1 << 50, 0u32..1 << 20), 1..30),
    ) {
        let begin = [hello(), option(7, &wanted("", &[]))].concat();
        let silence = converse(begin.clone());
        let all: Vec<u8> = requests.iter().filter(|(command, ..)| ![WRITE, DISCONNECT].contains(command))
            .flat_map(|&(command, at, bytes)| request(0, command, at, at, bytes)).collect();
        let heard = converse([begin, all.clone()].concat());
        prop_assert!(heard >= silence + all.len() / 28 * 16, "{heard} {silence} {}", all.len());
    }
}
