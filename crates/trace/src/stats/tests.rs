use super::*;

fn read(arrival_us: u64, start: u64, sectors: u32) -> Request {
    Request::new(Ns::from_micros(arrival_us), Lsn(start), sectors, Direction::Read)
}

fn write(arrival_us: u64, start: u64, sectors: u32) -> Request {
    Request::new(Ns::from_micros(arrival_us), Lsn(start), sectors, Direction::Write)
}

fn measure(requests: &[Request]) -> TraceStats {
    let mut builder = StatsBuilder::new(StatsOptions::default()).unwrap();
    requests.iter().for_each(|request| builder.add(request));
    builder.finish()
}

#[test]
fn an_empty_trace_has_zeros_and_absences_and_one_request_has_no_gaps() {
    let empty = measure(&[]);
    assert_eq!((empty.requests, empty.working_set, empty.duration), (0, Bytes(0), Ns::ZERO));
    assert_eq!(
        (empty.write_ratio, empty.burst_share, empty.iops, empty.first_sector),
        (None, None, None, None)
    );
    let one = measure(&[read(500, 0, 8)]);
    assert_eq!((one.requests, one.inter_arrival_mean, one.burst_share, one.iops), (1, None, None, None));
    assert_eq!((one.write_ratio, one.writes.size_mean), (Some(0.0), None));
}

#[test]
fn a_burst_is_a_chain_of_gaps_of_at_most_a_fifth_of_a_millisecond() {
    let stats = measure(&[
        read(0, 0, 8),
        read(200, 0, 8), // exactly at the limit: in
        read(300, 0, 8),
        read(501, 0, 8), // 201 us: out
        read(10_000, 0, 8),
        read(10_000, 0, 8), // at the same time: in
    ]);
    assert_eq!(stats.burst_share, Some(3.0 / 5.0));
    assert_eq!((stats.bursts, stats.burst_length_max, stats.burst_length_mean), (2, 3, Some(2.5)));
    assert_eq!(stats.burst_gap_mean, Some(100_000.0));
    assert_eq!(stats.inter_arrival_mean, Some(2_000_000.0));
    assert_eq!(stats.iops, Some(600.0));
}

#[test]
fn working_set_and_updates_count_pages_not_requests() {
    let stats = measure(&[
        write(0, 0, 16),  // pages 0, 1
        write(1, 7, 2),   // unaligned over pages 0 and 1: two updates
        write(2, 8, 16),  // pages 1 (update) and 2
        read(3, 1000, 1), // page 125
        read(4, 0, 8),    // page 0 again
    ]);
    assert_eq!(stats.working_set, Bytes(4 * 4096));
    assert_eq!(stats.written_set, Bytes(3 * 4096));
    assert_eq!(stats.update_share, Some(3.0 / 6.0));
    assert_eq!(stats.accessed, Bytes(43 * 512));
    assert_eq!(stats.aligned_share, Some(3.0 / 5.0));
    assert_eq!((stats.first_sector, stats.end_sector), (Some(Lsn(0)), Some(Lsn(1001))));
    assert_eq!(stats.write_ratio, Some(0.6));
}

#[test]
fn pages_of_different_volumes_are_different_and_streams_do_not_cross_volumes() {
    let on = |volume, process, start| Request { volume, process, ..read(0, start, 8) };
    let stats = measure(&[on(0, 1, 0), on(1, 1, 8), on(1, 2, 16), on(0, 1, 8)]);
    assert_eq!((stats.volumes, stats.processes), (2, 2));
    assert_eq!(stats.working_set, Bytes(4 * 4096));
    // Page 8 of volume 1 follows nothing; both last requests continue their own volume.
    assert_eq!((stats.sequential_share, stats.sequential_share_strict), (Some(0.5), Some(0.5)));
}

#[test]
fn strict_and_stream_sequential_shares_differ_where_streams_interleave() {
    let mut requests = Vec::new();
    for step in 0..50 {
        requests.push(read(step, step * 8, 8));
        requests.push(write(step, 1_000_000 + step * 8, 8));
    }
    let stats = measure(&requests);
    assert_eq!(stats.sequential_share_strict, Some(0.0));
    assert_eq!(stats.sequential_share, Some(0.98));
}

