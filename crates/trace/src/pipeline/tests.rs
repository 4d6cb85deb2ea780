use super::*;
use crate::formats::testing::shared;
use crate::formats::{FORMATS, TimeUnit};
use planewise_model::Direction;
use proptest::prelude::*;

fn open(text: &str, options: &TraceOptions) -> Result<Trace, TraceError> {
    Trace::from_input(Input::from_bytes("t", text.as_bytes().to_vec()), options)
}

/// Reads to the end in batches of an odd size.
fn drain(mut trace: Trace) -> Result<Vec<Request>, TraceError> {
    let mut requests = Vec::new();
    while trace.next_batch(&mut requests, 37)? > 0 {}
    assert_eq!(trace.requests_delivered(), requests.len() as u64);
    Ok(requests)
}

fn read(text: &str, options: &TraceOptions) -> Result<Vec<Request>, TraceError> {
    open(text, options).and_then(drain)
}

fn message<T: std::fmt::Debug>(result: Result<T, TraceError>) -> String {
    result.unwrap_err().to_string()
}

fn spc(times: impl IntoIterator<Item = u64>) -> String {
    times.into_iter().enumerate().map(|(n, time)| format!("0,{n},512,r,{time}\n")).collect()
}

fn seconds(requests: &[Request]) -> Vec<u64> {
    requests.iter().map(|request| request.arrival.0 / 1_000_000_000).collect()
}

fn window(sort_window: usize) -> TraceOptions {
    TraceOptions { sort_window, ..TraceOptions::default() }
}

fn volume(name: &str) -> TraceOptions {
    TraceOptions { volume: Some(name.to_owned()), ..TraceOptions::default() }
}

fn format(name: &str, time_unit: Option<TimeUnit>) -> TraceOptions {
    let read = ReadOptions { time_unit, ..ReadOptions::default() };
    TraceOptions { format: Some(name.to_owned()), read, ..TraceOptions::default() }
}

#[test]
fn the_smallest_stamp_of_an_unsorted_file_becomes_zero() {
    let requests = read(&spc([7, 5, 9, 6]), &TraceOptions::default()).unwrap();
    assert_eq!(seconds(&requests), [0, 1, 2, 4]);
    assert_eq!(requests.iter().map(|request| request.start.0).collect::<Vec<_>>(), [1, 3, 0, 2]);
}

#[test]
fn absolute_file_times_near_the_end_of_64_bits_are_rebased_exactly() {
    let text = "184467440737095515,h,0,Read,0,512,1\n184467440737095516,h,0,Read,0,512,1\n";
    let requests = read(text, &TraceOptions::default()).unwrap();
    assert_eq!(requests.iter().map(|request| request.arrival.0).collect::<Vec<_>>(), [0, 100]);
}

#[test]
fn a_request_too_late_for_the_window_is_an_error_with_its_line_and_the_remedy() {
    let text = spc([10, 20, 30, 40, 50, 60, 5]);
    let error = message(read(&text, &window(2)));
    assert!(
        error.starts_with("t:7: a request 35.00 s earlier") && error.contains("--sort-window 65536"),
        "{error}"
    );
    assert_eq!(seconds(&read(&text, &window(6)).unwrap()), [0, 5, 15, 25, 35, 45, 55]);
    let error = message(read(&spc([2, 1]), &window(0)));
    assert!(error.starts_with("t:2: ") && error.contains("--sort-window"), "{error}");
    assert_eq!(seconds(&read(&spc([1, 1, 2]), &window(0)).unwrap()), [0, 0, 1]);
}

#[test]
fn the_limit_counts_requests_of_the_chosen_volume() {
    let text: String = (0..100).map(|n| format!("{},{n},512,r,{n}\n", n % 4)).collect();
    let options = TraceOptions { limit: Some(5), ..volume("2") };
    let requests = read(&text, &options).unwrap();
    assert_eq!(requests.iter().map(|request| request.start.0).collect::<Vec<_>>(), [2, 6, 10, 14, 18]);
    assert!(requests.iter().all(|request| request.volume == 2) && requests[0].arrival == Ns::ZERO);
    assert!(read(&text, &TraceOptions { limit: Some(0), ..TraceOptions::default() }).unwrap().is_empty());
    assert_eq!(read(&text, &TraceOptions::default()).unwrap().len(), 100, "all volumes when none is chosen");
}

