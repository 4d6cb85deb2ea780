//! A volume in numbers: what its look-alike must measure as, and what shapes it beyond that.

use crate::stats::TraceStats;
use planewise_model::config::{ConfigError, parse_toml};
use planewise_model::names;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const GIB: f64 = (1u64 << 30) as f64;
const KIB: f64 = 1024.0;
/// Of all pages accessed, the largest share that can be new: past it the law of growth asks for more than there is.
const NEW_SHARE_MAX: f64 = 0.95;

/// A volume as published: the columns hold at [`requests`](VolumeDescription::requests) requests;
/// [`columns`](VolumeDescription::columns) says what they are at any other length.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeDescription {
    /// The name it is listed under: lower case.
    pub name: String,
    /// One line: which volume of which publication.
    pub summary: String,
    /// Number of requests at which the columns hold.
    pub requests: u64,
    /// Writes over all requests, 0 to 1.
    pub write_ratio: f64,
    /// Distinct 4 KiB pages touched, in GiB.
    pub working_set_gib: f64,
    /// Volume moved, in GiB. Must agree with requests × mean size within 2 %.
    pub accessed_gib: f64,
    /// Mean size of reads, in KiB.
    pub read_mean_kib: f64,
    /// Mean size of writes, in KiB.
    pub write_mean_kib: f64,
    /// Sequential requests over all, 0 to 1, as [`SequentialDetector`](crate::stats::SequentialDetector) counts with its defaults.
    pub sequential_share: f64,
    /// Mean inter-arrival time, in ms.
    pub inter_arrival_ms: f64,
    /// Requests at most 0.2 ms after their predecessor, 0 to 1.
    pub burst_share: f64,
    /// Of all 4 KiB pages written, the share that had been written before, 0 to 1. With writes smaller than a page it is
    /// the share of the volume written, and measures higher: every further write to a page counts as an update of it.
    pub update_share: f64,
    /// What the columns leave open.
    pub shape: Shape,
    /// Where each number comes from, by its key (the shape's keys as well).
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
}

/// What the columns of a table leave open and a stream of requests must decide.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shape {
    /// Exponent h of the working set's growth: W(n) = W · (n / requests)^h. Above 0, at most 1.
    pub working_set_growth: f64,
    /// Mean requests per burst of at least two.
    pub burst_length_mean: f64,
    /// Longest burst, in requests: 3 to 4096. Lengths follow a power law up to it.
    pub burst_length_max: u32,
    /// Mean gap inside bursts, in us; below 200.
    pub burst_gap_mean_us: f64,
    /// Sigma of the log-normal gaps inside bursts, 0 to 3; they end at 200 us.
    pub burst_gap_sigma: f64,
    /// Sigma of the log-normal gaps between bursts, 0 to 3; they start above 200 us.
    pub idle_gap_sigma: f64,
    /// Correlation of a request's direction with its predecessor's inside a burst, 0 (coin tosses) to below 1.
    pub direction_correlation_in_bursts: f64,
    /// The same across the gap between bursts.
    pub direction_correlation_between_bursts: f64,
    /// Skew s of re-use, 0 (uniform) to below 1: the hottest share x of the pages takes x^(1−s) of the jumps to old pages.
    pub reuse_skew: f64,
    /// Of the jumps of reads to old pages, the share that goes to pages which had been written, 0 to 1.
    pub reads_of_written_share: f64,
    /// Sequential streams going on at once in each direction, 1 to 12.
    pub streams: u32,
    /// Size of the volume's address space, in GiB.
    pub address_span_gib: f64,
    /// Sizes of reads as `[KiB, weight]`, multiples of 0.5 KiB. The weights are tilted exponentially to hit the mean.
    pub read_sizes: Vec<(f64, f64)>,
    /// Sizes of writes, likewise.
    pub write_sizes: Vec<(f64, f64)>,
}

