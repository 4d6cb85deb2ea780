//! A served drive as programs find it: what they wrote is there again, also after `kill -9`, and what cannot be is said.

#![cfg(target_os = "linux")]

#[path = "../../serve/tests/support/client.rs"]
mod client;
mod support;

use client::{Client, FLUSH, FORCED, READ, TRIM, WRITE};
use planewise_sim::results::Results;
use rand::RngExt;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Place, Said};

/// A server under test, ended when it is dropped.
struct Serving {
    child: Child,
    socket: PathBuf,
}

impl Serving {
    /// Starts one with a socket in the place, and waits until it listens.
    fn start(place: &Place, arguments: &str) -> Serving {
        let arguments = format!("serve {arguments} --socket s");
        let child = place.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Serving::wait_for(child, place, &arguments)
    }

    fn wait_for(child: Child, place: &Place, arguments: &str) -> Serving {
        let mut serving = Serving { child, socket: place.path().join("s") };
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(&serving.socket).is_err() {
            if let Some(status) = serving.child.try_wait().unwrap() {
                let mut words = String::new();
                serving.child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
                panic!("{arguments}: ended with {status}: {words}");
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{arguments}: does not listen");
            std::thread::sleep(Duration::from_millis(2));
        }
        serving
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket, true).unwrap()
    }

