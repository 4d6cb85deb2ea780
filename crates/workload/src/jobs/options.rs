//! The options of fio by name: which mean something here, which are harmless, and which a simulated device has no place for.

use super::check::{Settings, Sizes, Split};
use super::offsets::Distribution;
use crate::values::{amount, bytes, count, percent, switch, time, time_us, unknown};
use planewise_model::Durability;
use planewise_model::names::{self, UnknownName};

/// What becomes of an option.
#[derive(Clone, Copy)]
pub enum Support {
    /// It decides about the run. The error says what is allowed.
    Used(fn(&mut Settings, &str) -> Result<(), String>),
    /// It is accepted, and without effect on a simulated device.
    Harmless,
    /// It is accepted, and the user is told that it has no effect: where it matters on a real machine, it matters much.
    Noted,
    /// It cannot mean anything here; why, or what to use instead.
    Refused(&'static str),
}

/// An option.
#[derive(Clone, Copy)]
pub struct OptionEntry {
    /// Its name, which is fio's unless `help` says otherwise.
    pub name: &'static str,
    /// Other names that fio knows it by.
    pub aliases: &'static [&'static str],
    /// What a value looks like, in help.
    pub value: &'static str,
    /// One line.
    pub help: &'static str,
    /// What becomes of it.
    pub support: Support,
}

const fn used(
    name: &'static str,
    aliases: &'static [&'static str],
    value: &'static str,
    help: &'static str,
    set: fn(&mut Settings, &str) -> Result<(), String>,
) -> OptionEntry {
    OptionEntry { name, aliases, value, help, support: Support::Used(set) }
}

const fn harmless(name: &'static str) -> OptionEntry {
    OptionEntry { name, aliases: &[], value: "", help: "", support: Support::Harmless }
}

const fn noted(name: &'static str) -> OptionEntry {
    OptionEntry { name, aliases: &[], value: "", help: "", support: Support::Noted }
}

const fn refused(name: &'static str, why: &'static str) -> OptionEntry {
    OptionEntry { name, aliases: &[], value: "", help: "", support: Support::Refused(why) }
}

const NO_FILES: &str =
    "nothing: a job works on the device of the target; offset and size choose an area of it";
const NO_CONTENT: &str = "nothing: a simulated device keeps no content";
const NO_VERIFY: &str = "nothing: fio trims so many of the blocks that it verifies; rw=trim, randtrim, trimwrite, randtrimwrite trim";
const NO_LOGS: &str = "nothing: the run directory holds the results, and --request-log each request";
const NO_TRACE: &str = "nothing: planewise run --trace replays traces, and --record writes them";
const NO_MACHINE: &str = "nothing: no process runs, and no memory or processor takes part";
const NO_POLICY: &str = "nothing: not modelled";

/// Percentiles of all results.
const PERCENTILES: [f64; 5] = [50.0, 95.0, 99.0, 99.9, 99.99];

/// Makes sure that results have the percentiles that are asked for.
fn percentiles(text: &str) -> Result<(), String> {
    for part in text.split(':') {
        let percentile = part.trim().parse::<f64>().ok();
        if !percentile.is_some_and(|percentile| PERCENTILES.contains(&percentile)) {
            return Err(format!(
                "percentiles that results have, 50:95:99:99.9:99.99 or some of them (another one: from --request-log); found '{}'",
                part.trim()
            ));
        }
    }
    Ok(())
}