#[test]
fn size_percentiles_are_sizes_that_occur() {
    let requests: Vec<_> = (0..100)
        .map(|i| {
            read(
                i,
                0,
                if i < 90 {
                    8
                } else if i < 99 {
                    64
                } else {
                    256
                },
            )
        })
        .collect();
    let reads = measure(&requests).reads;
    assert_eq!((reads.size_p50, reads.size_p90), (Some(Bytes(4096)), Some(Bytes(4096))));
    assert_eq!((reads.size_p99, reads.size_max), (Some(Bytes(32768)), Some(Bytes(131_072))));
    assert_eq!(reads.size_mean, Some((90.0 * 8.0 + 9.0 * 64.0 + 256.0) * 512.0 / 100.0));
}

#[test]
fn stamps_that_step_back_are_counted_and_do_no_harm() {
    let stats = measure(&[read(100, 0, 8), read(50, 0, 8), read(1000, 0, 8)]);
    assert_eq!((stats.out_of_order, stats.duration), (1, Ns::from_micros(950)));
    assert_eq!(stats.burst_share, Some(0.5));
}

#[test]
fn a_request_at_the_end_of_the_address_space_is_measured() {
    let stats = measure(&[write(0, u64::MAX - 3, 8), read(0, u64::MAX, 8)]);
    assert_eq!(stats.requests, 2);
    assert_eq!(stats.end_sector, Some(Lsn(u64::MAX)));
}

#[test]
fn options_out_of_range_are_named() {
    for page in [0, 100, 4097] {
        let error =
            StatsBuilder::new(StatsOptions { page_size: Bytes(page), ..StatsOptions::default() }).err();
        assert!(
            error
                .unwrap()
                .to_string()
                .starts_with(&format!("page_size = {page}; allowed: a positive multiple"))
        );
    }
    let streams = StatsOptions { sequential_streams: 0, ..StatsOptions::default() };
    assert!(StatsBuilder::new(streams).err().unwrap().to_string().contains("sequential_streams = 0"));
}

/// A real trace, where the collection of traces is at hand.
fn real(path: &str) -> Option<TraceStats> {
    let workspace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let folder = std::env::var("PLANEWISE_TRACES").unwrap_or_else(|_| workspace.to_owned());
    let path = std::path::Path::new(&folder).join(path);
    if !path.exists() {
        println!("skipped: {} is not there", path.display());
        return None;
    }
    let mut trace = crate::Trace::open(&path, &crate::TraceOptions::default()).unwrap();
    let mut builder = StatsBuilder::new(StatsOptions::default()).unwrap();
    let mut batch = Vec::new();
    while trace.next_batch(&mut batch, 1000).unwrap() > 0 {
        batch.drain(..).for_each(|request| builder.add(&request));
    }
    Some(builder.finish())
}

/// The numbers come from a separate script that holds the whole trace as lists and sets.
#[test]
fn the_head_of_prxy_0_measures_as_an_independent_count_of_it() {
    let Some(stats) = real("msr/prxy_0.first20k.csv.zst") else { return };
    assert_eq!((stats.requests, stats.writes.requests), (20_000, 19_664));
    assert_eq!(stats.working_set, Bytes(2980 * 4096));
    assert!((stats.burst_share.unwrap() - 0.215_310_765_5).abs() < 1e-9);
    assert!((stats.inter_arrival_mean.unwrap() - 46_943_935.42).abs() < 1.0);
    assert!((stats.burst_gap_mean.unwrap() - 37_977.38).abs() < 0.01);
    assert_eq!((stats.bursts, stats.burst_length_max), (1491, 66));
    assert!((stats.reads.size_mean.unwrap() - 18_116.571_428).abs() < 1e-3);
    assert_eq!(stats.sequential_share_strict, Some(0.69975));
    assert_eq!(stats.sequential_share, Some(0.8569));
}
