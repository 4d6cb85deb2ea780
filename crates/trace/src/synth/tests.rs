use super::*;
use crate::stats::{StatsBuilder, StatsOptions, TraceStats};
use planewise_model::rng::DEFAULT_SEED;
use proptest::prelude::*;

const TOLERANCE: f64 = 0.05;

fn measure(description: &VolumeDescription, requests: u64, seed: u64) -> TraceStats {
    let mut builder = StatsBuilder::new(StatsOptions::default()).unwrap();
    let mut generator = Generator::new(description, requests, seed).unwrap();
    let mut batch = Vec::new();
    while generator.next_batch(&mut batch, 4096) > 0 {
        batch.drain(..).for_each(|request| builder.add(&request));
    }
    builder.finish()
}

/// Columns that are off by more than 5 %, in words. Where less than a quarter of the writes are updates, a twentieth of
/// them is less than one run: the share may be off by 0.0125.
fn misses(description: &VolumeDescription, requests: u64, seed: u64) -> Vec<String> {
    let stats = measure(description, requests, seed);
    let name = &description.name;
    let rows = description.columns(requests).compare(&stats);
    assert_eq!(rows.len(), 10, "{name}: every column can be measured");
    rows.iter()
        .filter(|row| row.error() > TOLERANCE)
        .filter(|row| row.column != "update_share" || (row.measured - row.expected).abs() > 0.0125)
        .map(|row| format!("{name} at {requests}, seed {seed}: {row:?}"))
        .collect()
}

fn misses_of_all(prefix: &str, requests: u64, seed: u64) -> Vec<String> {
    let volumes = VOLUMES.iter().filter(|(name, _)| name.starts_with(prefix));
    volumes.flat_map(|(name, _)| misses(&volume(name).unwrap(), requests, seed)).collect()
}

#[test]
fn every_piq_volume_matches_every_column_at_one_million_requests() {
    assert_eq!(misses_of_all("piq-", 1_000_000, DEFAULT_SEED), Vec::<String>::new());
}

#[test]
fn every_gc_volume_matches_every_column_at_one_million_requests() {
    assert_eq!(misses_of_all("gc-", 1_000_000, DEFAULT_SEED), Vec::<String>::new());
}

#[test]
fn every_gc_volume_matches_every_column_at_three_million_requests() {
    assert_eq!(misses_of_all("gc-", 3_000_000, 1), Vec::<String>::new());
}

#[test]
fn every_volume_matches_every_column_at_a_hundred_thousand_requests() {
    assert_eq!(misses_of_all("", 100_000, 2), Vec::<String>::new());
}

#[test]
fn every_piq_volume_matches_every_column_at_three_million_requests() {
    assert_eq!(misses_of_all("piq-", 3_000_000, 3), Vec::<String>::new());
}

/// gc-hm_0 with another write ratio, its other columns made to agree.
fn with_write_ratio(write_ratio: f64) -> VolumeDescription {
    let mut volume = volume("gc-hm_0").unwrap();
    volume.write_ratio = write_ratio;
    let gib = |mean: f64| volume.requests as f64 * mean / (1 << 20) as f64;
    volume.accessed_gib = gib(volume.mean_kib());
    volume.working_set_gib = gib(write_ratio * volume.write_mean_kib) * (1.0 - volume.update_share)
        + gib((1.0 - write_ratio) * volume.read_mean_kib) * 0.1;
    volume
}

#[test]
fn a_volume_of_one_direction_only_has_no_request_of_the_other() {
    for (write_ratio, other) in [(0.0, Direction::Write), (1.0, Direction::Read)] {
        let volume = with_write_ratio(write_ratio);
        let requests: Vec<_> = Generator::new(&volume, 50_000, 1).unwrap().collect();
        assert!(requests.iter().all(|request| request.direction != other));
        let stats = measure(&volume, 300_000, 1);
        for row in volume.columns(300_000).compare(&stats) {
            assert!(row.error() <= TOLERANCE, "{row:?}");
        }
    }
}