#[test]
fn volumes_are_chosen_by_name_or_by_disk_number_and_an_unknown_one_is_answered_with_those_there_are() {
    let text =
        "1,hm,0,Read,0,512,1\n2,hm,1,Read,512,512,1\n3,usr,1,Read,1024,512,1\n4,hm,0,Read,1536,512,1\n";
    let starts =
        |name| read(text, &volume(name)).map(|all| all.iter().map(|r| r.start.0).collect::<Vec<_>>());
    assert_eq!(starts("hm_0").unwrap(), [0, 3]);
    assert_eq!(starts("0").unwrap(), [0, 3]);
    assert_eq!(starts("usr_1").unwrap(), [2]);
    let error = message(starts("1"));
    assert!(error.contains("volume 1 is hm_1 and usr_1") && error.contains("--volume usr_1"), "{error}");
    let error = message(starts("hm_2"));
    assert!(error.contains("unknown volume 'hm_2' (did you mean 'hm_"), "{error}");
    let error = message(read("7,0,512,r,0\n9,0,512,r,0\n", &volume("8")));
    assert_eq!(error, "unknown volume '8'; known: 7, 9");
}

#[test]
fn forms_that_look_alike_are_asked_for_and_so_is_their_unit() {
    let text = "26214000 0 303574 7 0\n26214001 1 240840 6 1\n";
    let error = message(open(text, &TraceOptions::default()));
    let expected = "t: the content fits the formats ssdsim, mqsim, disksim; name the one it is, \
                    e.g. --format ssdsim --time-unit ns";
    assert_eq!(error, expected);
    let error = message(open(text, &format("mqsim", None)));
    assert!(error.contains("the unit of its times; give it: --format mqsim --time-unit ns"), "{error}");
    let requests = read(text, &format("ssdsim", Some(TimeUnit::Microseconds))).unwrap();
    assert_eq!(requests[1].arrival, Ns(1_000));
    let fractions = "15849.28847 0 6198696 8 0\n15850.59734 0 6198704 2048 1\n";
    let trace = open(fractions, &TraceOptions::default()).unwrap();
    assert_eq!(trace.format().name, "disksim", "the only one with fractions, and its unit is fixed");
}

#[test]
fn names_of_formats_and_units_are_answered_with_the_nearest() {
    let error = message(open("", &format("ssdsym", None)));
    assert!(error.contains("unknown trace format 'ssdsym' (did you mean 'ssdsim'?)"), "{error}");
    assert!("usec".parse::<TimeUnit>().unwrap_err().to_string().contains("known: ns, us, ms, s"));
    assert_eq!("us".parse::<TimeUnit>(), Ok(TimeUnit::Microseconds));
}

#[test]
fn files_without_requests_and_files_of_no_format_are_errors() {
    assert_eq!(
        message(open("", &TraceOptions::default())),
        "t: an empty file; allowed: a trace with at least one request"
    );
    for text in ["", "\n\n", "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n"] {
        let error = message(read(text, &format("msr", None)));
        assert!(error.starts_with("t: no request in msr"), "{error}");
    }
    let error = message(open("\u{0}\u{1}\u{2}binary\u{7f}", &TraceOptions::default()));
    assert!(
        error.contains("no known format; it begins '\\x00\\x01\\x02binary") && error.contains("msr, spc"),
        "{error}"
    );
}

#[test]
fn a_folder_is_a_trace_of_no_format_but_blktrace() {
    let folder = tempfile::tempdir().unwrap();
    let error = message(Trace::open(folder.path(), &format("msr", None)));
    assert!(error.contains("a folder; allowed: a file; of all formats only blktrace"), "{error}");
    let error = message(Trace::open(folder.path(), &TraceOptions::default()));
    assert!(error.contains("<device>.blktrace.<cpu>"), "{error}");
}

#[test]
fn a_file_of_two_formats_fails_at_the_line_where_the_second_begins() {
    let text = format!("{}26214000 0 303574 7 0\n", spc(0..100));
    let error = message(read(&text, &TraceOptions::default()));
    assert!(error.starts_with("t:101: ASU '26214000 0 303574 7 0'"), "{error}");
    let text = format!("{}0,12,51", spc(0..100));
    let error = message(read(&text, &TraceOptions::default()));
    assert!(error.starts_with("t:101: no Opcode: the line ends before it"), "{error}");
}

