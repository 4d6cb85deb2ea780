//! What a module's tracepoints recorded, told again to the simulator's policy: it must give the same answers.
//!
//! The text is that of `/sys/kernel/tracing/trace` or `trace_pipe`, with the events of `kernel/planewise-trace.h` from before the scheduler was
//! set, so that policies begin as they began there. Their order is that of the lines: `echo counter >/sys/kernel/tracing/trace_clock`
//! where there are several processors.

use crate::{Drive, Policy};
use planewise_model::location::PageRange;
use planewise_model::{Direction, Lsn, Ns, Request};
use planewise_sim::host::{Gate, HostQueue, QueuedRequest, Side, Slot};
use planewise_sim::host_sched::{Decision, Entry, Growth, HostKnowledge, HostScheduler, TunableValues, find};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead};
use std::str::FromStr;

/// Where the recorded and the simulator's policy part, or a line that is none of theirs.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line of the text, from 1.
    pub line: u64,
    /// What differs, or what is wrong with the line.
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for Difference {}

/// What was told and answered, all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Times that a drive got one of the schedulers.
    pub created: u64,
    /// Requests that entered.
    pub inserted: u64,
    /// Merges.
    pub grown: u64,
    /// Requests that went next.
    pub dispatched: u64,
    /// Answers that none goes.
    pub held: u64,
    /// Requests that completed.
    pub completed: u64,
    /// Requests that came back.
    pub requeued: u64,
}

/// Reads the text to its end.
///
/// # Errors
/// The first line at which the simulator's policy answers otherwise, that is no such event, or before which events were lost.
pub fn replay(text: &mut dyn BufRead) -> Result<Replayed, Difference> {
    let mut all = Replay::default();
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let at = |what: String| Difference { line: number, what };
        if text.read_until(b'\n', &mut line).map_err(|error: io::Error| at(error.to_string()))? == 0 {
            break;
        }
        all.line(&String::from_utf8_lossy(&line)).map_err(at)?;
    }
    Ok(all.replayed)
}

#[derive(Default)]
struct Replay {
    /// By device number, as text.
    drives: BTreeMap<String, Drives>,
    replayed: Replayed,
}

/// A drive under one of the schedulers.
enum Drives {
    /// Its tunables are being told.
    Begun(Begun),
    /// The policy is at work.
    Working(Box<Working>),
}

struct Begun {
    entry: &'static Entry,
    host: HostKnowledge,
    values: TunableValues,
}

struct Working {
    scheduler: Box<dyn HostScheduler>,
    host: HostKnowledge,
    queue: HostQueue,
    /// By the kernel's number of it.
    slots: BTreeMap<u32, Slot>,
    numbers: BTreeMap<Slot, u32>,
    sequence: u64,
}

/// The words KEY=VALUE of an event.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn text(&self, key: &str) -> Result<&'a str, String> {
        let found =
            self.0.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        found.ok_or_else(|| format!("no {key}="))
    }

    fn number<T: FromStr>(&self, key: &str) -> Result<T, String> {
        let text = self.text(key)?;
        text.parse().map_err(|_| format!("{key}: found '{text}'; allowed: a whole number"))
    }
}

