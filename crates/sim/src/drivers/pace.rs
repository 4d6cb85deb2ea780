//! When the requests of a trace leave: as recorded, as those that they may have waited for complete, or as fast as so many
//! under way allow. A [`Pacer`] is told what left and what completed, and knows neither simulator nor drive.

use crate::error::SimError;
use crate::observers::Completion;
use crate::results::Dependent;
use planewise_model::{Ns, Request};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::fmt;
use std::str::FromStr;

/// When the requests of a trace leave for the host's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// When the trace says, whatever the device does.
    #[default]
    Recorded,
    /// When all that had completed before in the recording have completed, and the recorded gap has passed since.
    Dependent,
    /// In the order of the trace, so many (1 or more) under way at a time.
    Closed(u32),
    /// In the order of the trace, as soon as the host's queue has room.
    Asap,
}

impl Pace {
    /// What `--pace` takes.
    pub const ALLOWED: &'static str = "recorded, dependent, closed:N with an N of 1 to 65536, asap";

    /// Whether recorded times decide when requests leave, so that scaling them changes anything.
    pub const fn goes_by_times(self) -> bool {
        matches!(self, Pace::Recorded | Pace::Dependent)
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::Recorded => f.write_str("recorded"),
            Pace::Dependent => f.write_str("dependent"),
            Pace::Closed(requests) => write!(f, "closed:{requests}"),
            Pace::Asap => f.write_str("asap"),
        }
    }
}

impl FromStr for Pace {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Pace, SimError> {
        let closed = || {
            let requests = text.strip_prefix("closed:")?.parse().ok()?;
            (1..=65_536).contains(&requests).then_some(Pace::Closed(requests))
        };
        match text {
            "recorded" => Ok(Pace::Recorded),
            "dependent" => Ok(Pace::Dependent),
            "asap" => Ok(Pace::Asap),
            _ => closed().ok_or_else(|| SimError::Option {
                key: "pace".into(),
                found: format!("'{text}'"),
                allowed: Pace::ALLOWED.into(),
            }),
        }
    }
}

/// Tells, request by request in the order of the trace, when the next one leaves; for all paces but the recorded one.
///
/// Nothing ever leaves before its predecessor, and nothing waits for what has not left: so a host queue that is full, merging
/// and schedulers that hold back can delay a replay, and never stop it. It remembers what is under way, here or in the recording,
/// and takes time in proportion to the logarithm of that.
pub struct Pacer {
    rule: Rule,
    /// When the last request left.
    last: Ns,
    /// Requests that left: the number of the next.
    left: u64,
}

enum Rule {
    Dependent(Box<Dependencies>),
    /// When places became free, of those that nobody took yet; none for a queue that has room or not.
    Closed(Option<VecDeque<Ns>>),
}

impl Pacer {
    /// A pacer; none for the recorded pace, which needs no telling. `scale` multiplies recorded gaps.
    pub fn new(pace: Pace, scale: f64) -> Option<Pacer> {
        let rule = match pace {
            Pace::Recorded => return None,
            Pace::Dependent => Rule::Dependent(Box::new(Dependencies { scale, ..Dependencies::default() })),
            Pace::Closed(requests) => Rule::Closed(Some(VecDeque::from(vec![Ns::ZERO; requests as usize]))),
            Pace::Asap => Rule::Closed(None),
        };
        Some(Pacer { rule, last: Ns::ZERO, left: 0 })
    }

    /// Whether requests are due at a time, rather than as soon as there is a place for them.
    pub fn has_due_times(&self) -> bool {
        matches!(self.rule, Rule::Dependent(_))
    }

    /// When the next request leaves, which may be past or to come; none while that hangs on completions, or on room in the queue.
    /// A request of which this was told has left.
    pub fn leaves(&mut self, request: &Request, now: Ns, has_room: bool) -> Option<Ns> {
        if let Rule::Dependent(dependencies) = &mut self.rule {
            dependencies.depth.arrived();
        }
        let at = match &mut self.rule {
            Rule::Dependent(dependencies) => dependencies.leaves(request)?,
            Rule::Closed(Some(places)) => places.pop_front()?,
            Rule::Closed(None) if has_room => now,
            Rule::Closed(None) => return None,
        };
        self.last = self.last.max(at);
        if let Rule::Dependent(dependencies) = &mut self.rule {
            dependencies.left(self.left, request, self.last);
        }
        self.left += 1;
        Some(self.last)
    }

    /// A request completed. Requests are known by their numbers in the order in which they left.
    pub fn completed(&mut self, completion: &Completion) {
        match &mut self.rule {
            Rule::Dependent(dependencies) => dependencies.completed(completion),
            Rule::Closed(Some(places)) => places.push_back(completion.completed),
            Rule::Closed(None) => {}
        }
    }