/// What a stream of a given length should measure as.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Columns {
    /// Number of requests.
    pub requests: u64,
    /// Writes over all.
    pub write_ratio: f64,
    /// Distinct 4 KiB pages touched, in bytes.
    pub working_set: f64,
    /// Distinct 4 KiB pages written, in bytes.
    pub written_set: f64,
    /// Bytes moved.
    pub accessed: f64,
    /// Mean size of reads in bytes.
    pub read_mean: f64,
    /// Mean size of writes in bytes.
    pub write_mean: f64,
    /// Sequential requests over all.
    pub sequential_share: f64,
    /// Mean inter-arrival time in ns.
    pub inter_arrival: f64,
    /// Burst requests over all.
    pub burst_share: f64,
    /// Updates over all pages written.
    pub update_share: f64,
}

/// One column, as it should be and as it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The column's name, as in [`Columns`].
    pub column: &'static str,
    /// What the description says.
    pub expected: f64,
    /// What was measured.
    pub measured: f64,
}

impl Comparison {
    /// Relative error; the absolute one where the expectation is 0.
    pub fn error(&self) -> f64 {
        let difference = (self.measured - self.expected).abs();
        if self.expected == 0.0 { difference } else { difference / self.expected.abs() }
    }
}

impl Columns {
    /// Every published column beside what a trace measured as, in the order of Table II of the idle-chip paper. Columns
    /// without requests to measure them on are left out.
    pub fn compare(&self, stats: &TraceStats) -> Vec<Comparison> {
        let rows = [
            ("requests", self.requests as f64, Some(stats.requests as f64)),
            ("write_ratio", self.write_ratio, stats.write_ratio),
            ("working_set", self.working_set, Some(stats.working_set.0 as f64)),
            ("accessed", self.accessed, Some(stats.accessed.0 as f64)),
            ("read_mean", self.read_mean, stats.reads.size_mean),
            ("write_mean", self.write_mean, stats.writes.size_mean),
            ("sequential_share", self.sequential_share, stats.sequential_share),
            ("inter_arrival", self.inter_arrival, stats.inter_arrival_mean),
            ("burst_share", self.burst_share, stats.burst_share),
            ("update_share", self.update_share, stats.update_share),
        ];
        rows.into_iter()
            .filter_map(|(column, expected, measured)| {
                Some(Comparison { column, expected, measured: measured? })
            })
            .collect()
    }
}

impl VolumeDescription {
    /// Reads a description from TOML and checks it.
    ///
    /// # Errors
    /// What [`parse_toml`] and [`VolumeDescription::check`] say, with the line of the key at fault.
    pub fn parse(text: &str, origin: &str) -> Result<VolumeDescription, ConfigError> {
        let description: VolumeDescription = parse_toml(text, origin)?;
        description.check().map_err(|(key, problem)| ConfigError::at_key(origin, text, key, &problem))?;
        Ok(description)
    }

    /// Mean size over both directions, in KiB.
    pub fn mean_kib(&self) -> f64 {
        self.write_ratio * self.write_mean_kib + (1.0 - self.write_ratio) * self.read_mean_kib
    }

    /// The columns of a stream of `requests` requests. Ratios, means and gaps do not depend on the length; the volume
    /// accessed grows in proportion; the working set and the set of written pages grow as (n / requests)^h, but at most
    /// 95 % of the pages a direction accesses are new; the share of updates follows from them.
    pub fn columns(&self, requests: u64) -> Columns {
        let written_set = self.written_set(requests);
        let write_bytes = requests as f64 * self.write_ratio * self.write_mean_kib * KIB;
        Columns {
            requests,
            write_ratio: self.write_ratio,
            working_set: written_set + self.read_only_set(requests),
            written_set,
            accessed: requests as f64 * self.mean_kib() * KIB,
            read_mean: self.read_mean_kib * KIB,
            write_mean: self.write_mean_kib * KIB,
            sequential_share: self.sequential_share,
            inter_arrival: self.inter_arrival_ms * 1e6,
            burst_share: self.burst_share,
            update_share: if write_bytes > 0.0 { 1.0 - written_set / write_bytes } else { 0.0 },
        }
    }