#[test]
fn requests_smaller_than_a_page_are_made_where_the_mix_has_them() {
    let mut volume = with_write_ratio(0.9);
    volume.shape.write_sizes = vec![(0.5, 5.0), (1.0, 75.0), (4.0, 8.0), (8.0, 5.0), (16.0, 2.0)];
    volume.write_mean_kib = 2.3;
    volume.accessed_gib = volume.requests as f64 * volume.mean_kib() / (1 << 20) as f64;
    volume.working_set_gib = volume.columns(volume.requests).written_set / (1u64 << 30) as f64 + 0.3;
    volume.check().unwrap();
    let stats = measure(&volume, 200_000, 1);
    assert_eq!(stats.writes.size_p50.unwrap().0, 1024);
    for column in ["write_ratio", "write_mean", "sequential_share", "working_set", "burst_share"] {
        let rows = volume.columns(200_000).compare(&stats);
        let row = rows.iter().find(|row| row.column == column).unwrap();
        assert!(row.error() <= TOLERANCE, "{row:?}");
    }
}

#[test]
fn streams_of_a_handful_of_requests_are_made_as_well() {
    for (name, _) in VOLUMES {
        let volume = volume(name).unwrap();
        for requests in [0, 1, 2, 10] {
            let made: Vec<_> = Generator::new(&volume, requests, 1).unwrap().collect();
            assert_eq!(made.len() as u64, requests, "{name}");
        }
    }
}

#[test]
fn same_seed_same_requests_and_other_seed_other_requests() {
    let volume = volume("gc-hm_0").unwrap();
    let stream = |seed| Generator::new(&volume, 20_000, seed).unwrap().collect::<Vec<_>>();
    assert_eq!(stream(7), stream(7));
    let (one, other) = (stream(7), stream(8));
    let differ = one.iter().zip(&other).filter(|(a, b)| a.start != b.start || a.arrival != b.arrival).count();
    assert!(differ > 19_000, "{differ}");
}

#[test]
fn a_shorter_stream_is_the_beginning_of_a_longer_one_whatever_the_batches() {
    let volume = volume("piq-prn_1").unwrap();
    let long: Vec<_> = Generator::new(&volume, 30_000, 5).unwrap().take(10_000).collect();
    let mut short = Vec::new();
    let mut generator = Generator::new(&volume, 10_000, 5).unwrap();
    let mut limit = 1;
    while generator.next_batch(&mut short, limit) > 0 {
        limit = limit % 700 + 13;
    }
    assert_eq!(short, long);
}