/// All of them: what is used first, in the order of help.
pub static OPTIONS: &[OptionEntry] = &[
    used(
        "rw",
        &["readwrite"],
        "PATTERN",
        "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite; randread:N for N requests one \
         behind the other after each jump, read:SIZE to leave SIZE out after each request [default: read]",
        |s, text| s.set_pattern(text),
    ),
    used(
        "bs",
        &["blocksize"],
        "SIZE",
        "size of a request: 4k, or READ,WRITE,TRIM [default: 4k]",
        |s, text| {
            s.bs = Some(each(text, |size| block(size).map(Sizes::Fixed))?);
            Ok(())
        },
    ),
    used(
        "bsrange",
        &["blocksize_range"],
        "MIN-MAX",
        "any size between the two that is a multiple of the smaller",
        |s, text| {
            s.bsrange = Some(each(text, range)?);
            Ok(())
        },
    ),
    used(
        "bssplit",
        &[],
        "SIZE/PERCENT:..",
        "sizes with their shares, 4k/60:64k/40; shares left out divide the rest",
        |s, text| {
            s.bssplit = Some(each(text, split)?);
            Ok(())
        },
    ),
    used(
        "blockalign",
        &["ba"],
        "SIZE",
        "random offsets are multiples of this [default: the smallest size]",
        |s, text| {
            s.blockalign = Some(block(text)?);
            Ok(())
        },
    ),
    used("iodepth", &[], "N", "requests in flight of each process [default: 1]", |s, text| {
        s.iodepth = Some(u32::try_from(count(text, 1)?).map_err(|_| "1 to 4294967295".to_owned())?);
        Ok(())
    }),
    used(
        "ioengine",
        &[],
        "NAME",
        "sync, psync, vsync, pvsync: depth 1; libaio, io_uring, posixaio: any [default: by iodepth]",
        |s, text| {
            const ONE: [&str; 5] = ["sync", "psync", "vsync", "pvsync", "pvsync2"];
            const MANY: [&str; 4] = ["libaio", "io_uring", "posixaio", "windowsaio"];
            if !ONE.contains(&text) && !MANY.contains(&text) {
                return Err(unknown(text, &[&ONE[..], &MANY].concat()));
            }
            s.one_at_a_time = Some(ONE.contains(&text));
            Ok(())
        },
    ),
    used("numjobs", &[], "N", "processes that do the same, 1 to 4096 [default: 1]", |s, text| {
        let jobs = count(text, 1)?;
        s.numjobs = Some(u32::try_from(jobs).ok().filter(|n| *n <= 4096).ok_or("1 to 4096")?);
        Ok(())
    }),
    used(
        "size",
        &[],
        "SIZE|PERCENT%",
        "its area, and what it moves unless io_size says otherwise [default: the device from offset on]",
        |s, text| {
            s.size = Some(amount(text)?);
            Ok(())
        },
    ),
    used(
        "io_size",
        &["io_limit"],
        "SIZE",
        "bytes that each process moves in all [default: size]",
        |s, text| {
            s.io_size = Some(amount(text)?);
            Ok(())
        },
    ),
    used("number_ios", &[], "N", "requests that each process issues at most", |s, text| {
        s.number_ios = Some(count(text, 1)?);
        Ok(())
    }),
    used("loops", &[], "N", "how often the whole is done [default: 1]", |s, text| {
        s.loops = Some(count(text, 1)?);
        Ok(())
    }),
    used("offset", &[], "SIZE|PERCENT%", "where its area begins [default: 0]", |s, text| {
        s.offset = Some(amount(text)?);
        Ok(())
    }),
    used(
        "offset_increment",
        &[],
        "SIZE|PERCENT%",
        "how much further each of its numjobs processes begins [default: 0]",
        |s, text| {
            s.offset_increment = Some(amount(text)?);
            Ok(())
        },
    ),
    used(
        "runtime",
        &["timeout"],
        "TIME",
        "ends the job after this time of the model: 10 (seconds), 500ms",
        |s, text| {
            s.runtime = Some(time(text)?);
            Ok(())
        },
    ),
    used("time_based", &[], "0|1", "goes on until runtime, over the area again and again", |s, text| {
        s.time_based = Some(switch(text)?);
        Ok(())
    }),
    used(
        "ramp_time",
        &[],
        "TIME",
        "time at the beginning that is not measured; the longest of all jobs counts",
        |s, text| {
            s.ramp_time = Some(time(text)?);
            Ok(())
        },
    ),
    used("startdelay", &["start_delay"], "TIME", "waits before it starts", |s, text| {
        s.startdelay = Some(time(text)?);
        Ok(())
    }),
    used("stonewall", &["wait_for_previous"], "0|1", "starts when all jobs before it are done", |s, text| {
        s.stonewall = Some(switch(text)?);
        Ok(())
    }),
    used("rwmixread", &[], "PERCENT", "share of reads of a mixed pattern [default: 50]", |s, text| {
        s.rwmixread = Some(percent(text)?);
        Ok(())
    }),
    used("rwmixwrite", &[], "PERCENT", "share of writes of a mixed pattern", |s, text| {
        s.rwmixwrite = Some(percent(text)?);
        Ok(())
    }),
    used(
        "percentage_random",
        &[],
        "PERCENT",
        "share of random offsets of a random pattern; the others follow the last request [default: 100]",
        |s, text| {
            s.percentage_random = Some(each(text, percent)?);
            Ok(())
        },
    ),
    used("random_distribution", &[], "NAME", "random, zipf:THETA, pareto:H [default: random]", |s, text| {
        s.distribution = Some(Distribution::parse(text)?);
        Ok(())
    }),
    used("norandommap", &[], "0|1", "random offsets may repeat before each was used once", |s, text| {
        s.norandommap = Some(switch(text)?);
        Ok(())
    }),
    used(
        "stride",
        &[],
        "SIZE",
        "from the start of a sequential request to that of the next (not of fio: the strided pattern of the Intel Open Storage Toolkit)",
        |s, text| {
            s.stride = Some(block(text)?);
            Ok(())
        },
    ),
    used(
        "thinktime",
        &[],
        "TIME",
        "pause after thinktime_blocks requests have completed; a bare number is microseconds",
        |s, text| {
            s.thinktime = Some(time_us(text)?);
            Ok(())
        },
    ),
    used("thinktime_blocks", &[], "N", "requests between two pauses [default: 1]", |s, text| {
        s.thinktime_blocks = Some(count(text, 1)?);
        Ok(())
    }),
    used(
        "rate",
        &[],
        "SIZE",
        "most bytes a second of each process and direction, or READ,WRITE,TRIM",
        |s, text| {
            s.rate = Some(each(text, |size| bytes(size).and_then(not_zero))?);
            Ok(())
        },
    ),
    used(
        "rate_iops",
        &[],
        "N",
        "most requests a second of each process and direction, or READ,WRITE,TRIM",
        |s, text| {
            s.rate_iops = Some(each(text, |number| count(number, 1))?);
            Ok(())
        },
    ),
    used(
        "direct",
        &[],
        "0|1",
        "0: writes are write-back, which nobody waits for; the page cache itself is not modelled [default: 1]",
        |s, text| {
            s.direct = Some(switch(text)?);
            Ok(())
        },
    ),
    used("buffered", &[], "0|1", "the opposite of direct", |s, text| {
        s.buffered = Some(switch(text)?);
        Ok(())
    }),
    used(
        "sync",
        &[],
        "none|0|sync|1|dsync",
        "writes that are kept once acknowledged: dsync as O_DSYNC (forced unit access), sync as O_SYNC, with a file's metadata [default: none]",
        |s, text| {
            s.sync = Some(match text {
                "none" => Durability::Volatile,
                "sync" => Durability::ForceUnitAccessWithMetadata,
                "dsync" => Durability::ForceUnitAccess,
                other => match switch(other) {
                    Ok(true) => Durability::ForceUnitAccessWithMetadata,
                    Ok(false) => Durability::Volatile,
                    Err(_) => return Err(format!("none, 0, sync, 1, dsync; found '{text}'")),
                },
            });
            Ok(())
        },
    ),
    used(
        "fsync",
        &[],
        "N",
        "after every N writes of a process it waits for what it has under way, then for a flush, with a file's metadata; 0: never [default: 0]",
        |s, text| {
            s.fsync = Some(count(text, 0)?);
            Ok(())
        },
    ),
    used("fdatasync", &[], "N", "the same without a file's metadata; 0: never [default: 0]", |s, text| {
        s.fdatasync = Some(count(text, 0)?);
        Ok(())
    }),
    used(
        "end_fsync",
        &[],
        "0|1",
        "each process ends with a flush, if it wrote since the last [default: 0]",
        |s, text| {
            s.end_fsync = Some(switch(text)?);
            Ok(())
        },
    ),
    used(
        "fsync_on_close",
        &[],
        "0|1",
        "as end_fsync: a job closes its file at its end [default: 0]",
        |s, text| {
            s.fsync_on_close = Some(switch(text)?);
            Ok(())
        },
    ),
    used("randseed", &[], "N", "another sequence of random numbers", |s, text| {
        s.randseed = Some(count(text, 0)?);
        Ok(())
    }),
    used(
        "percentile_list",
        &[],
        "P:P:…",
        "percentiles that are wanted, of those that results have: 50, 95, 99, 99.9, 99.99",
        |_, text| percentiles(text),
    ),
    used("name", &[], "NAME", "what results call the job", |s, text| {
        s.name = Some(text.to_owned());
        Ok(())
    }),
    harmless("randrepeat"),
    harmless("allrandrepeat"),
    harmless("group_reporting"),
    harmless("new_group"),
    harmless("thread"),
    harmless("description"),
    harmless("invalidate"),
    harmless("refill_buffers"),
    harmless("scramble_buffers"),
    harmless("zero_buffers"),
    harmless("buffer_compress_percentage"),
    harmless("buffer_pattern"),
    harmless("dedupe_percentage"),
    harmless("fallocate"),
    harmless("overwrite"),
    harmless("gtod_reduce"),
    harmless("gtod_cpu"),
    harmless("clocksource"),
    harmless("disable_lat"),
    harmless("disable_clat"),
    harmless("disable_slat"),
    harmless("disable_bw_measurement"),
    harmless("lat_percentiles"),
    harmless("clat_percentiles"),
    harmless("unified_rw_reporting"),
    harmless("bwavgtime"),
    harmless("iopsavgtime"),
    harmless("norandom_reseed"),
    harmless("random_generator"),
    harmless("softrandommap"),
    harmless("userspace_reap"),
    harmless("hipri"),
    harmless("registerfiles"),
    harmless("fixedbufs"),
    harmless("sqthread_poll"),
    harmless("nonvectored"),
    harmless("create_serialize"),
    harmless("create_on_open"),
    harmless("allow_file_create"),
    harmless("allow_mounted_write"),
    harmless("unlink"),
    harmless("iodepth_batch"),
    harmless("iodepth_batch_submit"),
    harmless("iodepth_batch_complete_max"),
    noted("filename"),
    noted("filesize"),
    noted("directory"),
    noted("filename_format"),
    noted("nrfiles"),
    noted("openfiles"),
    noted("file_service_type"),
    noted("opendir"),
    noted("lockmem"),
    noted("mem"),
    noted("iomem"),
    noted("hugepage_size"),
    noted("cpus_allowed"),
    noted("cpus_allowed_policy"),
    noted("cpumask"),
    noted("nice"),
    noted("numa_cpu_nodes"),
    noted("numa_mem_policy"),
    refused("fill_device", NO_FILES),
    refused("verify", NO_CONTENT),
    refused("do_verify", NO_CONTENT),
    refused("verify_pattern", NO_CONTENT),
    refused("verify_fatal", NO_CONTENT),
    refused("verify_backlog", NO_CONTENT),
    refused("trim_percentage", NO_VERIFY),
    refused("num_range", "nothing: a trim has one range"),
    refused("read_iolog", NO_TRACE),
    refused("write_iolog", NO_TRACE),
    refused("replay_no_stall", NO_TRACE),
    refused("write_bw_log", NO_LOGS),
    refused("write_lat_log", NO_LOGS),
    refused("write_iops_log", NO_LOGS),
    refused("write_hist_log", NO_LOGS),
    refused("log_avg_msec", NO_LOGS),
    refused("cpuload", NO_MACHINE),
    refused("uid", NO_MACHINE),
    refused("gid", NO_MACHINE),
    refused("exec_prerun", NO_MACHINE),
    refused("exec_postrun", NO_MACHINE),
    refused("prio", NO_POLICY),
    refused("prioclass", NO_POLICY),
    refused("ioscheduler", "nothing: --schedulers chooses the host scheduler"),
    refused("sync_file_range", "nothing: the model has no page cache"),
    refused("zonemode", NO_POLICY),
    refused("zonesize", NO_POLICY),
    refused("zoneskip", NO_POLICY),
    refused("zonerange", NO_POLICY),
    refused("rw_sequencer", NO_POLICY),
    refused("flow", NO_POLICY),
    refused("latency_target", NO_POLICY),
    refused("rate_min", NO_POLICY),
    refused("rate_iops_min", NO_POLICY),
    refused("rate_process", NO_POLICY),
    refused("thinktime_spin", NO_MACHINE),
    refused("thinktime_blocks_type", NO_POLICY),
    refused("iodepth_low", NO_POLICY),
    refused("iodepth_batch_complete", NO_POLICY),
    refused("iodepth_batch_complete_min", NO_POLICY),
    refused("exitall", NO_POLICY),
    refused("bs_unaligned", "nothing: requests are whole sectors of 512 bytes"),
];

