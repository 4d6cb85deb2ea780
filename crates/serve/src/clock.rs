//! Wall time and simulated time, and what this host adds to both.

use planewise_model::Ns;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::thread::set_current_timer_slack;
use std::io::{Read, Write};
use std::num::NonZeroU64;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Wall time since the beginning, by the dilation, is simulated time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    dilation: f64,
}

impl Clock {
    /// Begins now. At a dilation of 10 what takes 1 ms on the drive takes 10 ms here.
    pub fn new(dilation: f64) -> Clock {
        Clock { start: Instant::now(), dilation }
    }

    /// What time it is on the drive at an instant here.
    pub fn simulated(&self, at: Instant) -> Ns {
        let wall = at.saturating_duration_since(self.start).as_nanos() as f64;
        Ns((wall / self.dilation) as u64)
    }

    /// When it is that time on the drive; nothing for a time that is too far away.
    pub fn wall(&self, at: Ns) -> Option<Instant> {
        self.start.checked_add(self.span(at)?)
    }

    /// How long here what takes so long there.
    pub fn span(&self, time: Ns) -> Option<Duration> {
        // Up, so that at the instant it is that time.
        let wall = (time.0 as f64 * self.dilation).ceil();
        (wall < i64::MAX as f64).then(|| Duration::from_nanos(wall as u64))
    }
}

/// What a host adds to a request, whatever the drive does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// From a program to the server and back over a local socket, both asleep before: half of the measured ones take less.
    pub round_trip: Duration,
    /// How long before a deadline to stop sleeping: 99 of 100 sleeps end within it.
    pub wake_up: Duration,
}

const ROUND_TRIPS: usize = 200;
const SLEEPS: usize = 50;
const SLEEP: Duration = Duration::from_micros(200);
/// Bounds of the time to spin: less is no use, and more is a processor taken from those who use the drive.
const SPIN_MIN: Duration = Duration::from_micros(10);
const SPIN_MAX: Duration = Duration::from_micros(500);

impl Floor {
    /// Measures it, in some 50 ms.
    ///
    /// # Errors
    /// The system's.
    pub fn measure() -> std::io::Result<Floor> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        let (mut one, mut other) = (UnixStream::from(one), UnixStream::from(other));
        let echo = std::thread::Builder::new().name("floor".into()).spawn(move || {
            let mut message = [0; 32];
            while other.read_exact(&mut message).and_then(|()| other.write_all(&message)).is_ok() {}
        })?;
        let mut trips = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let (start, mut message) = (Instant::now(), [0; 32]);
            one.write_all(&message)?;
            one.read_exact(&mut message)?;
            trips.push(start.elapsed());
        }
        drop(one);
        let _ = echo.join();
        sleep_precisely();
        let mut sleeps: Vec<Duration> = (0..SLEEPS)
            .map(|_| {
                let start = Instant::now();
                std::thread::sleep(SLEEP);
                start.elapsed().saturating_sub(SLEEP)
            })
            .collect();
        trips.sort_unstable();
        sleeps.sort_unstable();
        let wake_up = sleeps[SLEEPS * 99 / 100].clamp(SPIN_MIN, SPIN_MAX);
        // Who spins on the only processor keeps everybody else from it.
        let is_alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
        Ok(Floor {
            round_trip: trips[ROUND_TRIPS / 2],
            wake_up: if is_alone { Duration::ZERO } else { wake_up },
        })
    }
}

/// Asks that this thread's sleeps end when they should: 50 µs later is the system's custom.
pub fn sleep_precisely() {
    // Without it lateness is larger, and says so.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_at_a_time_is_due_at_its_instant_and_not_before() {
        for dilation in [0.5, 1.0, 10.0, 1e4 / 3.0] {
            let clock = Clock::new(dilation);
            for time in [0, 1, 999, 1_000_000, 123_456_789, 86_400_000_000_000] {
                let due = clock.wall(Ns(time)).unwrap();
                let found = clock.simulated(due).0;
                assert!(found >= time.saturating_sub(1) && found <= time + 2, "{dilation}: {time} {found}");
            }
            assert_eq!(clock.wall(Ns::MAX), None);
        }
    }

    #[test]
    fn this_host_has_a_floor() {
        let floor = Floor::measure().unwrap();
        assert!(floor.round_trip > Duration::ZERO && floor.wake_up <= SPIN_MAX, "{floor:?}");
    }
}