    /// As Ctrl-C.
    fn interrupt(mut self) -> Said {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        Said { code: self.child.wait().unwrap().code(), out, err }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a tool is there; says so where it is not.
fn is_there(tool: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok();
    if !is_there {
        eprintln!("skipped: there is no {tool} here");
    }
    is_there
}

const SMALL: &str = "--device ssd1 --size 16m --backing disk.img";

#[test]
fn what_was_written_is_there_again_and_the_end_tells_what_the_drive_did_and_how_late_it_was() {
    let place = Place::new();
    let serving = Serving::start(&place, &format!("{SMALL} --check --metrics 0 --out a"));
    let mut client = serving.client();
    assert_eq!(client.bytes, 16 << 20);
    let data = vec![0x5a; 65536];
    assert_eq!(client.ask(0, WRITE, 1 << 20, 65536, &data).unwrap().0, 0);
    assert_eq!(client.ask(0, FLUSH, 0, 0, b"").unwrap().0, 0);
    assert_eq!(client.ask(FORCED, WRITE, (16 << 20) - 512, 512, &[7; 512]).unwrap().0, 0);
    assert_eq!(client.ask(0, TRIM, 1 << 20, 4096, b"").unwrap().0, 0);
    assert_eq!(client.ask(0, READ, 16 << 20, 512, b"").unwrap().0, 22);
    let said = serving.interrupt();
    assert_eq!(said.code, Some(0), "{}", said.err);
    for words in [
        "front nbd: available",
        "front ublk: ",
        "nbdinfo 'nbd+unix:///planewise?socket=/",
        "curl http://127.0.0.1:",
    ] {
        assert!(said.err.contains(words), "no {words}: {}", said.err);
    }
    for words in ["lateness: reads and writes: ", "flushes and forced writes: ", "latency mean", "Report: a"]
    {
        assert!(said.out.contains(words), "no {words}: {}", said.out);
    }
    let text = std::fs::read_to_string(place.path().join("a/results.json")).unwrap();
    let results: Results = serde_json::from_str(&text).unwrap();
    let counts = results.runs[0].metrics.requests;
    assert_eq!((counts.reads, counts.writes), (0, 2), "{counts:?}");
    assert!(results.runs[0].notes.iter().any(|note| note.contains("in the mean")));
    assert_eq!(results.setup.options["dilate"], "1");

    let serving = Serving::start(&place, &format!("{SMALL} --dilate 2 --out b"));
    let mut client = serving.client();
    assert_eq!(client.ask(0, READ, 1 << 20, 4096, b"").unwrap(), (0, vec![0; 4096]));
    assert_eq!(client.ask(0, READ, (1 << 20) + 4096, 61440, b"").unwrap(), (0, data[4096..].to_vec()));
    assert_eq!(client.ask(0, READ, (16 << 20) - 512, 512, b"").unwrap(), (0, vec![7; 512]));
    // A server that is told to end ends, whoever is connected.
    let said = serving.interrupt();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(!said.err.contains("did not end by itself"), "{}", said.err);
    assert!(!place.path().join("s").exists());
}

#[test]
fn the_drive_of_a_dilation_is_so_much_slower() {
    let place = Place::new();
    for (dilation, least) in [("1", 10), ("20", 200)] {
        // A read of ssd1 takes half a millisecond and more.
        let serving =
            Serving::start(&place, &format!("--device ssd1 --size 16m --dilate {dilation} --force --out o"));
        let (mut client, begun) = (serving.client(), Instant::now());
        for at in 0..20 {
            assert_eq!(client.ask(0, READ, at << 16, 4096, b"").unwrap().0, 0);
        }
        assert!(begun.elapsed() >= Duration::from_millis(least), "{:?}", begun.elapsed());
        serving.interrupt();
    }
}

#[test]
fn the_page_for_prometheus_counts() {
    let place = Place::new();
    let mut serving = Serving::start(&place, "--device ssd1 --size 16m --metrics 0 --out o");
    let mut client = serving.client();
    for at in 0..7 {
        client.ask(0, READ, at << 12, 4096, b"").unwrap();
    }
    let mut words = String::new();
    let mut error = serving.child.stderr.take().unwrap();
    while !words.contains("/metrics\n") {
        let mut byte = [0];
        error.read_exact(&mut byte).unwrap();
        words.push(byte[0].into());
    }
    let address = words.split("curl http://").nth(1).unwrap().split('/').next().unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.contains("planewise_requests_total{operation=\"read\"} 7\n"), "{page}");
    assert!(page.contains("planewise_bytes_total{operation=\"read\"} 28672\n"), "{page}");
    assert!(page.contains("planewise_clients 1\n"), "{page}");
}

#[test]
fn what_cannot_be_served_is_refused_in_one_line_and_harms_nothing() {
    let place = Place::new();
    place.fails(2, "serve --device ssd1 --size 1t", &["--size: found 1099511627776 bytes", "allowed: up to"]);
    place.fails(2, "serve --device ssd1 --size 1000", &["allowed: a multiple of 512 bytes"]);
    place.fails(2, "serve --device ssd9", &["ssd9", "ssd1"]);
    place.fails(2, "serve --device ssd1 --dilate 0", &["allowed: a number from 0.001"]);
    place.fails(2, "serve --device ssd1 --listen 0.0.0.0:10809", &["--export"]);
    place.fails(2, "serve --device ssd1 --pace recorded", &["--pace: found 'recorded'"]);
    place.fails(2, "serve --device ssd1 --scheduler noop,piq", &["allowed: one value"]);
    if !std::path::Path::new("/dev/ublk-control").exists() {
        place.fails(
            2,
            "serve --device ssd1 --front ublk",
            &["--front: found ublk", "there is no /dev/ublk-control"],
        );
    }
    place.fails(2, "serve --device ssd1 --front floppy", &["allowed: nbd, vhost-user, ublk, fuse"]);
    place.fails(
        2,
        "serve --device ssd1 --front vhost-user --port 1",
        &["--port: found with --front vhost-user"],
    );
    place.fails(2, "serve --device ssd1 --front fuse", &["--mount: not given"]);
    place.fails(2, "serve --device ssd1 --cpu 4096", &["--cpu: found 4096; allowed: 0 to"]);
    let letters = place.file("letters.txt", "dear mother");
    place.fails(2, "serve --device ssd1 --size 16m --backing letters.txt", &["letters.txt: found 11 bytes"]);
    place.fails(
        2,
        "serve --device ssd1 --size 16m --socket letters.txt",
        &["letters.txt, which is no socket"],
    );
    assert_eq!(std::fs::read_to_string(letters).unwrap(), "dear mother");
    let serving = Serving::start(&place, SMALL);
    place.fails(2, &format!("serve {SMALL} --socket t"), &["disk.img: found a file in use"]);
    place.fails(2, "serve --device ssd1 --size 1m --socket s", &["at which another server listens"]);
    serving.interrupt();
    place.fails(
        2,
        "serve --device ssd1 --size 32m --backing disk.img",
        &["a drive of 16777216 bytes", "--size 16777216"],
    );
    let image = place.path().join("disk.img");
    std::fs::File::options().write(true).open(&image).unwrap().set_len(9 << 20).unwrap();
    place.fails(2, &format!("serve {SMALL}"), &["disk.img: found 9437184 bytes", "cut"]);
}

const BLOCK: u64 = 4096;
const BLOCKS: u64 = 1024;

/// What a version of a block is: every 16 bytes of it tell which it is.
fn pattern(block: u64, version: u64) -> Vec<u8> {
    let word = [block.to_le_bytes(), version.to_le_bytes()].concat();
    if version == 0 { vec![0; BLOCK as usize] } else { word.repeat(BLOCK as usize / 16) }
}

/// What is known of a block.
#[derive(Clone, Copy, Default)]
struct Known {
    /// The version that has to be there at least: it was written and flushed, or forced.
    kept: u64,
    /// The last that was answered, and the last that was sent.
    answered: u64,
    sent: u64,
}

/// Writes, flushes and forces until the server is gone.
fn load(client: &mut Client, known: &mut [Known], version: &mut u64, random: &mut impl RngExt) {
    let mut under_way: BTreeMap<u64, (u64, u64, bool)> = BTreeMap::new();
    loop {
        while under_way.len() < 16 {
            let block = random.random_range(0..BLOCKS);
            if under_way.values().any(|(other, ..)| *other == block) {
                continue;
            }
            *version += 1;
            let is_forced = random.random_range(0..8) == 0;
            known[block as usize].sent = *version;
            let flags = if is_forced { FORCED } else { 0 };
            let data = pattern(block, *version);
            let Ok(cookie) = client.send(flags, WRITE, block * BLOCK, BLOCK as u32, &data) else { return };
            under_way.insert(cookie, (block, *version, is_forced));
        }
        // A flush keeps what was answered before it was sent.
        let flush = if random.random_range(0..6) == 0 {
            let before: Vec<u64> = known.iter().map(|block| block.answered).collect();
            match client.send(0, FLUSH, 0, 0, b"") {
                Ok(cookie) => Some((cookie, before)),
                Err(_) => return,
            }
        } else {
            None
        };
        for _ in 0..8 + usize::from(flush.is_some()) {
            let Ok((cookie, error, _)) = client.receive(|_| 0) else { return };
            assert_eq!(error, 0);
            if let Some((block, version, is_forced)) = under_way.remove(&cookie) {
                let block = &mut known[block as usize];
                block.answered = version;
                if is_forced {
                    block.kept = version;
                }
            } else if let Some((_, before)) = flush.as_ref().filter(|(flush, _)| *flush == cookie) {
                known.iter_mut().zip(before).for_each(|(block, kept)| block.kept = block.kept.max(*kept));
            }
        }
    }
}

/// Kills a server under load, so many times, and looks each time whether what had to be kept is there. 5 times, or as often as `PLANEWISE_KILLS` says.
#[test]
fn nothing_that_was_flushed_is_lost_by_kill_9() {
    let rounds = std::env::var("PLANEWISE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let seed = std::env::var("PLANEWISE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = planewise_model::rng::generator(seed, "kills");
    let place = Place::new();
    // A fast drive, so that much is under way.
    let arguments = "--device ssd1 --size 4m --backing disk.img --dilate 0.02 --quiet";
    let (mut known, mut version) = (vec![Known::default(); BLOCKS as usize], 0);
    let (mut writes, mut kept) = (0, 0);
    for round in 0..rounds {
        let what = format!("seed {seed}, round {round}");
        let mut serving = Serving::start(&place, arguments);
        let mut client = serving.client();
        let mut reader = serving.client();
        for (block, known) in known.iter_mut().enumerate() {
            let (block, at) = (block as u64, block as u64 * BLOCK);
            let (error, found) = reader.ask(0, READ, at, BLOCK as u32, b"").unwrap();
            assert_eq!(error, 0, "{what}");
            let version = u64::from_le_bytes(found[8..16].try_into().unwrap());
            let is_whole = found == pattern(block, version);
            // One that was under way may be there, in part, or not; the server, not the host, was killed, so what was answered is there, too.
            assert!(is_whole || known.sent > known.answered, "{what}: block {block} is torn");
            if is_whole {
                assert!(
                    version == known.answered || version == known.sent,
                    "{what}: block {block} is {version}, {} was kept, {} answered, {} sent",
                    known.kept,
                    known.answered,
                    known.sent
                );
                assert!(version >= known.kept, "{what}: block {block} lost version {}", known.kept);
            }
        }
        drop(reader);
        // Blocks whose last version nobody knows get one.
        for (block, known) in known.iter_mut().enumerate().filter(|(_, known)| known.sent != known.answered) {
            version += 1;
            let data = pattern(block as u64, version);
            assert_eq!(client.ask(0, WRITE, block as u64 * BLOCK, BLOCK as u32, &data).unwrap().0, 0);
            *known = Known { answered: version, sent: version, ..*known };
        }
        assert_eq!(client.ask(0, FLUSH, 0, 0, b"").unwrap().0, 0);
        known.iter_mut().for_each(|known| known.kept = known.answered);
        let begin = version;
        let patience = Duration::from_millis(random.random_range(1..120));
        let id = serving.child.id().to_string();
        let killer = std::thread::spawn(move || {
            std::thread::sleep(patience);
            assert!(Command::new("kill").args(["-KILL", &id]).status().unwrap().success());
        });
        load(&mut client, &mut known, &mut version, &mut random);
        killer.join().unwrap();
        let status = serving.child.wait().unwrap();
        assert_eq!(status.code(), None, "{what}: it was killed, and did not end: {status}");
        (writes, kept) =
            (writes + version - begin, kept + known.iter().filter(|block| block.kept > begin).count());
    }
    eprintln!("{rounds} kills, {writes} writes under load, {kept} blocks kept by a flush or force meanwhile");
    assert!(writes > rounds * 20 && kept > 0, "{writes} {kept}");
}

#[test]
fn the_tools_of_others_read_what_they_wrote() {
    let place = Place::new();
    let serving = Serving::start(&place, "--device ssd1 --size 64m --dilate 0.05 --quiet");
    let uri = format!("nbd+unix:///planewise?socket={}", serving.socket.display());
    let run = |command: &mut Command| {
        let done = command.current_dir(place.path()).output().unwrap();
        assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    if is_there("nbdinfo") {
        let about = run(Command::new("nbdinfo").arg(&uri));
        for words in ["export-size: 67108864", "can_fua: true", "can_multi_conn: true", "structured"] {
            assert!(about.contains(words), "no {words}: {about}");
        }
        assert!(run(Command::new("nbdinfo").arg("--list").arg(&uri)).contains("export=\"planewise\""));
    }
    if is_there("nbdcopy") {
        let data: Vec<u8> =
            (0..8 << 20).map(|byte: u32| (byte.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let file = place.file("data", &data);
        run(Command::new("nbdcopy").arg("--flush").arg(&file).arg(&uri));
        run(Command::new("nbdcopy").arg(&uri).arg("back"));
        let back = std::fs::read(place.path().join("back")).unwrap();
        assert!(back.len() == 64 << 20 && back[..data.len()] == data);
    }
    if is_there("qemu-io") {
        for command in
            ["write -P 0x77 1M 64k", "write -f -P 0x78 2M 4k", "flush", "discard 3M 1M", "write -z 4M 64k"]
        {
            run(Command::new("qemu-io").args(["-f", "raw", "-c", command, &uri]));
        }
        for command in ["read -P 0x77 1M 64k", "read -P 0x78 2M 4k", "read -P 0 3M 1M", "read -P 0 4M 64k"] {
            let said = run(Command::new("qemu-io").args(["-f", "raw", "-c", command, &uri]));
            assert!(!said.contains("failed"), "{command}: {said}");
        }
    }
    if is_there("fio") && run(Command::new("fio").arg("--enghelp")).contains("nbd") {
        let job = "--name=job --rw=randwrite --bsrange=4k-64k --iodepth=16 --size=16m --verify=crc32c --fsync=16 --group_reporting";
        let said =
            run(Command::new("fio").arg("--ioengine=nbd").arg(format!("--uri={uri}")).args(job.split(' ')));
        assert!(said.contains("err= 0"), "{said}");
    }
    assert_eq!(serving.interrupt().code, Some(0));
}

/// On a file system of 8 MiB, which the test may mount in a namespace of its own.
#[test]
fn a_full_disk_is_an_error_of_the_requests_that_find_no_room() {
    let place = Place::new();
    let inside = "mkdir small && mount -t tmpfs -o size=8m none small && exec \"$0\" serve --device ssd1 --size 16m --backing small/disk.img \
                  --socket s --dilate 0.05";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_planewise")]);
        command.current_dir(place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let may = unshare("mkdir may && mount -t tmpfs none may").output();
    if !may.is_ok_and(|done| done.status.success()) {
        eprintln!("skipped: no file system can be mounted in a namespace here");
        return;
    }
    let serving = Serving::wait_for(unshare(inside).spawn().unwrap(), &place, inside);
    let mut client = serving.client();
    let data = vec![0x5a; 1 << 20];
    let written: Vec<u32> =
        (0..16).map(|at| client.ask(0, WRITE, at << 20, 1 << 20, &data).unwrap().0).collect();
    let fitting = written.iter().filter(|error| **error == 0).count();
    assert!((6..9).contains(&fitting) && written[fitting..].iter().all(|error| *error == 28), "{written:?}");
    assert_eq!(client.ask(0, FLUSH, 0, 0, b"").unwrap().0, 0);
    assert_eq!(client.ask(0, READ, 5 << 20, 1 << 20, b"").unwrap(), (0, data.clone()));
    // Room that is given back is room.
    assert_eq!(client.ask(0, TRIM, 0, 2 << 20, b"").unwrap().0, 0);
    assert_eq!(client.ask(0, WRITE, 15 << 20, 1 << 20, &data).unwrap().0, 0);
    assert_eq!(client.ask(0, READ, 15 << 20, 1 << 20, b"").unwrap(), (0, data));
    let said = serving.interrupt();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(said.err.contains("may need") && said.err.contains("fail with an I/O error"), "{}", said.err);
}

#[test]
fn a_guarded_export_at_an_address_is_got_by_its_name() {
    let place = Place::new();
    let mut child = place
        .command("serve --device ssd1 --size 16m --listen 127.0.0.1:0 --export secret")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut words, mut error) = (String::new(), child.stderr.take().unwrap());
    while !words.contains("nbdinfo 'nbd://127.0.0.1:") || !words.ends_with('\n') {
        let mut byte = [0];
        error.read_exact(&mut byte).unwrap();
        words.push(byte[0].into());
    }
    let address = words.split("nbdinfo 'nbd://").nth(1).unwrap().split('/').next().unwrap();
    let ask = |name: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        client::take::<18>(&mut stream).unwrap();
        stream.write_all(&client::hello()).unwrap();
        stream.write_all(&client::option(6, &client::wanted(name, &[]))).unwrap();
        client::option_reply(&mut stream, 6).unwrap().0
    };
    assert_eq!((ask("secret"), ask(""), ask("planewise")), (3, 0x8000_0006, 0x8000_0006));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The first example of docs/serve.md, word for word.
#[test]
fn the_example_of_the_documentation_works() {
    let page = include_str!("../../../docs/serve.md");
    let example = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert!(example.starts_with("planewise serve "), "{example}");
    let has_engine = Command::new("fio").arg("--enghelp").output();
    let has_engine = has_engine.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains("nbd"));
    if !is_there("nbdinfo") || !is_there("fio") {
        return;
    }
    if !has_engine {
        eprintln!("skipped: this fio has no engine nbd");
        return;
    }
    let place = Place::new();
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_planewise")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let done =
        Command::new("sh").args(["-e", "-c", example]).env("PATH", path).current_dir(place.path()).output();
    let said = Said::from(done.unwrap());
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    for words in ["err= 0", "lateness: reads and writes: ", "device ssd1", "Report: served"] {
        assert!(said.out.contains(words), "no {words}: {}{}", said.out, said.err);
    }
    assert!(
        place.path().join("served/report.html").exists() && !place.path().join("planewise.sock").exists()
    );
}

#[test]
fn a_mounted_file_is_the_drive_until_the_end() {
    use std::os::unix::fs::FileExt;
    let place = Place::new();
    std::fs::create_dir(place.path().join("m")).unwrap();
    std::fs::create_dir(place.path().join("used")).unwrap();
    place.file("used/letters.txt", "dear mother");
    if std::fs::File::options().read(true).write(true).open("/dev/fuse").is_err() {
        eprintln!("skipped: /dev/fuse is not here, or not ours");
        return;
    }
    place.fails(2, "serve --device ssd1 --size 1m --front fuse --mount used", &["used, which has files"]);
    place.fails(2, "serve --device ssd1 --size 1m --front fuse --mount nowhere", &["nowhere: No such file"]);
    let arguments =
        "serve --device ssd1 --size 8m --front fuse --mount m --backing disk.img --dilate 0.1 --out o";
    let mut child = place.command(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (path, begun) = (place.path().join("m/drive"), Instant::now());
    while !path.exists() {
        if let Some(status) = child.try_wait().unwrap() {
            let mut words = String::new();
            child.stderr.take().unwrap().read_to_string(&mut words).unwrap();
            assert!(words.contains("cannot mount"), "{status}: {words}");
            eprintln!("skipped: {}", words.trim());
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 8 << 20);
    file.write_all_at(&[0x5a; 70_000], 4096).unwrap();
    file.sync_all().unwrap();
    let mut back = vec![0; 70_000];
    file.read_exact_at(&mut back, 4096).unwrap();
    assert_eq!(back, [0x5a; 70_000]);
    assert_eq!(file.read_at(&mut [0; 8], 8 << 20).unwrap(), 0, "the end is the end");
    assert!(file.write_at(&[1], 8 << 20).is_err());
    assert!(file.set_len(5).is_err());
    // Who still has it open has a dead file, and keeps nobody from ending.
    let serving = Serving { child, socket: PathBuf::new() };
    let id = serving.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let begun = Instant::now();
    while path.exists() {
        assert!(begun.elapsed() < Duration::from_secs(20), "still mounted");
        std::thread::sleep(Duration::from_millis(5));
    }
    // The name is gone first; whoever serves goes on for as long as it takes to end.
    while file.write_at(&[1], 0).is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(20), "still served");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(serving);
    let image = std::fs::read(place.path().join("disk.img")).unwrap();
    assert!(image[4096..74_096] == [0x5a; 70_000] && image[74_096] == 0);
}