/// Looks up an option by one of its names.
///
/// # Errors
/// There is none: the error offers the nearest.
pub fn find(name: &str) -> Result<&'static OptionEntry, UnknownName> {
    // fio takes either in a name.
    let plain = name.replace('-', "_");
    let is_it = |entry: &&OptionEntry| entry.name == plain || entry.aliases.contains(&plain.as_str());
    OPTIONS.iter().find(is_it).ok_or_else(|| {
        let used = OPTIONS.iter().filter(|entry| matches!(entry.support, Support::Used(_)));
        let known: Vec<&str> = used.map(|entry| entry.name).collect();
        let accepted = OPTIONS.iter().filter(|entry| !matches!(entry.support, Support::Refused(_)));
        let nearest = names::nearest(
            &plain,
            accepted.flat_map(|entry| entry.aliases.iter().chain([&entry.name])).copied(),
        );
        UnknownName {
            kind: "job option",
            found: name.to_owned(),
            nearest: nearest.map(str::to_owned),
            known: known.into_iter().map(str::to_owned).collect(),
        }
    })
}

fn not_zero(bytes: u64) -> Result<u64, String> {
    if bytes == 0 { Err("more than 0".to_owned()) } else { Ok(bytes) }
}

/// A size that a request can have.
fn block(text: &str) -> Result<u32, String> {
    let size = bytes(text)?;
    let fits = size > 0 && size % 512 == 0 && size <= 1 << 30;
    if fits { Ok(size as u32) } else { Err(format!("a multiple of 512 bytes, 512 to 1g; found '{text}'")) }
}