#[test]
fn every_shared_trace_is_recognised_or_asked_about_and_arrives_in_order_from_zero() {
    for (file, name, count, must_ask) in [
        ("msr/prxy_0.first20k.csv.zst", "msr", 20_000, false),
        ("msr/hm_0.excerpt1k.csv.zst", "msr", 1_000, false),
        ("derived/sqlite_wal.msrfmt.csv.zst", "msr", 115_533, false),
        ("derived/financial1.first10k.spc.zst", "spc", 10_000, false),
        ("umass/financial1.first10k.ssdsim.ascii.zst", "ssdsim", 10_000, true),
        ("mqsim/wsrch-small.trace.zst", "mqsim", 24_783, true),
        ("mqsim/tpcc-small.trace.zst", "mqsim", 6_999, true),
        ("disksim/pcmark.trace.zst", "disksim", 56_088, false),
        ("cloudphysics/cloudPhysicsIO.csv.zst", "cloudphysics", 113_872, false),
        ("cloudphysics/cloudPhysicsIO.vscsi.zst", "vscsi", 113_872, false),
        ("systor17/systor17-traces-sample.csv.zst", "systor", 999, false),
        ("tencent/tencent-cbs-2018-10-01.50k.csv.zst", "tencent", 50_000, false),
    ] {
        let Some(path) = shared(file) else { continue };
        let mut options = TraceOptions::default();
        if must_ask {
            assert!(matches!(Trace::open(&path, &options), Err(TraceError::Ambiguous { .. })), "{file}");
            options = format(name, Some(TimeUnit::Nanoseconds));
        }
        let trace = Trace::open(&path, &options).unwrap();
        assert_eq!(trace.format().name, name, "{file}");
        let requests = drain(trace).unwrap();
        assert_eq!((requests.len(), requests[0].arrival), (count, Ns::ZERO), "{file}");
        assert!(requests.is_sorted_by_key(|request| request.arrival), "{file}");
    }
    for (file, name) in [
        ("blktrace-bin/hadoop.eternity8.sdb.blktrace.tar.zst", "blktrace"),
        ("blktrace-txt/leveldb-ram0.blkparse.txt.zst", "blkparse"),
        ("blktrace-txt/nvme0n1.blkparse.txt.zst", "blkparse"),
        ("self-captured/fio-3.33.randrw.v3.iolog.zst", "iolog"),
        ("self-captured/pgbench_tpcb.loop-ext4.first400k.ftrace.txt.zst", "ftrace"),
    ] {
        let Some(path) = shared(file) else { continue };
        let trace = Trace::open(&path, &TraceOptions::default()).unwrap();
        assert_eq!(trace.format().name, name, "{file}");
        let requests = drain(trace).unwrap();
        assert!(
            requests.is_sorted_by_key(|request| request.arrival) && requests[0].arrival == Ns::ZERO,
            "{file}"
        );
    }
}

/// Any lines in any format: words of all of them, and noise.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        "[0-9]{1,21}",
        "[0-9]{1,12}\\.[0-9]{0,12}",
        "Read|Write|R|W|r|w|0|1|28|2a",
        "hm|usr|-1|nan|inf|1e9",
        "[ -~]{0,6}",
    ];
    let line = (proptest::collection::vec(word, 0..9), "[, \t]")
        .prop_map(|(words, separator)| words.join(&separator));
    let text = proptest::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n").into_bytes());
    prop_oneof![text, proptest::collection::vec(any::<u8>(), 0..300)]
}

proptest! {
    #[test]
    fn no_bytes_make_any_reader_panic_or_deliver_nonsense(bytes in noise()) {
        for known in FORMATS {
            if let Ok(requests) = formats::parse_all(known, &bytes) {
                prop_assert!(requests.iter().all(|request| request.sectors > 0), "{}", known.name);
            }
        }
        let _ = Input::from_reader("t", Box::new(std::io::Cursor::new(bytes.clone())))
            .and_then(|input| Trace::from_input(input, &TraceOptions::default()))
            .and_then(drain);
    }

    #[test]
    fn sorting_in_the_window_equals_a_full_stable_sort_or_is_refused(
        steps in proptest::collection::vec(0..20u64, 1..300),
        window_size in 0..40usize,
        batch in 1..50usize,
    ) {
        let times: Vec<u64> = steps.iter().enumerate().map(|(n, step)| n as u64 + step).collect();
        let mut expected: Vec<(u64, u64)> = times.iter().enumerate().map(|(n, time)| (*time, n as u64)).collect();
        expected.sort();
        let base = expected[0].0;
        let displaced = |n: usize| times[..n].iter().filter(|time| **time > times[n]).count();
        let worst = (0..times.len()).map(displaced).max().unwrap();
        let mut trace = open(&spc(times.iter().copied()), &window(window_size)).unwrap();
        let mut requests = Vec::new();
        let result = loop {
            match trace.next_batch(&mut requests, batch) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error),
            }
        };
        prop_assert!(result.is_ok() || worst > window_size, "worst {worst}: {result:?}");
        if result.is_ok() {
            let found: Vec<(u64, u64)> =
                requests.iter().map(|r| (r.arrival.0 / 1_000_000_000 + base, r.start.0)).collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_trace_written_in_any_format_and_read_back_keeps_place_size_and_direction(
        rows in proptest::collection::vec((0..1u64 << 40, 0..1u64 << 40, 1..1u32 << 20, any::<bool>()), 1..40)
    ) {
        let mut rows = rows;
        rows.sort();
        let requests: Vec<Request> = rows
            .iter()
            .map(|&(time, start, sectors, write)| {
                let direction = if write { Direction::Write } else { Direction::Read };
                Request::new(Ns((time - rows[0].0) * 1_000), planewise_model::Lsn(start), sectors, direction)
            })
            .collect();
        for known in FORMATS.iter().filter(|known| known.create.is_some() && known.name != "tencent") {
            let bytes = crate::formats::testing::write_all(known, &requests).unwrap();
            let options = format(known.name, known.time_unit_open.then_some(TimeUnit::Nanoseconds));
            let trace = Trace::from_input(Input::from_bytes("t", bytes), &options).unwrap();
            let found: Vec<Request> = drain(trace).unwrap();
            prop_assert_eq!(&found, &requests, "{}", known.name);
        }
    }
}