impl Replay {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.contains(" EVENTS]") && line.contains("[LOST ") {
            return Err(format!(
                "events were lost here ({}): a larger buffer_size_kb holds them",
                line.trim()
            ));
        }
        let Some((_, event)) = line.split_once(": planewise_") else { return Ok(()) };
        let (name, rest) = event.split_once(": ").ok_or("an event without fields")?;
        let (drive, rest) = rest.trim().split_once(' ').ok_or("an event without fields")?;
        let fields = Fields(rest);
        match name {
            "create" => {
                self.drives.insert(drive.to_owned(), Drives::Begun(begin(&fields)?));
                self.replayed.created += 1;
                return Ok(());
            }
            "tunable" => return self.tunable(drive, &fields),
            "length" => return self.length(drive, &fields),
            _ => {}
        }
        let working = self.working(drive)?;
        let now = Ns(fields.number("now")?);
        match name {
            "insert" => working.insert(now, &fields, rest)?,
            "grow" => working.grow(now, &fields, rest)?,
            "dispatch" => working.dispatch(now, Some(fields.number("slot")?))?,
            "hold" => {
                let wake = working.hold(now)?;
                let recorded = Ns(fields.number("wake")?);
                if wake != recorded {
                    return Err(format!("asks again at {recorded}; the simulator's policy at {wake}"));
                }
            }
            "complete" | "requeue" => working.complete(now, &fields)?,
            _ => return Err(format!("planewise_{name}: no such event")),
        }
        let counted = &mut self.replayed;
        *match name {
            "insert" => &mut counted.inserted,
            "grow" => &mut counted.grown,
            "dispatch" => &mut counted.dispatched,
            "hold" => &mut counted.held,
            "complete" => &mut counted.completed,
            _ => &mut counted.requeued,
        } += 1;
        Ok(())
    }

    /// Before the first request all are told, and the policy is made of them; the simulator's has no change under requests.
    fn tunable(&mut self, drive: &str, fields: &Fields<'_>) -> Result<(), String> {
        match self.drives.get_mut(drive) {
            Some(Drives::Begun(begun)) => begun.set(fields),
            Some(Drives::Working(_)) => {
                Err(format!("{} changed while requests were under way", fields.text("name")?))
            }
            None => Err(format!("{drive}: the trace begins after its scheduler was set")),
        }
    }

    /// As tunables: only before the first request.
    fn length(&mut self, drive: &str, fields: &Fields<'_>) -> Result<(), String> {
        let length = fields.number("queue_length")?;
        match self.drives.get_mut(drive) {
            Some(Drives::Begun(begun)) => begun.host.queue_length = length,
            Some(Drives::Working(working)) if working.host.queue_length == length => {}
            Some(Drives::Working(_)) => {
                return Err("nr_requests changed while requests were under way".into());
            }
            None => return Err(format!("{drive}: the trace begins after its scheduler was set")),
        }
        Ok(())
    }

    fn working(&mut self, drive: &str) -> Result<&mut Working, String> {
        let Some((name, state)) = self.drives.remove_entry(drive) else {
            return Err(format!("{drive}: the trace begins after its scheduler was set"));
        };
        let working = match state {
            Drives::Working(working) => working,
            Drives::Begun(begun) => Box::new(begun.build()?),
        };
        match self.drives.entry(name).or_insert(Drives::Working(working)) {
            Drives::Working(working) => Ok(working),
            Drives::Begun(_) => unreachable!("it was just made"),
        }
    }
}

fn begin(fields: &Fields<'_>) -> Result<Begun, String> {
    let module = fields.text("policy")?;
    let (.., name) = Policy::ALL
        .into_iter()
        .find(|(_, known, _)| *known == module)
        .ok_or_else(|| format!("policy: found '{module}'"))?;
    let entry = find(name).map_err(|error| error.to_string())?;
    let drive = Drive {
        channels: fields.number("channels")?,
        chips_per_channel: fields.number("chips_per_channel")?,
        dies_per_chip: fields.number("dies_per_chip")?,
        planes_per_die: fields.number("planes_per_die")?,
        chunk_bytes: fields.number("chunk_bytes")?,
        level: fields.text("level")?.into(),
        order: fields.text("order")?.into(),
        chip_region_bytes: fields.number("chip_region_bytes")?,
    };
    let host = HostKnowledge {
        queue_length: fields.number("queue_length")?,
        units: drive.unit_map()?,
        writes_stay: fields.text("writes_stay")? == "y",
        page_bytes: drive.page_bytes(),
        capacity_sectors: fields.number("capacity_sectors")?,
    };
    Ok(Begun { entry, host, values: TunableValues::defaults(entry.tunables) })
}

impl Begun {
    fn set(&mut self, fields: &Fields<'_>) -> Result<(), String> {
        let name = fields.text("name")?;
        let value: u64 = fields.number("value")?;
        let words = Policy::ALL
            .into_iter()
            .find(|(.., known)| *known == self.entry.name)
            .map(|(policy, ..)| crate::tunables(policy))
            .unwrap_or_default();
        let word = words
            .iter()
            .find(|tunable| tunable.name == name)
            .and_then(|tunable| tunable.words.get(value as usize).cloned());
        let text = word.unwrap_or_else(|| value.to_string());
        self.values.set(self.entry.name, self.entry.tunables, name, &text).map_err(|error| error.to_string())
    }

    fn build(self) -> Result<Working, String> {
        let Begun { entry, host, values } = self;
        let scheduler = (entry.build)(&host, &values).map_err(|error| error.to_string())?;
        let queue = HostQueue::new(host.queue_length);
        Ok(Working { scheduler, host, queue, slots: BTreeMap::new(), numbers: BTreeMap::new(), sequence: 0 })
    }
}

