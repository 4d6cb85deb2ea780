//! From options to a job: defaults filled in, contradictions refused before anything runs.

use super::offsets::Distribution;
use super::section::Level;
use crate::error::WorkloadError;
use crate::values::{Amount, unknown};
use planewise_model::{Bytes, Direction, Durability, Ns};

/// One size of a split and the share of requests, in per cent, that have this or an earlier one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Split {
    /// Bytes.
    pub size: u32,
    /// Per cent, up to 100.
    pub below: f64,
}

/// Sizes of requests, bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum Sizes {
    /// Always the same.
    Fixed(u32),
    /// Any multiple of the first up to the second.
    Range(u32, u32),
    /// Several with their shares.
    Split(Vec<Split>),
}

impl Sizes {
    /// The smallest, bytes.
    pub fn smallest(&self) -> u32 {
        match self {
            Sizes::Fixed(size) | Sizes::Range(size, _) => *size,
            Sizes::Split(parts) => parts.iter().map(|part| part.size).min().unwrap_or(512),
        }
    }

    /// The largest, bytes.
    pub fn largest(&self) -> u32 {
        match self {
            Sizes::Fixed(size) | Sizes::Range(_, size) => *size,
            Sizes::Split(parts) => parts.iter().map(|part| part.size).max().unwrap_or(512),
        }
    }
}

/// What a request of a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
}

impl Kind {
    /// All, in the order of fio's lists READ,WRITE,TRIM and of arrays indexed by kind.
    pub const ALL: [Kind; 3] = [Kind::Read, Kind::Write, Kind::Trim];

    /// 0 for reads, 1 for writes, 2 for trims.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Which way data move; trims count as writes.
    pub const fn direction(self) -> Direction {
        match self {
            Kind::Read => Direction::Read,
            Kind::Write | Kind::Trim => Direction::Write,
        }
    }
}

/// What a job's requests do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// All the same.
    Only(Kind),
    /// So many per cent are reads, the others writes.
    Reads(f64),
    /// Each trim is followed by a write of what it trimmed. Limits on bytes and requests count the trims.
    TrimWrites,
}

impl Share {
    /// Whether there are requests of a kind.
    pub fn uses(self, kind: Kind) -> bool {
        match self {
            Share::Only(only) => only == kind,
            Share::Reads(_) => kind != Kind::Trim,
            Share::TrimWrites => kind != Kind::Read,
        }
    }
}

/// The kinds that a pattern's name stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kinds {
    Only(Kind),
    ReadsAndWrites,
    TrimWrites,
}

/// Names of patterns, as fio has them.
const PATTERNS: [&str; 10] = [
    "read",
    "write",
    "trim",
    "randread",
    "randwrite",
    "randtrim",
    "rw",
    "randrw",
    "trimwrite",
    "randtrimwrite",
];

/// What follows a pattern's colon, which is a number of requests or a size.
#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    random: bool,
    kinds: Kinds,
    argument: Option<String>,
}

/// Options as given: nothing where one was not.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pattern: Option<Pattern>,
    pub(super) bs: Option<[Sizes; 3]>,
    pub(super) bsrange: Option<[Sizes; 3]>,
    pub(super) bssplit: Option<[Sizes; 3]>,
    pub(super) blockalign: Option<u32>,
    pub(super) iodepth: Option<u32>,
    pub(super) one_at_a_time: Option<bool>,
    pub(super) numjobs: Option<u32>,
    pub(super) size: Option<Amount>,
    pub(super) io_size: Option<Amount>,
    pub(super) number_ios: Option<u64>,
    pub(super) loops: Option<u64>,
    pub(super) offset: Option<Amount>,
    pub(super) offset_increment: Option<Amount>,
    pub(super) runtime: Option<Ns>,
    pub(super) time_based: Option<bool>,
    pub(super) ramp_time: Option<Ns>,
    pub(super) startdelay: Option<Ns>,
    pub(super) stonewall: Option<bool>,
    pub(super) rwmixread: Option<f64>,
    pub(super) rwmixwrite: Option<f64>,
    pub(super) percentage_random: Option<[f64; 3]>,
    pub(super) distribution: Option<Distribution>,
    pub(super) norandommap: Option<bool>,
    pub(super) stride: Option<u32>,
    pub(super) thinktime: Option<Ns>,
    pub(super) thinktime_blocks: Option<u64>,
    pub(super) rate: Option<[u64; 3]>,
    pub(super) rate_iops: Option<[u64; 3]>,
    pub(super) direct: Option<bool>,
    pub(super) buffered: Option<bool>,
    pub(super) sync: Option<Durability>,
    pub(super) fsync: Option<u64>,
    pub(super) fdatasync: Option<u64>,
    pub(super) end_fsync: Option<bool>,
    pub(super) fsync_on_close: Option<bool>,
    pub(super) randseed: Option<u64>,
    pub(super) name: Option<String>,
    /// Who said what, by the first names of options.
    pub(super) levels: Vec<(&'static str, Level)>,
}

