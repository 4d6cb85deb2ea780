use super::*;
use planewise_model::rng::generator;
use planewise_model::{Direction, Lsn};
use rand::RngExt;

const US: u64 = 1000;

/// Requests as (recorded arrival, recorded response), us; 0 is none.
fn trace(recorded: &[(u64, u64)]) -> Vec<Request> {
    let request = |&(arrival, response): &(u64, u64)| {
        let response = (response > 0).then_some(Ns(response * US));
        Request { response, ..Request::new(Ns(arrival * US), Lsn(0), 8, Direction::Read) }
    };
    recorded.iter().map(request).collect()
}

fn completion(number: u64, request: &Request, at: Ns) -> Completion {
    Completion {
        sequence: number,
        request: *request,
        entered: request.arrival,
        issued: request.arrival,
        released: request.arrival,
        completed: at,
        conflict: false,
        overtakes: false,
        die_wait: Ns::ZERO,
        channel_wait: Ns::ZERO,
    }
}

/// What a device on which request `n` takes `latency(n)` makes of a trace: arrivals and completions, and what the pacer says of it.
fn served(requests: &[Request], pacer: &mut Pacer, latency: impl Fn(usize) -> u64) -> Vec<(Ns, Ns)> {
    let mut times: Vec<(Ns, Ns)> = Vec::new();
    let mut under_way: BinaryHeap<Reverse<(Ns, usize)>> = BinaryHeap::new();
    let mut now = Ns::ZERO;
    for (number, request) in requests.iter().enumerate() {
        let arrival = loop {
            if let Some(arrival) = pacer.leaves(request, now, true) {
                break arrival;
            }
            let Reverse((at, done)) = under_way.pop().expect("what is waited for is under way");
            now = at;
            pacer.completed(&completion(done as u64, &requests[done], at));
        };
        while let Some(&Reverse((at, done))) = under_way.peek()
            && at <= arrival
        {
            under_way.pop();
            pacer.completed(&completion(done as u64, &requests[done], at));
        }
        now = now.max(arrival);
        let completed = arrival + Ns(latency(number));
        times.push((arrival, completed));
        under_way.push(Reverse((completed, number)));
    }
    while let Some(Reverse((at, done))) = under_way.pop() {
        pacer.completed(&completion(done as u64, &requests[done], at));
    }
    times
}

fn dependent(requests: &[Request], scale: f64, latency: impl Fn(usize) -> u64) -> (Vec<(Ns, Ns)>, Dependent) {
    let mut pacer = Pacer::new(Pace::Dependent, scale).unwrap();
    let times = served(requests, &mut pacer, latency);
    (times, pacer.dependent().unwrap())
}

fn arrivals_us(times: &[(Ns, Ns)]) -> Vec<u64> {
    times.iter().map(|(arrival, _)| arrival.0 / US).collect()
}

#[test]
fn names_read_back_and_others_are_refused_with_what_is_allowed() {
    for pace in [Pace::Recorded, Pace::Dependent, Pace::Closed(1), Pace::Closed(65_536), Pace::Asap] {
        assert_eq!(pace.to_string().parse::<Pace>().unwrap(), pace);
    }
    for wrong in
        ["", "Recorded", "closed", "closed:", "closed:0", "closed:65537", "closed:-1", "closed:8x", "open"]
    {
        let error = wrong.parse::<Pace>().unwrap_err().to_string();
        assert!(error.contains("closed:N") && error.contains("dependent"), "{wrong}: {error}");
    }
}

#[test]
fn the_example_of_the_documentation() {
    // Recorded: 0 to 100, 20 to 60, 70 (10 after the second completed) to 110, 130 (20 after the third) to 150.
    let requests = trace(&[(0, 100), (20, 40), (70, 40), (130, 20)]);
    let (slow, kept) = dependent(&requests, 1.0, |n| [300, 200, 40, 20][n] * US);
    // The second completes at 220, the third leaves at 230 and completes at 270; the first, at 300, is the last that the fourth waits for.
    assert_eq!(arrivals_us(&slow), [0, 20, 230, 320]);
    assert_eq!((kept.recorded_depth_max, kept.replayed_depth_max), (2, 2));
    let (fast, _) = dependent(&requests, 1.0, |_| 5 * US);
    assert_eq!(arrivals_us(&fast), [0, 20, 35, 60]);
    let (wide, _) = dependent(&requests, 2.0, |_| 5 * US);
    assert_eq!(arrivals_us(&wide), [0, 40, 65, 110]);
}