impl Working {
    fn request(&self, now: Ns, fields: &Fields<'_>, rest: &str) -> Result<(Request, PageRange), String> {
        let direction = match rest.split_ascii_whitespace().find(|&word| word == "read" || word == "write") {
            Some("read") => Direction::Read,
            Some(_) => Direction::Write,
            None => return Err("neither read nor write".into()),
        };
        let (sector, sectors) = (fields.number("sector")?, fields.number("sectors")?);
        if sectors == 0 {
            return Err("a request of no sector".into());
        }
        let request = Request::new(now, Lsn(sector), sectors, direction);
        let pages = PageRange::of(&request, self.host.page_bytes);
        self.compare_units(pages, fields.text("units")?)?;
        Ok((request, pages))
    }

    /// The module's units are those that the simulator's map says.
    fn compare_units(&self, pages: PageRange, recorded: &str) -> Result<(), String> {
        let mut words = vec![0u64; self.host.units.units().div_ceil(64) as usize];
        self.host.units.for_each_unit(pages, |unit| words[unit as usize / 64] |= 1 << (unit % 64));
        let expected: Vec<String> = words.iter().map(|word| format!("{word:#x}")).collect();
        let expected = format!("{{{}}}", expected.join(","));
        if recorded == expected {
            Ok(())
        } else {
            Err(format!("units {recorded}; the simulator's map says {expected}"))
        }
    }

    fn insert(&mut self, now: Ns, fields: &Fields<'_>, rest: &str) -> Result<(), String> {
        let (request, pages) = self.request(now, fields, rest)?;
        let number = fields.number("slot")?;
        if self.slots.contains_key(&number) {
            return Err(format!("slot {number} has a request"));
        }
        let queued = QueuedRequest::new(now, self.sequence, request, pages, false);
        if !self.queue.has_room(now, &request) {
            return Err(format!("more than {} requests: nr_requests changed", self.host.queue_length));
        }
        self.sequence += 1;
        let slot = self.queue.enter(queued);
        self.scheduler.insert(now, slot, &queued);
        self.slots.insert(number, slot);
        self.numbers.insert(slot, number);
        Ok(())
    }

    fn slot(&self, fields: &Fields<'_>) -> Result<Slot, String> {
        let number: u32 = fields.number("slot")?;
        self.slots.get(&number).copied().ok_or_else(|| format!("slot {number} has no request"))
    }

    fn grow(&mut self, now: Ns, fields: &Fields<'_>, rest: &str) -> Result<(), String> {
        let slot = self.slot(fields)?;
        let (after, union) = self.request(now, fields, rest)?;
        let before = *self.queue.get(slot);
        let old = before.request;
        let front = after.start < old.start;
        let start = if front { after.start } else { old.end() };
        let added = after.sectors.checked_sub(old.sectors).filter(|&sectors| sectors > 0);
        let sectors = added.ok_or("a merged request that is no longer than before")?;
        let joining = Request::new(now, start, sectors, old.direction);
        let growth = Growth {
            slot,
            into: &before,
            side: if front { Side::Front } else { Side::Back },
            joining: &joining,
            joining_slot: None,
            added: PageRange::of(&joining, self.host.page_bytes),
            union,
        };
        if !self.scheduler.allow_merge(&growth) {
            return Err("merged; the simulator's policy does not let it grow".into());
        }
        let after = Request { start: after.start, sectors: after.sectors, ..old };
        self.queue.grow(slot, after, union);
        let grown = *self.queue.get(slot);
        self.scheduler.merged(slot, &before, &grown);
        Ok(())
    }

    fn ask(&mut self, now: Ns) -> Decision {
        self.scheduler.dispatch(now, &Gate::new(&self.queue, &|_: &QueuedRequest| true))
    }

    fn dispatch(&mut self, now: Ns, recorded: Option<u32>) -> Result<(), String> {
        match self.ask(now) {
            Decision::Issue(slot) => {
                let number = self.numbers.get(&slot).copied();
                if number != recorded {
                    let request = self.queue.get(slot).request;
                    return Err(format!(
                        "slot {} goes next; the simulator's policy takes slot {}: {request:?}",
                        recorded.unwrap_or_default(),
                        number.unwrap_or_default(),
                    ));
                }
                self.queue.issue(slot, now, false);
                Ok(())
            }
            other => Err(format!("a request goes next; the simulator's policy: {other:?}")),
        }
    }

    fn hold(&mut self, now: Ns) -> Result<Ns, String> {
        match self.ask(now) {
            Decision::Wait => Ok(Ns::MAX),
            Decision::WakeAt(time) => Ok(time),
            Decision::Issue(slot) => {
                Err(format!("none goes; the simulator's policy takes {:?}", self.queue.get(slot).request))
            }
        }
    }