fn lumps(spread: Option<Ns>, sort_window: usize) -> TraceOptions {
    TraceOptions { spread, sort_window, ..TraceOptions::default() }
}

#[test]
fn requests_of_one_second_are_spread_over_it_when_that_is_asked_for() {
    const SECOND: Ns = Ns(1_000_000_000);
    let text = spc([5, 5, 5, 5, 6, 8, 8]);
    let expected = [0, 250, 500, 750, 1000, 3000, 3500].map(|ms| ms * 1_000_000);
    for window in [0, 1, 3, 100] {
        let requests = read(&text, &lumps(Some(SECOND), window)).unwrap();
        assert_eq!(
            requests.iter().map(|request| request.arrival.0).collect::<Vec<_>>(),
            expected,
            "{window}"
        );
        assert!(requests.iter().map(|request| request.start.0).is_sorted(), "in the order of the file");
    }
    // Another step of the clock.
    let requests = read(&text, &lumps(Some(Ns(1_000)), 4)).unwrap();
    assert_eq!(requests[3].arrival, Ns(750));
    // A step longer than the way to the next stamp ends there: no request passes another.
    for window in [0, 1, 100] {
        let requests = read(&text, &lumps(Some(Ns(10_000_000_000)), window)).unwrap();
        assert!(requests.is_sorted_by_key(|request| request.arrival), "{window}");
        assert_eq!(requests[3].arrival, Ns(750_000_000));
    }
    // A lump larger than all that is looked at together.
    let requests = read(&spc([7; 1000].into_iter().chain([9])), &lumps(Some(SECOND), 5)).unwrap();
    assert!(requests.windows(2).all(|pair| pair[0].arrival < pair[1].arrival));
    assert_eq!(requests[999].arrival, Ns(999_000_000));
}

#[test]
fn lumps_of_whole_seconds_are_told_and_fine_stamps_are_not() {
    let warnings = |text: &str, options: &TraceOptions| {
        let mut trace = open(text, options).unwrap();
        let mut requests = Vec::new();
        while trace.next_batch(&mut requests, 37).unwrap() > 0 {}
        trace.warnings()
    };
    let coarse = spc((0..300).map(|number| number / 100));
    let told = warnings(&coarse, &TraceOptions::default());
    assert!(
        told.len() == 1 && told[0].contains("about 100 requests") && told[0].contains("--spread-arrivals"),
        "{told:?}"
    );
    assert_eq!(warnings(&coarse, &lumps(Some(Ns(1_000_000_000)), 10)), Vec::<String>::new());
    assert_eq!(warnings(&spc(0..300), &TraceOptions::default()), Vec::<String>::new(), "one a second");
    assert_eq!(warnings(&spc([1; 20]), &TraceOptions::default()), Vec::<String>::new(), "too few to tell");
    let fine = coarse.replacen("r,1\n", "r,1.5\n", 1);
    assert_eq!(warnings(&fine, &TraceOptions::default()), Vec::<String>::new());
}

proptest! {
    #[test]
    fn spread_requests_stay_in_their_order_and_within_their_step(
        gaps in proptest::collection::vec(0u64..3, 1..200),
        window in 0usize..20,
    ) {
        let mut now = 100;
        let times: Vec<u64> = gaps.iter().map(|gap| { now += gap / 2; now }).collect();
        let requests = read(&spc(times.iter().copied()), &lumps(Some(Ns(1_000_000_000)), window)).unwrap();
        for (request, time) in requests.iter().zip(&times) {
            prop_assert_eq!(request.arrival.0 / 1_000_000_000, time - times[0]);
        }
        prop_assert!(requests.windows(2).all(|pair| pair[0].arrival < pair[1].arrival));
    }
}

#[test]
fn volumes_that_were_met_are_counted() {
    let text = "3,0,512,r,0\n5,1,512,r,1\n3,2,512,r,2\n";
    let mut trace = open(text, &TraceOptions::default()).unwrap();
    let mut requests = Vec::new();
    while trace.next_batch(&mut requests, 10).unwrap() > 0 {}
    assert_eq!(trace.volumes(), 2);
}
