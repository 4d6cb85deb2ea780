//! Mutated real inputs through every parser, on stable Rust: errors are fine, panics fail. `make fuzz` digs deeper.

mod support;

use planewise_model::rng::{Generator, generator};
use planewise_model::{Direction, Lsn, Ns, Profile, Request};
use planewise_trace::formats::{FORMATS, Format, parse_all};
use planewise_trace::input::Input;
use planewise_trace::pipeline::{Trace, TraceOptions};
use rand::RngExt;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A real input of a format: what its writer makes, or the beginning of a shared trace.
fn sample(format: &Format) -> Option<Vec<u8>> {
    if let Some(create) = format.create {
        let sink = Sink::default();
        let mut writer = create(Box::new(sink.clone()), Path::new("sample")).unwrap();
        for i in 0..40u64 {
            let direction = Direction::ALL[i as usize % 2];
            writer.write(&Request::new(Ns(i * 1_000_000), Lsn(i * 999), 8 + i as u32, direction)).unwrap();
        }
        writer.finish().unwrap();
        return Some(std::mem::take(&mut *sink.0.lock().unwrap()));
    }
    let shared = match format.name {
        "ftrace" => "self-captured/pgbench_tpcb.loop-ext4.first400k.ftrace.txt.zst",
        "blkparse" => "blktrace-txt/nvme0n1.blkparse.txt.zst",
        _ => return None,
    };
    let path = support::traces()?.join(shared);
    if !path.exists() {
        println!("skipped: no {shared}");
        return None;
    }
    let mut head = Vec::new();
    Input::open(&path).unwrap().take(4096).read_to_end(&mut head).unwrap();
    // Whole lines only: a real input is one that parses.
    head.truncate(head.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    Some(head)
}

/// One to four changes of the kinds that break parsers: bytes, cuts, repetitions, digits.
fn mutate(random: &mut Generator, bytes: &mut Vec<u8>) {
    for _ in 0..random.random_range(1..=4u32) {
        if bytes.is_empty() {
            return;
        }
        let place = random.random_range(0..bytes.len());
        match random.random_range(0..6u32) {
            0 => bytes[place] = random.random_range(0..=255u8),
            1 => bytes.truncate(place),
            2 => {
                let end = (place + random.random_range(1..64usize)).min(bytes.len());
                let piece = bytes[place..end].to_vec();
                bytes.splice(place..place, piece);
            }
            3 => drop(bytes.splice(place..place, b"99999999999999999999".iter().copied())),
            4 => drop(bytes.drain(place..(place + 16).min(bytes.len()))),
            _ => {
                let piece: &[&[u8]] = &[b"-", b"NaN", b"inf", b"1e308", b"\n\n", b"\xff\xfe", b",,,,", b"0"];
                drop(bytes.splice(place..place, piece[random.random_range(0..piece.len())].iter().copied()));
            }
        }
    }
}

#[test]
fn mutated_traces_never_panic_a_parser_or_the_detection() {
    for sampled in FORMATS {
        let Some(sample) = sample(sampled) else { continue };
        assert!(!parse_all(sampled, &sample).unwrap().is_empty(), "{}", sampled.name);
        for seed in 0..1000u64 {
            let mut random = generator(seed, sampled.name);
            let mut bytes = sample.clone();
            mutate(&mut random, &mut bytes);
            // Named when it fails: the test's output is kept.
            println!("{} seed {seed}", sampled.name);
            for format in FORMATS {
                let _ = parse_all(format, &bytes);
            }
            if let Ok(mut trace) =
                Trace::from_input(Input::from_bytes("mutated", bytes), &TraceOptions::default())
            {
                let mut batch = Vec::new();
                while trace.next_batch(&mut batch, 64).is_ok_and(|count| count > 0) {}
                assert!(batch.is_sorted_by_key(|request| request.arrival), "{} seed {seed}", sampled.name);
            }
        }
    }
}

#[test]
fn mutated_profiles_are_refused_in_one_line_or_read_back_from_their_own_toml() {
    let text = Profile::embedded("piq-128g").unwrap().to_toml();
    for seed in 0..3000u64 {
        let mut bytes = text.clone().into_bytes();
        mutate(&mut generator(seed, "profile"), &mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        match Profile::parse(&text, "mutated.toml") {
            Ok(profile) => {
                assert_eq!(Profile::parse(&profile.to_toml(), "again").unwrap(), profile, "seed {seed}")
            }
            Err(error) => assert!(!error.to_string().contains('\n'), "seed {seed}: {error}"),
        }
    }
}