    /// What the recording said and what came of it here, once everything is complete; nothing for other paces than the dependent one.
    pub fn dependent(&mut self) -> Option<Dependent> {
        let Rule::Dependent(dependencies) = &mut self.rule else { return None };
        dependencies.depth.arrived();
        let mean = |sum: u128| sum as f64 / self.left.max(1) as f64;
        let Dependencies { scale, depth, first_recorded, last_recorded, first_here, .. } = &**dependencies;
        Some(Dependent {
            without_completion: dependencies.without_completion,
            recorded_ns: ((*last_recorded - first_recorded.unwrap_or_default()).0 as f64 * scale).round()
                as u64,
            replayed_ns: (self.last - *first_here).0,
            recorded_depth: mean(dependencies.recorded_depth),
            recorded_depth_max: dependencies.recorded_depth_max,
            replayed_depth: mean(depth.sum),
            replayed_depth_max: depth.most,
        })
    }
}

/// Requests under way here at the arrivals.
#[derive(Default)]
struct Depth {
    /// The last arrival, which is not counted yet: completions up to it may still be told of.
    last: Option<Ns>,
    left: u64,
    /// Completions up to the last arrival, and those after it.
    completed: u64,
    later: VecDeque<Ns>,
    sum: u128,
    most: u64,
}

impl Depth {
    /// Counts at the last arrival: everything that completed up to it has been told.
    fn arrived(&mut self) {
        if self.last.take().is_some() {
            let depth = self.left - self.completed;
            self.sum += u128::from(depth);
            self.most = self.most.max(depth);
        }
    }

    fn left(&mut self, at: Ns) {
        (self.last, self.left) = (Some(at), self.left + 1);
        while self.later.front().is_some_and(|&completed| completed <= at) {
            self.later.pop_front();
            self.completed += 1;
        }
    }

    fn completed(&mut self, at: Ns) {
        if self.last.is_some_and(|last| at <= last) {
            self.completed += 1;
        } else {
            self.later.push_back(at);
        }
    }
}

/// When a request completed in the recording, if the trace says.
fn recorded_completion(request: &Request) -> Option<Ns> {
    request.response.map(|response| Ns(request.arrival.0.saturating_add(response.0)))
}

/// What the recording had completed when, and what of that has completed here.
#[derive(Default)]
struct Dependencies {
    scale: f64,
    /// Requests that left, and in the recording had not completed at the last arrival: by recorded completion.
    open: BinaryHeap<Reverse<(Ns, u64)>>,
    /// Of these, those that have completed here, and when.
    done: BTreeMap<u64, Ns>,
    /// Requests that had completed in the recording, and have not here: what the next one waits for.
    awaited: BTreeSet<u64>,
    /// The latest completion among those that had completed, in the recording and here.
    latest_recorded: Ns,
    latest_here: Ns,
    without_completion: u64,
    first_recorded: Option<Ns>,
    last_recorded: Ns,
    first_here: Ns,
    recorded_depth: u128,
    recorded_depth_max: u64,
    depth: Depth,
}

impl Dependencies {
    fn leaves(&mut self, request: &Request) -> Option<Ns> {
        while let Some(&Reverse((completed, number))) = self.open.peek()
            && completed <= request.arrival
        {
            self.open.pop();
            // The heap gives them in their recorded order.
            self.latest_recorded = completed;
            match self.done.remove(&number) {
                Some(here) => self.latest_here = self.latest_here.max(here),
                None => drop(self.awaited.insert(number)),
            }
        }
        if !self.awaited.is_empty() {
            return None;
        }
        let gap = request.arrival.saturating_sub(self.latest_recorded);
        let gap = if self.scale == 1.0 { gap.0 } else { (gap.0 as f64 * self.scale).round() as u64 };
        Some(Ns(self.latest_here.0.saturating_add(gap)))
    }

    fn left(&mut self, number: u64, request: &Request, at: Ns) {
        match recorded_completion(request) {
            Some(completed) => self.open.push(Reverse((completed, number))),
            None => self.without_completion += 1,
        }
        if self.first_recorded.is_none() {
            (self.first_recorded, self.first_here) = (Some(request.arrival), at);
        }
        self.last_recorded = request.arrival;
        let depth = self.open.len() as u64;
        self.recorded_depth += u128::from(depth);
        self.recorded_depth_max = self.recorded_depth_max.max(depth);
        self.depth.left(at);
    }

    fn completed(&mut self, completion: &Completion) {
        self.depth.completed(completion.completed);
        if self.awaited.remove(&completion.sequence) {
            self.latest_here = self.latest_here.max(completion.completed);
        } else if completion.request.response.is_some() {
            self.done.insert(completion.sequence, completion.completed);
        }
    }
}

#[cfg(test)]
mod tests;
