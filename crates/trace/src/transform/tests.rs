use super::*;
use planewise_model::Direction;
use proptest::prelude::*;

fn at(arrival_us: u64, start: u64, sectors: u32) -> Request {
    Request::new(Ns::from_micros(arrival_us), Lsn(start), sectors, Direction::Write)
}

/// A source over a list, in the batches asked for.
struct List<'a>(std::slice::Iter<'a, Request>);

impl Source for List<'_> {
    type Error = Infallible;

    fn next_batch(&mut self, batch: &mut Vec<Request>, limit: usize) -> Result<usize, Infallible> {
        let before = batch.len();
        batch.extend(self.0.by_ref().take(limit).copied());
        Ok(batch.len() - before)
    }
}

fn through<T: Transform>(requests: &[Request], transform: T, limit: usize) -> Vec<Request> {
    let mut source = List(requests.iter()).then(transform);
    let mut all = Vec::new();
    while source.next_batch(&mut all, limit).unwrap() > 0 {}
    all
}

const ALL_TIMES: Range<Ns> = Ns::ZERO..Ns::MAX;
const ALL_SECTORS: Range<Lsn> = Lsn(0)..Lsn(u64::MAX);

#[test]
fn a_cut_by_time_keeps_the_half_open_range_and_starts_at_zero() {
    let requests = [at(0, 0, 8), at(10, 8, 8), at(19, 16, 8), at(20, 24, 8), at(30, 32, 8)];
    let cut = Cut::new(Ns::from_micros(10)..Ns::from_micros(20), 0..u64::MAX, ALL_SECTORS).unwrap();
    for limit in [1, 2, 100] {
        assert_eq!(through(&requests, cut.clone(), limit), [at(0, 8, 8), at(9, 16, 8)]);
    }
}

#[test]
fn a_cut_by_number_goes_on_past_batches_of_which_nothing_is_left_and_stops_reading_at_its_end() {
    let requests: Vec<_> = (0..100).map(|i| at(i, i * 8, 8)).collect();
    let cut = Cut::new(ALL_TIMES, 70..73, ALL_SECTORS).unwrap();
    assert_eq!(through(&requests, cut.clone(), 8), [at(0, 560, 8), at(1, 568, 8), at(2, 576, 8)]);
    let mut source = List(requests.iter()).then(cut);
    let mut kept = Vec::new();
    while source.next_batch(&mut kept, 8).unwrap() > 0 {}
    assert!(source.source.0.len() >= 100 - 80, "{} left unread", source.source.0.len());
}

#[test]
fn a_cut_by_address_cuts_off_what_lies_outside() {
    let requests = [at(0, 0, 8), at(1, 96, 8), at(2, 100, 200), at(3, 199, 8), at(4, 200, 8)];
    let cut = Cut::new(ALL_TIMES, 0..u64::MAX, Lsn(100)..Lsn(200)).unwrap();
    assert_eq!(through(&requests, cut, 2), [at(0, 100, 4), at(1, 100, 100), at(2, 199, 1)]);
}

#[test]
fn empty_ranges_and_impossible_factors_and_devices_are_refused_by_name() {
    let error = Cut::new(ALL_TIMES, 5..5, ALL_SECTORS).unwrap_err().to_string();
    assert_eq!(error, "requests to keep: from 5 to 5; allowed: a range that ends after it starts");
    assert!(
        Cut::new(Ns(2)..Ns(1), 0..1, ALL_SECTORS).is_err()
            && Cut::new(ALL_TIMES, 0..1, Lsn(1)..Lsn(1)).is_err()
    );
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = ScaleTime::new(factor).unwrap_err().to_string();
        assert_eq!(error, format!("factor of time: {factor}; allowed: above 0, up to 1e9"));
    }
    assert_eq!(Fold::new(0).unwrap_err().to_string(), "sectors of the device: 0; allowed: at least 1");
}

#[test]
fn scaled_time_rounds_to_the_nanosecond_and_saturates_and_a_factor_of_one_changes_no_digit() {
    let scale = |arrival, factor| {
        let request = Request { arrival: Ns(arrival), ..at(0, 0, 8) };
        through(&[request], ScaleTime::new(factor).unwrap(), 1)[0].arrival
    };
    assert_eq!((scale(15, 0.1), scale(1_000_000_007, 10.0)), (Ns(2), Ns(10_000_000_070)));
    assert_eq!((scale(u64::MAX - 1, 2.0), scale(u64::MAX - 1, 1.0)), (Ns::MAX, Ns(u64::MAX - 1)));
}

#[test]
fn a_request_over_the_end_of_the_device_is_clamped_or_goes_on_at_its_start() {
    let requests = [at(0, 1090, 8), at(1, 96, 8), at(2, 50, 500)];
    let clamp = Fold::new(100).unwrap();
    assert_eq!(through(&requests, clamp, 9), [at(0, 90, 8), at(1, 96, 4), at(2, 50, 50)]);
    let split = clamp.at_end(AtEnd::Split);
    let expected = [at(0, 90, 8), at(1, 96, 4), at(1, 0, 4), at(2, 50, 50), at(2, 0, 50)];
    assert_eq!(through(&requests, split, 1), expected);
}

proptest! {
    #[test]
    fn folding_stays_on_the_device_and_splitting_loses_no_sector(
        requests in prop::collection::vec((0u64..u64::MAX, 1u32..5000), 1..50),
        device in 1u64..10_000,
        limit in 1usize..20,
    ) {
        let requests: Vec<_> = requests.iter().zip(0..).map(|(&(start, sectors), i)| at(i, start, sectors)).collect();
        let fold = Fold::new(device).unwrap();
        let clamped = through(&requests, fold, limit);
        let split = through(&requests, fold.at_end(AtEnd::Split), limit);
        prop_assert_eq!(clamped.len(), requests.len());
        prop_assert!(clamped.iter().chain(&split).all(|request| request.sectors > 0 && request.end().0 <= device));
        let sectors = |list: &[Request]| list.iter().map(|request| u64::from(request.sectors).min(device)).sum::<u64>();
        prop_assert_eq!(sectors(&split), sectors(&requests));
    }

    #[test]
    fn scaling_never_swaps_arrivals(mut arrivals in prop::collection::vec(any::<u64>(), 2..50), factor in 1e-6f64..1e6) {
        arrivals.sort_unstable();
        let requests: Vec<_> = arrivals.iter().map(|&arrival| Request { arrival: Ns(arrival), ..at(0, 0, 8) }).collect();
        let scaled = through(&requests, ScaleTime::new(factor).unwrap(), 7);
        prop_assert!(scaled.is_sorted_by_key(|request| request.arrival));
    }
}