impl Settings {
    pub(super) fn set_pattern(&mut self, text: &str) -> Result<(), String> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (text, None),
        };
        let (random, kinds) = match name {
            "read" => (false, Kinds::Only(Kind::Read)),
            "write" => (false, Kinds::Only(Kind::Write)),
            "trim" => (false, Kinds::Only(Kind::Trim)),
            "rw" | "readwrite" => (false, Kinds::ReadsAndWrites),
            "trimwrite" => (false, Kinds::TrimWrites),
            "randread" => (true, Kinds::Only(Kind::Read)),
            "randwrite" => (true, Kinds::Only(Kind::Write)),
            "randtrim" => (true, Kinds::Only(Kind::Trim)),
            "randrw" => (true, Kinds::ReadsAndWrites),
            "randtrimwrite" => (true, Kinds::TrimWrites),
            _ => return Err(unknown(text, &PATTERNS)),
        };
        self.pattern = Some(Pattern { random, kinds, argument });
        Ok(())
    }

    /// Whether the pattern is random, and whether it mixes reads and writes.
    pub(super) fn kind(&self) -> (bool, bool) {
        self.pattern
            .as_ref()
            .map_or((false, false), |pattern| (pattern.random, pattern.kinds == Kinds::ReadsAndWrites))
    }
}

/// A job, checked: what each of its processes does.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What results call it.
    pub name: String,
    /// Processes that do the same.
    pub processes: u32,
    /// What its requests do.
    pub share: Share,
    /// Whether offsets are random; sequential otherwise.
    pub random: bool,
    /// Requests one behind the other from each random offset, 1 or more.
    pub run: u64,
    /// Bytes from the start of a sequential request to that of the next, beyond the request itself.
    pub gap: u64,
    /// Share of random offsets, per cent, by [`Kind`].
    pub percentage_random: [f64; 3],
    /// How random offsets are spread.
    pub distribution: Distribution,
    /// Whether each random offset is used once before one is used again.
    pub each_once: bool,
    /// Sizes by [`Kind`].
    pub sizes: [Sizes; 3],
    /// Random offsets are multiples of this, bytes.
    pub align: u32,
    /// Requests in flight of each process.
    pub depth: u32,
    /// First byte of the first process's area.
    pub offset: u64,
    /// How much further each process begins, bytes.
    pub offset_increment: u64,
    /// Bytes of an area.
    pub size: u64,
    /// Bytes that each process moves at most.
    pub bytes: u64,
    /// Requests that each process issues at most.
    pub requests: u64,
    /// Time after its start and the ramp at which it ends.
    pub runtime: Option<Ns>,
    /// Time that is not measured.
    pub ramp_time: Ns,
    /// Time before its start.
    pub delay: Ns,
    /// Whether it starts when all before it are done.
    pub stonewall: bool,
    /// Pause, and after how many completions.
    pub think: (Ns, u64),
    /// Most bytes and most requests a second, by [`Kind`].
    pub rates: [(Option<u64>, Option<u64>); 3],
    /// Whether someone waits for its writes.
    pub synchronous_writes: bool,
    /// What the acknowledgement of its writes promises.
    pub durability: Durability,
    /// After how many writes each process flushes with metadata, 1 or more.
    pub fsync: Option<u64>,
    /// After how many writes each process flushes, 1 or more. Where both are due, the other goes.
    pub fdatasync: Option<u64>,
    /// Whether each process that wrote since its last flush ends with one.
    pub end_fsync: bool,
    /// Number of its random sequence.
    pub seed: u64,
}

