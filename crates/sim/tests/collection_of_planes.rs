//! Collections of an executor's planes: when the second one begins, and what they do side by side.

mod common;

use common::{device, watch};
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::gc::SCHEMES;
use planewise_sim::observers::invariants::Invariants;
use planewise_sim::observers::{Cause, Collected, Observer};
use planewise_sim::{Condition, RunConfig};

/// One die of planes of 64 blocks of 4 pages, 64 pages of 256 free; a plane is collected below 61.44.
fn die(scheme: &str, planes: u32) -> RunConfig {
    let mut profile = device(1, 1, 1, planes);
    profile.geometry.pages_per_block = 4;
    profile.interface.command_queue = "ncq:32".into();
    profile.translation.over_provisioning = 0.25;
    (profile.collection.threshold, profile.collection.ahead) = (0.24, 0.24);
    profile.collection.scheme = scheme.into();
    let mut config = RunConfig::new(profile);
    config.condition = Condition::Filled;
    config
}

/// Overwrites of the first three pages of each of some planes, one of each at a time: the third takes them below the threshold.
fn three_of_each(planes: &[u64], of: u64) -> Vec<Request> {
    let write = |round: u64, plane: u64| {
        Request::new(Ns(round * 2_000_000), Lsn((round * of + plane) * 8), 8, Direction::Write)
    };
    (0..3).flat_map(|round| planes.iter().map(move |&plane| write(round, plane))).collect()
}

/// When collections began and ended, and on which planes.
#[derive(Default)]
struct Times {
    began: Vec<Ns>,
    ended: Vec<(Ns, u32)>,
}

impl Observer for Times {
    fn collection_start(&mut self, now: Ns, _executor: u32, _cause: Cause) {
        self.began.push(now);
    }

    fn collection_end(&mut self, now: Ns, _executor: u32, what: &Collected) {
        self.ended.push((now, what.plane));
    }
}

/// Both planes of a die fell below the threshold at once, and nobody writes any more.
#[test]
fn a_plane_that_fell_below_while_its_die_was_taken_is_collected_next_not_at_its_next_write() {
    for scheme in SCHEMES {
        let config = die(scheme.name, 3);
        let (invariants, times) =
            watch(&config, &three_of_each(&[0, 2], 3), (Invariants::new(), Times::default()));
        invariants.report().unwrap_or_else(|violations| panic!("{}: {violations}", scheme.name));
        let mut planes: Vec<u32> = times.ended.iter().map(|&(_, plane)| plane).collect();
        planes.sort_unstable();
        assert_eq!(planes, [0, 2], "{}: one each, and none of the plane that has room", scheme.name);
        if scheme.bound {
            assert_eq!(times.began[0], times.began[1]);
        } else {
            assert_eq!(times.began[1], times.ended[0].0, "{}: at once", scheme.name);
        }
    }
}

/// A plane whose collection leaves it below the threshold is collected again when it is written again: one collection for each write that
/// finds it there, as in the papers' simulator. Else a threshold that a drive cannot reach would have it collect for ever.
#[test]
fn a_plane_that_stays_below_is_collected_once_for_each_write() {
    let mut config = die("traditional", 2);
    // 64 are free of 256: none of these writes finds a plane above.
    (config.profile.collection.threshold, config.profile.collection.ahead) = (0.4, 0.4);
    let requests = three_of_each(&[0], 2)
        .into_iter()
        .map(|request| Request { arrival: Ns(request.arrival.0 * 20), ..request });
    let times = watch(&config, &requests.collect::<Vec<_>>(), Times::default());
    assert_eq!(times.ended.iter().map(|&(_, plane)| plane).collect::<Vec<_>>(), [0, 0, 0]);
}