#[test]
fn every_shipped_volume_names_a_source_for_every_number_and_bears_the_name_it_is_listed_under() {
    for (name, _) in VOLUMES {
        let volume = volume(name).unwrap();
        assert_eq!(volume.name, *name);
        let missing: Vec<_> =
            volume.keys().into_iter().filter(|key| !volume.sources.contains_key(key)).collect();
        assert_eq!(missing, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn requests_stay_inside_the_span_arrive_in_order_and_are_whole_pages() {
    for (name, _) in VOLUMES {
        let volume = volume(name).unwrap();
        let end = (volume.address_span() / 512.0) as u64;
        let mut last = planewise_model::Ns::ZERO;
        for request in Generator::new(&volume, 20_000, 11).unwrap() {
            assert!(
                request.end().0 <= end && request.arrival >= last && request.sectors > 0,
                "{name}: {request:?}"
            );
            assert!(
                request.start.0.is_multiple_of(8) && request.sectors.is_multiple_of(8),
                "{name}: {request:?}"
            );
            last = request.arrival;
        }
    }
}

/// A shared excerpt with its times divided by ten, as the inter-arrival times of Table II are.
fn excerpt(file: &str) -> Option<TraceStats> {
    let format = crate::formats::by_name("msr").unwrap();
    let trace = crate::formats::testing::read_shared(format, file, None)?;
    let mut builder = StatsBuilder::new(StatsOptions::default()).unwrap();
    let start = trace.requests.iter().map(|request| request.arrival.0).min()?;
    for request in &trace.requests {
        let arrival = planewise_model::Ns((request.arrival.0 - start) / 10);
        builder.add(&Request { arrival, ..*request });
    }
    Some(builder.finish())
}

#[test]
fn bursts_have_the_shape_of_the_excerpts_on_the_time_scale_of_the_table() {
    for (name, file) in [("hm_0", "msr/hm_0.excerpt1k.csv.zst"), ("prxy_0", "msr/prxy_0.first20k.csv.zst")] {
        let Some(measured) = excerpt(file) else { return };
        let volume = volume(&format!("piq-{name}")).unwrap();
        let shape = &volume.shape;
        let gap = measured.burst_gap_mean.unwrap() / 1e3;
        assert!((shape.burst_gap_mean_us / gap - 1.0).abs() < 0.01, "{name}: {gap} us");
        let length = measured.burst_length_mean.unwrap();
        assert!((shape.burst_length_mean / length - 1.0).abs() < 0.015, "{name}: {length}");
        // And the stream is made so.
        let made = measure(&volume, 200_000, DEFAULT_SEED);
        assert!((made.burst_gap_mean.unwrap() / 1e3 / gap - 1.0).abs() < 0.05, "{name}");
    }
}

#[test]
fn the_two_variants_of_hm_0_differ_in_their_write_ratio() {
    let (piq, gc) = (volume("piq-hm_0").unwrap(), volume("GC-HM_0").unwrap());
    assert!((piq.write_ratio - 0.75).abs() < 0.001 && (gc.write_ratio - 0.629).abs() < 1e-9);
}

#[test]
fn an_unknown_volume_is_answered_with_the_nearest_name() {
    let error = volume("piq-hm0").unwrap_err().to_string();
    assert!(
        error.starts_with("unknown volume 'piq-hm0' (did you mean 'piq-hm_0'?); known: piq-hm_0,"),
        "{error}"
    );
    let error = volume_or_file("/nowhere/mine.toml").err().unwrap().to_string();
    assert!(error.starts_with("/nowhere/mine.toml: "), "{error}");
}

#[test]
fn a_description_of_ones_own_is_read_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mine.toml");
    let text = VOLUMES[0].1.replace("piq-hm_0", "mine");
    std::fs::write(&path, text).unwrap();
    assert_eq!(volume_or_file(path.to_str().unwrap()).unwrap().name, "mine");
}

/// The text of a volume with one line replaced.
fn with(key: &str, line: &str) -> String {
    let text = VOLUMES.iter().find(|(name, _)| *name == "gc-hm_0").unwrap().1;
    let is_key = |text: &str| text.split('=').next().is_some_and(|left| left.trim() == key);
    let mut done = false;
    let lines = text.lines().map(|old| {
        let hit = !done && is_key(old);
        done |= hit;
        if hit { line } else { old }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn wrong_descriptions_name_file_line_key_and_what_is_allowed() {
    let cases = [
        ("write_ratio", "write_ration = 0.5", "unknown key 'write_ration' (did you mean 'write_ratio'?)"),
        ("write_ratio", "write_ratio = 1.5", "key 'write_ratio': 1.5; allowed: 0 to 1"),
        ("write_ratio", "write_ratio = nan", "key 'write_ratio': NaN; allowed: 0 to 1"),
        (
            "write_ratio",
            "write_ratio = \"half\"",
            "key 'write_ratio': found string \"half\"; allowed: a number",
        ),
        ("write_ratio", "", "missing field `write_ratio`"),
        ("requests", "requests = 0", "key 'requests': 0; allowed: 1 to"),
        ("requests", "requests = 1000000", "key 'accessed_gib': 33.3; requests times mean size make 11.4"),
        ("streams", "streams = 40", "key 'streams': 40; allowed: 1 to 12"),
        ("reuse_skew", "reuse_skew = inf", "key 'reuse_skew': inf; allowed: 0 to 0.99"),
        (
            "burst_length_mean",
            "burst_length_mean = 3",
            "key 'burst_length_mean': 3; allowed with this burst_share",
        ),
        ("inter_arrival_ms", "inter_arrival_ms = 0.05", "key 'inter_arrival_ms': 0.05; burst_share and"),
        (
            "working_set_gib",
            "working_set_gib = 0.5",
            "key 'working_set_gib': 0.5; the writes and update_share make",
        ),
        (
            "working_set_gib",
            "working_set_gib = 30",
            "key 'working_set_gib': 30; the writes and update_share make",
        ),
        ("address_span_gib", "address_span_gib = 2", "key 'address_span_gib': 2; allowed: at least 2.375"),
        (
            "read_sizes",
            "read_sizes = [[4.2, 1]]",
            "key 'read_sizes': a size of 4.2 KiB; allowed: multiples of 0.5",
        ),
        (
            "read_sizes",
            "read_sizes = [[4, 1], [8, 1]]",
            "key 'read_mean_kib': 11.2; allowed by read_sizes: between 4 and 8",
        ),
        ("read_sizes", "read_sizes = []", "key 'read_sizes': 0 sizes"),
        (
            "[sources]",
            "[sources]\nwrite_ratios = \"x\"",
            "unknown key 'write_ratios' (did you mean 'write_ratio'?)",
        ),
    ];
    for (key, line, expected) in cases {
        let error = VolumeDescription::parse(&with(key, line), "mine.toml").unwrap_err().to_string();
        assert!(
            error.starts_with("mine.toml") && error.contains(expected) && !error.contains('\n'),
            "{line}: {error}"
        );
    }
    let error = VolumeDescription::parse(&with("write_ratio", "write_ratio = 1.5"), "mine.toml").unwrap_err();
    assert!(error.line.is_some());
}

#[test]
fn a_stream_too_long_for_its_span_is_refused_with_the_span_it_needs() {
    let error = Generator::new(&volume("gc-prxy_0").unwrap(), 100_000_000, 1).err().unwrap().to_string();
    assert!(error.starts_with("100000000 requests of 'gc-prxy_0' need an address_span_gib of 5"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn any_description_that_passes_its_check_makes_a_stream_that_matches(
        seed in any::<u64>(),
        write_ratio in 0.1f64..0.9,
        sequential_share in 0.2f64..0.95,
        burst_share in 0.1f64..0.85,
        update_share in 0.3f64..0.98,
        read_only in 0.02f64..0.5,
        read_mean_kib in 6.0f64..60.0,
        write_mean_kib in 6.0f64..60.0,
        streams in 1u32..12,
        skew in 0.0f64..0.9,
    ) {
        let mut volume = volume("gc-hm_0").unwrap();
        let requests = 200_000u64;
        let gib = |mean: f64| requests as f64 * mean / (1 << 20) as f64;
        volume.requests = requests;
        (volume.write_ratio, volume.sequential_share) = (write_ratio, sequential_share);
        (volume.burst_share, volume.update_share) = (burst_share, update_share);
        (volume.read_mean_kib, volume.write_mean_kib) = (read_mean_kib, write_mean_kib);
        volume.accessed_gib = gib(volume.mean_kib());
        volume.working_set_gib = gib(write_ratio * write_mean_kib) * (1.0 - update_share)
            + gib((1.0 - write_ratio) * read_mean_kib) * read_only;
        volume.shape.burst_length_mean = (1.3 / (1.0 - burst_share)).max(4.0);
        volume.shape.streams = streams;
        volume.shape.reuse_skew = skew;
        prop_assert_eq!(misses(&volume, requests, seed), Vec::<String>::new());
    }

    #[test]
    fn no_text_makes_the_description_parser_panic(cut in 0usize..4000, junk in "[ -~\n]{0,40}") {
        let text = VOLUMES[3].1;
        let cut = text.floor_char_boundary(cut.min(text.len()));
        let _ = VolumeDescription::parse(&format!("{}{junk}{}", &text[..cut], &text[cut..]), "any.toml");
    }
}