impl Job {
    /// Whether it changes what is on the device.
    pub fn changes(&self) -> bool {
        self.share.uses(Kind::Write) || self.share.uses(Kind::Trim)
    }

    /// Sizes of the kinds that it uses.
    fn used_sizes(&self) -> impl Iterator<Item = &Sizes> {
        Kind::ALL.into_iter().filter(|kind| self.share.uses(*kind)).map(|kind| &self.sizes[kind.index()])
    }

    /// The smallest request that it issues, bytes.
    pub fn smallest(&self) -> u32 {
        self.used_sizes().map(Sizes::smallest).min().unwrap_or(512)
    }

    /// The largest request that it issues, bytes.
    pub fn largest(&self) -> u32 {
        self.used_sizes().map(Sizes::largest).max().unwrap_or(512)
    }
}

/// Bytes as a person wrote them, more or less.
fn told(bytes: u64) -> String {
    if bytes >= 1024 { format!("{bytes} bytes ({})", Bytes(bytes)) } else { format!("{bytes} bytes") }
}

impl Settings {
    /// The job that the options describe on a device of so many bytes.
    ///
    /// # Errors
    /// What contradicts what.
    pub(super) fn resolve(&self, name: &str, device_bytes: u64) -> Result<Job, WorkloadError> {
        let error =
            |key: &str, found: String, allowed: &str| Err(WorkloadError::option(name, key, found, allowed));
        let pattern = self.pattern.clone().unwrap_or(Pattern {
            random: false,
            kinds: Kinds::Only(Kind::Read),
            argument: None,
        });
        let share = self.share(name, &pattern)?;
        let sizes = self.sizes(name)?;
        let used_sizes: Vec<&Sizes> =
            Kind::ALL.into_iter().filter(|of| share.uses(*of)).map(|of| &sizes[of.index()]).collect();
        if share == Share::TrimWrites && used_sizes[0] != used_sizes[1] {
            let key = [("bssplit", &self.bssplit), ("bsrange", &self.bsrange)]
                .into_iter()
                .find_map(|(key, sizes)| sizes.as_ref().map(|_| key))
                .unwrap_or("bs");
            let allowed = "one for both, since what is trimmed is what is written";
            return error(key, "other sizes of writes than of trims".to_owned(), allowed);
        }
        let smallest = used_sizes.iter().map(|sizes| sizes.smallest()).min().unwrap_or(512);
        let largest = used_sizes.iter().map(|sizes| sizes.largest()).max().unwrap_or(512);
        let fixed = used_sizes.iter().all(|sizes| matches!(sizes, Sizes::Fixed(_)));
        let align = self.blockalign.unwrap_or(smallest);

        let offset = self.offset.map_or(0, |offset| offset.of(device_bytes));
        let step = self.offset_increment.map_or(0, |step| step.of(device_bytes));
        for (key, value) in [("offset", offset), ("offset_increment", step)] {
            if value % 512 != 0 {
                return error(key, told(value), "a multiple of 512 bytes");
            }
        }
        let processes = self.numjobs.unwrap_or(1);
        let last = step.checked_mul(u64::from(processes) - 1).and_then(|steps| steps.checked_add(offset));
        let Some(last) = last.filter(|last| *last < device_bytes) else {
            let key = if step > 0 { "offset_increment" } else { "offset" };
            let found = format!("{} for {processes} processes", told(if step > 0 { step } else { offset }));
            return error(key, found, &format!("areas inside the device of {}", told(device_bytes)));
        };
        let size = self.size.map_or(device_bytes - last, |size| size.of(device_bytes)) & !511;
        if size < u64::from(largest) {
            let allowed = format!("at least one request of {}", told(largest.into()));
            return error("size", told(size), &allowed);
        }
        if last.checked_add(size).is_none_or(|end| end > device_bytes) {
            let allowed = format!("up to the {} behind offset {last}", told(device_bytes - last));
            return error("size", told(size), &allowed);
        }
        if !pattern.random && self.percentage_random.is_some() {
            return error(
                "percentage_random",
                "a sequential pattern".to_owned(),
                "randread, randwrite, randtrim, randrw, randtrimwrite",
            );
        }
        if !pattern.random && self.distribution.is_some() {
            return error(
                "random_distribution",
                "a sequential pattern".to_owned(),
                "randread, randwrite, randtrim, randrw, randtrimwrite",
            );
        }
        if self.distribution.is_some_and(|of| of != Distribution::Uniform) && u64::from(align) > size {
            return error("blockalign", told(align.into()), "up to size");
        }
        let (run, gap) = self.run_and_gap(name, &pattern, smallest, largest, size)?;
        let depth = self.iodepth.unwrap_or(1);
        if depth > 1 && self.one_at_a_time == Some(true) {
            return error("iodepth", format!("{depth} with a synchronous ioengine"), "1, or ioengine=libaio");
        }
        let time_based = self.time_based.unwrap_or(false);
        if time_based && self.runtime.is_none() {
            return error("time_based", "no runtime".to_owned(), "a runtime beside it");
        }
        if self.runtime == Some(Ns::ZERO) {
            return error("runtime", "0".to_owned(), "more than 0");
        }
        if self.thinktime_blocks.is_some() && self.thinktime.is_none() {
            return error("thinktime_blocks", "no thinktime".to_owned(), "a thinktime beside it");
        }
        if let (Some(direct), Some(buffered)) = (self.direct, self.buffered)
            && direct == buffered
        {
            return error("buffered", "the same as direct".to_owned(), "one of the two");
        }
        let direct = self.direct.unwrap_or(!self.buffered.unwrap_or(false));
        let io_size = self.io_size.map_or(size, |size| size.of(device_bytes));
        if io_size == 0 {
            return error("io_size", "0".to_owned(), "more than 0");
        }
        let uniform = fixed && smallest == largest && smallest == align;
        let all_random = self.percentage_random.is_none_or(|shares| shares == [100.0; 3]) && run == 1;
        let distribution = self.distribution.unwrap_or(Distribution::Uniform);
        Ok(Job {
            name: self.name.clone().unwrap_or_else(|| name.to_owned()),
            processes,
            share,
            random: pattern.random,
            run,
            gap,
            percentage_random: self.percentage_random.unwrap_or([100.0; 3]),
            distribution,
            each_once: pattern.random
                && uniform
                && all_random
                && distribution == Distribution::Uniform
                && !self.norandommap.unwrap_or(false),
            sizes,
            align,
            depth,
            offset,
            offset_increment: step,
            size,
            bytes: if time_based { u64::MAX } else { io_size.saturating_mul(self.loops.unwrap_or(1)) },
            requests: self.number_ios.unwrap_or(u64::MAX),
            runtime: self.runtime,
            ramp_time: self.ramp_time.unwrap_or(Ns::ZERO),
            delay: self.startdelay.unwrap_or(Ns::ZERO),
            stonewall: self.stonewall.unwrap_or(false),
            think: (self.thinktime.unwrap_or(Ns::ZERO), self.thinktime_blocks.unwrap_or(1)),
            rates: [0, 1, 2]
                .map(|index| (self.rate.map(|rate| rate[index]), self.rate_iops.map(|rate| rate[index]))),
            synchronous_writes: direct || self.sync.is_some_and(|promise| promise != Durability::Volatile),
            durability: self.sync.unwrap_or_default(),
            fsync: self.fsync.filter(|writes| *writes > 0),
            fdatasync: self.fdatasync.filter(|writes| *writes > 0),
            end_fsync: self.end_fsync.unwrap_or(false) || self.fsync_on_close.unwrap_or(false),
            seed: self.randseed.unwrap_or(0),
        })
    }