    /// Bytes of distinct pages written by a stream of this length.
    pub fn written_set(&self, requests: u64) -> f64 {
        let write_bytes = self.write_ratio * self.write_mean_kib * KIB;
        let full = self.requests as f64 * write_bytes * (1.0 - self.update_share);
        (full * self.growth(requests)).min(NEW_SHARE_MAX * requests as f64 * write_bytes)
    }

    /// Bytes of distinct pages read and never written by a stream of this length.
    pub fn read_only_set(&self, requests: u64) -> f64 {
        let read_bytes = (1.0 - self.write_ratio) * self.read_mean_kib * KIB;
        let full = (self.working_set_gib * GIB - self.written_set(self.requests)).max(0.0);
        (full * self.growth(requests)).min(NEW_SHARE_MAX * requests as f64 * read_bytes)
    }

    fn growth(&self, requests: u64) -> f64 {
        (requests as f64 / self.requests as f64).powf(self.shape.working_set_growth)
    }

    /// The address span in bytes.
    pub fn address_span(&self) -> f64 {
        self.shape.address_span_gib * GIB
    }

    /// Checks ranges, and that the columns can hold together.
    ///
    /// # Errors
    /// The key at fault, and what was found and what is allowed.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_ranges()?;
        self.check_columns()?;
        let known = self.keys();
        for key in self.sources.keys() {
            if !known.iter().any(|known| known == key) {
                return Err((
                    "sources",
                    names::unknown("key", key, known.iter().map(String::as_str)).to_string(),
                ));
            }
        }
        Ok(())
    }

    /// Every key that can have a source: the description's and the shape's.
    pub fn keys(&self) -> Vec<String> {
        let keys = |table: &toml::Table| table.keys().cloned().collect::<Vec<_>>();
        let table = toml::Table::try_from(self).expect("a description is a table");
        let mut known: Vec<String> = keys(&table);
        known.retain(|key| !matches!(key.as_str(), "name" | "summary" | "shape" | "sources"));
        known.extend(table["shape"].as_table().map(keys).unwrap_or_default());
        known
    }

    fn check_ranges(&self) -> Result<(), (&'static str, String)> {
        let shape = &self.shape;
        let above = |key, value: f64, low: f64, high: f64| {
            // NaN fails the comparison and is refused as well.
            if value > low && value <= high {
                Ok(())
            } else {
                Err((key, format!("{value}; allowed: above {low}, up to {high}")))
            }
        };
        let within = |key, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err((key, format!("{value}; allowed: {low} to {high}")))
            }
        };
        if self.name.is_empty() {
            return Err(("name", "empty; allowed: a name".to_owned()));
        }
        within("requests", self.requests as f64, 1.0, 1e12)?;
        within("write_ratio", self.write_ratio, 0.0, 1.0)?;
        above("working_set_gib", self.working_set_gib, 0.0, 16384.0)?;
        above("accessed_gib", self.accessed_gib, 0.0, 1e9)?;
        above("read_mean_kib", self.read_mean_kib, 0.0, 65536.0)?;
        above("write_mean_kib", self.write_mean_kib, 0.0, 65536.0)?;
        within("sequential_share", self.sequential_share, 0.0, 0.9999)?;
        above("inter_arrival_ms", self.inter_arrival_ms, 0.0, 1e6)?;
        within("burst_share", self.burst_share, 0.0, 0.9999)?;
        within("update_share", self.update_share, 0.0, 1.0)?;
        above("working_set_growth", shape.working_set_growth, 0.0, 1.0)?;
        within("burst_length_max", f64::from(shape.burst_length_max), 3.0, 4096.0)?;
        above("burst_gap_mean_us", shape.burst_gap_mean_us, 0.0, 190.0)?;
        within("burst_gap_sigma", shape.burst_gap_sigma, 0.0, 3.0)?;
        within("idle_gap_sigma", shape.idle_gap_sigma, 0.0, 3.0)?;
        within("direction_correlation_in_bursts", shape.direction_correlation_in_bursts, 0.0, 0.999)?;
        within(
            "direction_correlation_between_bursts",
            shape.direction_correlation_between_bursts,
            0.0,
            0.999,
        )?;
        within("reuse_skew", shape.reuse_skew, 0.0, 0.99)?;
        within("reads_of_written_share", shape.reads_of_written_share, 0.0, 1.0)?;
        within("streams", f64::from(shape.streams), 1.0, 12.0)?;
        above("address_span_gib", shape.address_span_gib, 0.0, 16384.0)?;
        check_sizes("read_sizes", &shape.read_sizes, "read_mean_kib", self.read_mean_kib)?;
        check_sizes("write_sizes", &shape.write_sizes, "write_mean_kib", self.write_mean_kib)
    }

    fn check_columns(&self) -> Result<(), (&'static str, String)> {
        let shape = &self.shape;
        let product = self.requests as f64 * self.mean_kib() * KIB / GIB;
        if (self.accessed_gib - product).abs() > 0.02 * product {
            let problem = format!("{}; requests times mean size make {product:.3}", self.accessed_gib);
            return Err(("accessed_gib", problem));
        }
        // One burst of mean length 1 / (1 - b) per arrival that is not in a burst: the identity behind the bound.
        let least = 1.0 + self.burst_share / (1.0 - self.burst_share);
        let longest = f64::from(shape.burst_length_max);
        if !(shape.burst_length_mean >= least.max(2.0) && shape.burst_length_mean <= (2.0 + longest) / 2.0) {
            let found = shape.burst_length_mean;
            let problem = format!(
                "{found}; allowed with this burst_share and burst_length_max: {:.2} to {:.2}",
                least.max(2.0),
                (2.0 + longest) / 2.0
            );
            return Err(("burst_length_mean", problem));
        }
        let busy_ms = self.burst_share * shape.burst_gap_mean_us / 1e3;
        let idle_ms = (self.inter_arrival_ms - busy_ms) / (1.0 - self.burst_share);
        if idle_ms < 0.21 {
            let problem = format!(
                "{}; burst_share and burst_gap_mean_us leave {idle_ms:.3} ms between bursts, at least 0.21 are needed",
                self.inter_arrival_ms
            );
            return Err(("inter_arrival_ms", problem));
        }
        let working_set = self.working_set_gib * GIB;
        let written = self.written_set(self.requests);
        let read_bytes = self.requests as f64 * (1.0 - self.write_ratio) * self.read_mean_kib * KIB;
        let most = written + NEW_SHARE_MAX * read_bytes;
        if written > working_set * 1.001 || working_set > most {
            let problem = format!(
                "{}; the writes and update_share make {:.3} GiB of written pages, and the reads can add no more than {:.3}",
                self.working_set_gib,
                written / GIB,
                (most - written) / GIB
            );
            return Err(("working_set_gib", problem));
        }
        let span = self.address_span();
        if working_set * 1.25 > span {
            let least = self.working_set_gib * 1.25;
            return Err((
                "address_span_gib",
                format!("{}; allowed: at least {least:.3}", shape.address_span_gib),
            ));
        }
        Ok(())
    }
}

fn check_sizes(
    key: &'static str,
    sizes: &[(f64, f64)],
    mean_key: &'static str,
    mean: f64,
) -> Result<(), (&'static str, String)> {
    if sizes.is_empty() || sizes.len() > 64 {
        return Err((key, format!("{} sizes; allowed: 1 to 64", sizes.len())));
    }
    for &(kib, weight) in sizes {
        let sectors = kib * 2.0;
        if !(kib > 0.0 && sectors.fract() == 0.0 && kib <= 65536.0) {
            return Err((key, format!("a size of {kib} KiB; allowed: multiples of 0.5 up to 65536")));
        }
        if !(weight > 0.0 && weight <= 1e9) {
            return Err((key, format!("a weight of {weight}; allowed: above 0, up to 1e9")));
        }
    }
    let smallest = sizes.iter().map(|&(kib, _)| kib).fold(f64::INFINITY, f64::min);
    let largest = sizes.iter().map(|&(kib, _)| kib).fold(0.0, f64::max);
    let fits = if smallest == largest { mean == smallest } else { mean > smallest && mean < largest };
    if fits {
        Ok(())
    } else {
        Err((mean_key, format!("{mean}; allowed by {key}: between {smallest} and {largest}")))
    }
}