#[test]
fn what_the_trace_does_not_say_completed_holds_nobody_up() {
    let requests = trace(&[(0, 0), (10, 10), (30, 0), (1000, 5)]);
    let (times, kept) = dependent(&requests, 1.0, |n| [5000, 50, 5000, 5][n] * US);
    // The third waits for the second: 10 + 50, and the gap of 10. The fourth too, with a gap of 980.
    assert_eq!(arrivals_us(&times), [0, 10, 70, 1040]);
    assert_eq!(kept.without_completion, 2);
}

/// A closed loop of `clients`, each with a think time: what a recorded system does; in order of arrival.
fn recorded_system(seed: u64, clients: usize, count: usize) -> Vec<Request> {
    let mut random = generator(seed, "recorded system");
    let mut ready = vec![0u64; clients];
    let mut recorded: Vec<(u64, u64)> = Vec::new();
    for _ in 0..count {
        let client = (0..clients).min_by_key(|&client| ready[client]).unwrap();
        let response = random.random_range(1..400);
        recorded.push((ready[client], response));
        let think = if random.random_range(0..3) == 0 { 0 } else { random.random_range(0..500) };
        ready[client] += response + think;
    }
    trace(&recorded)
}

#[test]
fn on_a_device_with_the_recorded_latencies_arrivals_are_the_recorded_ones() {
    for seed in 0..200 {
        let requests = recorded_system(seed, 1 + seed as usize % 17, 400);
        let (times, kept) = dependent(&requests, 1.0, |n| requests[n].response.unwrap().0);
        for (n, (request, (arrival, _))) in requests.iter().zip(&times).enumerate() {
            assert_eq!(request.arrival, *arrival, "seed {seed}, request {n}");
        }
        assert_eq!(kept.recorded_ns, kept.replayed_ns, "seed {seed}");
        assert_eq!(
            (kept.recorded_depth, kept.recorded_depth_max),
            (kept.replayed_depth, kept.replayed_depth_max),
            "seed {seed}"
        );
    }
}

#[test]
fn on_any_device_nothing_leaves_before_what_had_completed_and_never_more_is_under_way_than_was() {
    for seed in 0..200 {
        let clients = 1 + seed as usize % 17;
        let requests = recorded_system(seed, clients, 300);
        let mut random = generator(seed, "latencies");
        let slow: Vec<u64> =
            (0..300).map(|_| random.random_range(1..[50, 400, 5000][seed as usize % 3]) * US).collect();
        let (times, kept) = dependent(&requests, 1.0, |n| slow[n]);
        for (n, request) in requests.iter().enumerate() {
            let what = format!("seed {seed}, request {n}");
            let ended = |m: &usize| recorded_completion(&requests[*m]).unwrap() <= request.arrival;
            let before: Vec<usize> = (0..n).filter(ended).collect();
            let last_here = before.iter().map(|&m| times[m].1).max().unwrap_or(Ns::ZERO);
            let last = before.iter().map(|&m| recorded_completion(&requests[m]).unwrap()).max();
            let gap = request.arrival - last.unwrap_or(Ns::ZERO);
            let order = if n == 0 { Ns::ZERO } else { times[n - 1].0 };
            assert_eq!(times[n].0, (last_here + gap).max(order), "{what}: the rule");
            let here = (0..n).filter(|&m| times[m].1 > times[n].0).count();
            let recorded = n - before.len();
            assert!(here <= recorded, "{what}: {here} under way, {recorded} recorded");
        }
        assert!(
            kept.replayed_depth_max <= kept.recorded_depth_max && kept.recorded_depth_max <= clients as u64
        );
    }
}

#[test]
fn it_remembers_what_is_under_way_and_not_the_trace() {
    let requests = recorded_system(7, 8, 20_000);
    let mut pacer = Pacer::new(Pace::Dependent, 1.0).unwrap();
    let remembered = |pacer: &Pacer| match &pacer.rule {
        Rule::Dependent(of) => of.open.len() + of.done.len() + of.awaited.len() + of.depth.later.len(),
        Rule::Closed(_) => 0,
    };
    served(&requests, &mut pacer, |n| 1000 * (n as u64 % 300 + 1));
    assert!(remembered(&pacer) < 64, "{}", remembered(&pacer));
}

#[test]
fn a_closed_loop_has_so_many_under_way_whatever_the_times() {
    let requests = trace(&[(0, 0), (1_000_000, 0), (2_000_000, 0), (3_000_000, 0), (4_000_000, 0)]);
    let latency = |n: usize| [30, 10, 20, 40, 10][n] * US;
    let closed = |requests_at_a_time| {
        let mut pacer = Pacer::new(Pace::Closed(requests_at_a_time), 1.0).unwrap();
        arrivals_us(&served(&requests, &mut pacer, latency))
    };
    assert_eq!(closed(1), [0, 30, 40, 60, 100]);
    assert_eq!(closed(2), [0, 0, 10, 30, 30]);
    assert_eq!(closed(9), [0; 5]);
}