    fn share(&self, name: &str, pattern: &Pattern) -> Result<Share, WorkloadError> {
        let mix = [("rwmixread", self.rwmixread), ("rwmixwrite", self.rwmixwrite)];
        let share = match pattern.kinds {
            Kinds::Only(kind) => Some(Share::Only(kind)),
            Kinds::TrimWrites => Some(Share::TrimWrites),
            Kinds::ReadsAndWrites => None,
        };
        if let Some(share) = share {
            return match mix.into_iter().find(|(_, value)| value.is_some()) {
                None => Ok(share),
                Some((key, _)) => {
                    let one = matches!(share, Share::Only(_));
                    let found = if one { "a pattern of one direction" } else { "trims and writes" };
                    Err(WorkloadError::option(name, key, found, "rw=rw or rw=randrw beside it"))
                }
            };
        }
        match (self.rwmixread, self.rwmixwrite) {
            (Some(read), Some(write)) if read + write != 100.0 => {
                let found = format!("{read} and rwmixwrite {write}");
                Err(WorkloadError::option(
                    name,
                    "rwmixread",
                    found,
                    "shares that add up to 100, or one of them",
                ))
            }
            (Some(read), _) => Ok(Share::Reads(read)),
            (None, Some(write)) => Ok(Share::Reads(100.0 - write)),
            (None, None) => Ok(Share::Reads(50.0)),
        }
    }

