//! The timeline is what Perfetto expects: valid JSON, a named track for each channel and die, slices that do not overlap.

mod common;

use common::{device, pages};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::observers::timeline::Timeline;
use planewise_sim::{RunConfig, Simulator, UnitLevel};
use serde_json::Value;
use std::collections::BTreeMap;

fn timeline(limit: u64) -> Vec<Value> {
    let mut profile = device(2, 2, 2, 2);
    profile.collection.threshold = 0.2;
    profile.collection.ahead = 0.2;
    let mut config = RunConfig::new(profile);
    config.level = UnitLevel::Plane;
    let mut simulator = Simulator::new(&config, Timeline::new(Vec::new(), limit)).unwrap();
    let mut requests = pages(Direction::Write, (0..64).chain(0..64));
    requests.extend(pages(Direction::Read, 0..64));
    for request in &requests {
        while !simulator.has_room(request) {
            let next = simulator.next_event();
            simulator.advance(next).unwrap();
        }
        simulator.submit(request).unwrap();
    }
    simulator.drain().unwrap();
    let (bytes, _) = simulator.into_observer().finish().unwrap();
    let document: Value = serde_json::from_slice(&bytes).expect("a JSON document");
    document["traceEvents"].as_array().expect("a list of events").clone()
}

#[test]
fn every_channel_and_die_has_a_named_track_and_its_slices_do_not_overlap() {
    let events = timeline(u64::MAX);
    let tracks = events.iter().filter(|event| event["name"] == "thread_name").count();
    assert_eq!(tracks, 2 + 8);
    let mut slices: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let start = event["ts"].as_f64().unwrap();
        let track = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        slices.entry(track).or_default().push((start, start + event["dur"].as_f64().unwrap()));
    }
    assert_eq!(slices.len(), 2 + 8, "every track is used");
    for (track, mut spans) in slices {
        spans.sort_by(|a, b| a.0.total_cmp(&b.0));
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0 + 1e-6, "{track:?}: {pair:?}");
        }
    }
    for name in ["read", "program", "transfer", "collection: erase"] {
        assert!(events.iter().any(|event| event["name"] == name), "{name}");
    }
}

#[test]
fn a_limit_keeps_the_document_whole() {
    let events = timeline(10);
    assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 10);
}

#[test]
fn of_a_window_there_is_what_happens_in_it() {
    let config = RunConfig::new(device(1, 1, 1, 1));
    // Each read takes 30,000 ns in the array and 40,960 ns on the channel; one every 100,000 ns.
    let requests: Vec<Request> =
        (0..10).map(|n| Request::new(Ns(n * 100_000), Lsn(8 * n), 8, Direction::Read)).collect();
    let slices = |from: u64, to: u64| {
        let timeline = Timeline::new(Vec::new(), 1000).within(Ns(from), Ns(to));
        let mut simulator = Simulator::new(&config, timeline).unwrap();
        for request in &requests {
            while simulator.next_event() < request.arrival {
                let next = simulator.next_event();
                simulator.advance(next).unwrap();
            }
            simulator.submit(request).unwrap();
        }
        simulator.drain().unwrap();
        simulator.into_observer().finish().unwrap().1
    };
    assert_eq!(slices(0, u64::MAX), 20);
    assert_eq!(slices(200_000, 300_000), 2, "one read");
    assert_eq!(slices(210_000, 215_000), 1, "its array operation is under way");
    assert_eq!(slices(80_000, 100_000), 0, "nothing is");
}
