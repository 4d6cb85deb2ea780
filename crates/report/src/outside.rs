//! Runs that were measured from outside: what of their metrics is a measurement, and what else is to be said of them.

use crate::format;
use crate::names;
use crate::single;
use crate::table::{self, Style, Tone, paint};
use planewise_sim::results::{Replay, Results, RunResult};

/// Whether only an outside view was had of any run: of what happened inside a device nothing is shown then.
pub fn is_outside(results: &Results) -> bool {
    results.runs.iter().any(|run| run.target.is_some())
}

/// Whether the units are known by which requests conflict.
pub fn knows_conflicts(run: &RunResult) -> bool {
    run.target.as_ref().is_none_or(|target| target.units.is_some())
}

/// Why a replay was late too often, in words; none when it was not, and for other runs.
pub fn unfaithful(run: &RunResult) -> Option<String> {
    let replay = run.replay.as_ref().filter(|replay| replay.faithful == Some(false))?;
    Some(format!(
        "not faithful: p99 of lateness {} is above {}, {}",
        format::time(replay.lateness_ns.p99 as f64),
        format::time(replay.lateness_bound_ns as f64),
        cause(run, replay)
    ))
}

fn cause(run: &RunResult, replay: &Replay) -> &'static str {
    // As many as make a 99th percentile.
    if replay.late_for_room * 100 > run.metrics.requests.submitted {
        "because the target is slower than the trace and the host's queue was full"
    } else {
        "because the host did not keep up"
    }
}

/// What the target was, in a line.
pub(crate) fn target(run: &RunResult) -> Option<String> {
    let target = run.target.as_ref()?;
    let units = match target.units {
        None => String::new(),
        Some(units) => {
            format!("  {} units of {}-byte pages told", format::count(units.into()), target.page_bytes)
        }
    };
    Some(format!(
        "{}, {}  up to {} operations{units}",
        format::one_line(&target.kind, 20),
        format::one_line(&target.engine, 16),
        format::count(target.depth.into())
    ))
}

/// Lateness, in a line.
pub(crate) fn lateness(run: &RunResult, replay: &Replay) -> String {
    let time = |ns: u64| format::time(ns as f64);
    let of = &replay.lateness_ns;
    let faithful = match replay.faithful {
        Some(true) => "faithful",
        Some(false) => "not faithful",
        None if run.labels.pace.starts_with("closed") || run.labels.pace == "asap" => {
            return format!("nothing is due at the pace {}", format::one_line(&run.labels.pace, 20));
        }
        None => return "no request was measured".to_owned(),
    };
    format!("p50 {}  p99 {}  max {}  {faithful}", time(of.p50), time(of.p99), time(of.max))
}

/// What was done to requests, and what became of them, each where there was any.
pub(crate) fn changes(run: &RunResult) -> Vec<String> {
    let split = run.target.as_ref().map_or(0, |target| target.split_requests);
    let mut said = vec![(split, "longer than the target takes at once")];
    if let Some(replay) = &run.replay {
        said.extend([
            (replay.late_for_room, "late because the queue was full"),
            (replay.writes_left_out, "writes left out"),
            (replay.flushes_left_out, "flushes left out"),
            (replay.writes_unforced, "writes without their forced unit access"),
            (replay.discards_left_out, "discards left out"),
            (replay.widened, "widened to whole blocks"),
            (replay.narrowed, "narrowed to whole blocks"),
            (replay.folded, "folded onto the target"),
            (replay.cut_at_end, "cut off at its end"),
        ]);
    }
    said.retain(|(count, _)| *count > 0);
    said.into_iter().map(|(count, what)| format!("{} {what}", format::count(count))).collect()
}

/// The end of a replay on a target, as text: one run in full, or a row per run with the lateness of each.
pub fn replay(results: &Results, style: Style) -> String {
    if results.runs.len() < 2 {
        return single::single(results, style);
    }
    let mut out = table::comparison(results, style);
    out += &format!("\n{}\n", paint("lateness", Tone::Strong, style));
    for (run, name) in results.runs.iter().zip(names::run_names(results)) {
        let Some(replay) = &run.replay else { continue };
        let tone = if replay.faithful == Some(false) { Tone::Worse } else { Tone::Plain };
        let line = format!("  {:<16} {}", format::one_line(&name, 32), lateness(run, replay));
        out += &(paint(&line, tone, style) + "\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use crate::{html, json};

    #[test]
    fn a_replay_shows_its_lateness_and_nothing_of_what_an_outside_view_cannot_know() {
        let mut results = samples::replayed();
        for text in [replay(&results, Style::default()), html(&results)] {
            for word in ["lateness", "not faithful", "the host did not keep up"] {
                assert!(text.contains(word), "no {word}: {text}");
            }
            for word in ["write amplification", "How busy the device was", "Flash operations", "Chips busy"] {
                assert!(!text.contains(word), "{word}: {text}");
            }
        }
        assert!(json(&results).contains("\"faithful\": false"), "{}", json(&results));
        results.runs.truncate(1);
        let text = replay(&results, Style { width: Some(80), ..Style::default() });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for word in ["block device, io_uring", "p50 3.10 µs", "faithful", "7 longer than", "12 folded"] {
            assert!(text.contains(word), "no {word}: {text}");
        }
        for word in ["busy", "for a die", "conflicts", "flash", "collections"] {
            assert!(!text.contains(word), "{word}: {text}");
        }
        let page = html(&results);
        assert!(!page.contains("conflicted on arrival") && !page.contains("simulated /dev"), "{page}");
    }

    #[test]
    fn why_a_target_ended_a_run_is_said() {
        let mut results = samples::replayed();
        results.runs.truncate(1);
        results.runs[0].target.as_mut().unwrap().failure = Some("/dev/x: a read failed".to_owned());
        results.runs[0].status = planewise_sim::results::Status::Interrupted;
        for text in [replay(&results, Style::default()), html(&results)] {
            assert!(text.contains("a read failed"), "{text}");
        }
    }
}