    fn sizes(&self, name: &str) -> Result<[Sizes; 3], WorkloadError> {
        let given = [("bs", &self.bs), ("bsrange", &self.bsrange), ("bssplit", &self.bssplit)];
        let mut given = given.into_iter().filter_map(|(key, sizes)| Some((key, sizes.as_ref()?)));
        match (given.next(), given.next()) {
            (Some((first, _)), Some((second, _))) => {
                let found = format!("{second} beside {first}");
                Err(WorkloadError::option(name, second, found, "one of bs, bsrange, bssplit"))
            }
            (Some((_, sizes)), None) => Ok(sizes.clone()),
            (None, _) => Ok([const { Sizes::Fixed(4096) }; 3]),
        }
    }

    /// Requests of a run after each random offset, and the bytes left out between sequential requests.
    fn run_and_gap(
        &self,
        name: &str,
        pattern: &Pattern,
        smallest: u32,
        largest: u32,
        size: u64,
    ) -> Result<(u64, u64), WorkloadError> {
        let error =
            |key: &str, found: String, allowed: &str| Err(WorkloadError::option(name, key, found, allowed));
        if let Some(argument) = pattern.argument.as_ref().filter(|_| pattern.random) {
            return match argument.parse::<u64>() {
                Ok(run) if run > 0 && self.stride.is_none() => Ok((run, 0)),
                _ => error(
                    "rw",
                    format!("':{argument}'"),
                    "a number of requests, 1 or more, after a random pattern",
                ),
            };
        }
        if let Some(argument) = &pattern.argument {
            let gap = crate::values::bytes(argument).ok().filter(|gap| gap % 512 == 0 && *gap < size);
            return match gap {
                Some(_) if self.stride.is_some() => {
                    error("stride", "a size after the pattern".to_owned(), "one of the two")
                }
                Some(gap) => Ok((1, gap)),
                None => error(
                    "rw",
                    format!("':{argument}'"),
                    "a multiple of 512 bytes below size after a sequential pattern",
                ),
            };
        }
        let Some(stride) = self.stride else { return Ok((1, 0)) };
        if pattern.random {
            return error("stride", "a random pattern".to_owned(), "rw=read, write, trim, rw or trimwrite");
        }
        if smallest != largest {
            return error("stride", "requests of several sizes".to_owned(), "one size");
        }
        if stride < largest || u64::from(stride) > size {
            let allowed = format!("from the size of a request, {largest}, to the whole area");
            return error("stride", told(stride.into()), &allowed);
        }
        Ok((1, u64::from(stride - largest)))
    }
}