/// One value for all kinds, or `READ,WRITE`, or `READ,WRITE,TRIM`. Trims have that of writes where none is given.
fn each<T: Clone>(text: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<[T; 3], String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let (read, write, trim) = match parts.as_slice() {
        [all] => (*all, *all, *all),
        [read, write] => (*read, *write, ""),
        [read, write, trim] => (*read, *write, *trim),
        _ => return Err(format!("one value, READ,WRITE or READ,WRITE,TRIM; found '{text}'")),
    };
    // A value left out is that of the other.
    let (read, write) = match (read, write) {
        ("", write) => (write, write),
        (read, "") => (read, read),
        both => both,
    };
    let trim = if trim.is_empty() { write } else { trim };
    Ok([parse(read)?, parse(write)?, parse(trim)?])
}

fn range(text: &str) -> Result<Sizes, String> {
    let (low, high) =
        text.split_once(['-', ':']).ok_or_else(|| format!("MIN-MAX such as 4k-64k; found '{text}'"))?;
    let (low, high) = (block(low)?, block(high)?);
    if low > high || high % low != 0 {
        return Err(format!("a larger size that is a multiple of the smaller one; found '{text}'"));
    }
    Ok(Sizes::Range(low, high))
}

fn split(text: &str) -> Result<Sizes, String> {
    let mut parts: Vec<(u32, Option<f64>)> = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() { None } else { Some(percent(share)?) };
        parts.push((block(size)?, share));
    }
    let given: f64 = parts.iter().filter_map(|(_, share)| *share).sum();
    let open = parts.iter().filter(|(_, share)| share.is_none()).count();
    if given > 100.0 || (open == 0 && given != 100.0) {
        return Err(format!("shares that add up to 100 per cent; found {given} in '{text}'"));
    }
    let rest = (100.0 - given) / open.max(1) as f64;
    let mut below = 0.0;
    let cumulative = parts.iter().map(|&(size, share)| {
        below += share.unwrap_or(rest);
        Split { size, below }
    });
    Ok(Sizes::Split(cumulative.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut all: Vec<&str> =
            OPTIONS.iter().flat_map(|entry| entry.aliases.iter().chain([&entry.name])).copied().collect();
        all.sort_unstable();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn splits_share_what_is_left_and_must_add_up() {
        let Ok(Sizes::Split(parts)) = split("4k/50:8k/:16k/") else { panic!() };
        let parts: Vec<_> = parts.iter().map(|part| (part.size, part.below)).collect();
        assert_eq!(parts, [(4096, 50.0), (8192, 75.0), (16384, 100.0)]);
        for wrong in ["4k/50:8k/40", "4k/60:8k/60", "4k/x", "", "5/100"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