    fn complete(&mut self, now: Ns, fields: &Fields<'_>) -> Result<(), String> {
        let slot = self.slot(fields)?;
        let number: u32 = fields.number("slot")?;
        self.slots.remove(&number);
        self.numbers.remove(&slot);
        let queued = self.queue.leave(slot);
        self.scheduler.completed(now, slot, &queued);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: &str = "x-1 [000] d..1. 1: planewise_create: 8,0 policy=planewise-piq queue_length=4 capacity_sectors=1000000 channels=2 chips_per_channel=1 dies_per_chip=1 planes_per_die=1 chunk_bytes=4096 level=chip order=cwdp chip_region_bytes=0 writes_stay=y
x-1 [000] d..1. 2: planewise_tunable: 8,0 name=barrier value=0
x-1 [000] d..1. 3: planewise_tunable: 8,0 name=write_wait_max_ns value=1000000
x-1 [000] d..1. 4: planewise_insert: 8,0 now=10 slot=0 write sector=0 sectors=8 units={0x1}
x-1 [000] d..1. 5: planewise_insert: 8,0 now=11 slot=1 read sector=8 sectors=8 units={0x2}
";

    fn told(more: &str) -> Result<Replayed, Difference> {
        replay(&mut format!("# tracer: nop\n{BEGIN}{more}").as_bytes())
    }

    #[test]
    fn the_same_answers_pass_and_others_are_told_by_their_line() {
        let read =
            "x-1 [000] d..1. 6: planewise_dispatch: 8,0 now=12 slot=1 read sector=8 sectors=8 units={0x2}\n";
        let write =
            "x-1 [000] d..1. 7: planewise_dispatch: 8,0 now=13 slot=0 write sector=0 sectors=8 units={0x1}\n";
        let ends =
            "x-1 [000] d..1. 8: planewise_complete: 8,0 now=14 slot=0 write sector=0 sectors=8 units={0x1}\n";
        let replayed = told(&format!("{read}{write}{ends}")).unwrap();
        let Replayed { created, inserted, dispatched, completed, .. } = replayed;
        assert_eq!((created, inserted, dispatched, completed), (1, 2, 2, 1));
        let other = told(write).unwrap_err();
        assert!(
            other.line == 7 && other.what.contains("slot 0 goes next") && other.what.contains("slot 1"),
            "{other}"
        );
        let held = told("x-1 [000] d..1. 6: planewise_hold: 8,0 now=12 wake=50\n").unwrap_err();
        assert!(held.what.contains("none goes"), "{held}");
        let nothing = told(&format!("{read}{write}{write}")).unwrap_err();
        assert!(nothing.line == 9 && nothing.what.contains("Wait"), "{nothing}");
    }

    #[test]
    fn what_is_no_whole_trace_is_refused_by_its_line() {
        let refused = |more: &str, line: u64, word: &str| {
            let error = told(more).unwrap_err();
            assert!(error.line == line && error.what.contains(word), "{error}");
        };
        let event = "x-1 [000] d..1. 6: planewise_";
        refused("CPU:0 [LOST 12 EVENTS]\n", 7, "lost");
        refused(
            &format!("{event}insert: 8,0 now=12 slot=2 read sector=16 sectors=8 units={{0x2}}\n"),
            7,
            "units",
        );
        refused(
            &format!("{event}insert: 8,0 now=12 slot=1 read sector=16 sectors=8 units={{0x1}}\n"),
            7,
            "slot 1",
        );
        refused(
            &format!("{event}insert: 8,0 now=12 slot=x read sector=16 sectors=8 units={{0x1}}\n"),
            7,
            "slot",
        );
        refused(
            &format!("{event}complete: 8,0 now=12 slot=9 read sector=1 sectors=8 units={{0x1}}\n"),
            7,
            "slot 9",
        );
        refused(
            &format!("{event}complete: 9,0 now=12 slot=0 read sector=1 sectors=8 units={{0x1}}\n"),
            7,
            "9,0",
        );
        refused(&format!("{event}tunable: 8,0 name=barrier value=1\n"), 7, "barrier");
        refused(&format!("{event}length: 8,0 queue_length=9\n"), 7, "nr_requests");
        refused(&format!("{event}nonsense: 8,0 now=1\n"), 7, "nonsense");
        refused(
            &format!("{event}insert: 8,0 now=12 slot=2 read sector=16 sectors=0 units={{0x1}}\n"),
            7,
            "no sector",
        );
    }
}
