//! What is said of runs whose trace asked for more than could be served, and of the pace at which requests left.

use crate::format;
use planewise_sim::results::{Cause, Dependent, Overload, Results, RunResult};

/// Behind the name of an overloaded run.
pub const MARK: &str = "!";

/// What overload means for the numbers beside it.
pub const MEANING: &str = "The trace asks for more than can be served, so these latencies are those of its backlog, \
                           and neither they nor their ratios hold for a longer or shorter trace";

/// Whether a run is overloaded.
pub fn is_overloaded(run: &RunResult) -> bool {
    run.overload.is_some()
}

/// How far a run is overloaded, and at which rate it would not be; none when it is not.
pub fn overloaded(run: &RunResult) -> Option<String> {
    let of = run.overload.as_ref()?;
    let (backlog, wait) = (format::count(of.backlog_requests), format::time(of.backlog_ns as f64));
    let how = match of.cause {
        Cause::Grows => format!(
            "{} times the work that fits in {}; {backlog} requests wait at its end, {wait} each",
            format::three_digits(of.factor),
            window(of)
        ),
        Cause::Stands => format!(
            "requests waited outside the full queue for {} of the trace's time, {backlog} of them at a time",
            format::percent(of.window_share)
        ),
    };
    Some(format!(
        "{how}; stable at --scale-time {} ({} requests/s in the place of {})",
        of.stable_scale_time,
        format::rate(of.stable_iops),
        format::rate(of.offered_iops)
    ))
}

fn window(of: &Overload) -> String {
    if of.window_share > 0.995 {
        return "the trace's time".to_owned();
    }
    format!("the last {} of the trace's time", format::percent(of.window_share))
}

/// What to do about overloaded runs, in a line; none when there are none.
pub fn remedy(results: &Results) -> Option<String> {
    let scales = results.runs.iter().filter_map(|run| Some(run.overload.as_ref()?.stable_scale_time));
    let scale = scales.max_by(f64::total_cmp)?;
    let all = if results.runs.len() > 1 { ", at which every run is stable" } else { "" };
    Some(format!(
        "What to do: --scale-time {scale}{all}; or --pace dependent (if the trace says when requests completed) or --pace closed:N, which \
         never ask for more than is served; or a faster device"
    ))
}

/// What the dependent pace kept and what it changed, in a line.
pub(crate) fn kept(of: &Dependent) -> String {
    let stretch = if of.recorded_ns == 0 { 1.0 } else { of.replayed_ns as f64 / of.recorded_ns as f64 };
    let without = match of.without_completion {
        0 => String::new(),
        count => format!(", {} without a recorded completion", format::count(count)),
    };
    format!(
        "{} under way at an arrival (recorded {}), {} times the recorded time{without}",
        format::three_digits(of.replayed_depth),
        format::three_digits(of.recorded_depth),
        format::three_digits(stretch)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Style;
    use crate::{comparison, html, json, samples, single};

    fn overloaded_first() -> Results {
        let mut results = samples::six_schedulers();
        results.runs[0].overload = Some(Overload {
            cause: Cause::Grows,
            window_share: 1.0,
            factor: 1.37,
            backlog_ns: 250_000_000,
            backlog_requests: 4300,
            offered_iops: 17_000.0,
            stable_iops: 11_333.3,
            stable_scale_time: 1.5,
        });
        results
    }

    #[test]
    fn an_overloaded_run_is_marked_wherever_its_numbers_stand_and_others_are_not() {
        let results = overloaded_first();
        for width in [None, Some(60), Some(100)] {
            let text = comparison(&results, Style { width, ..Style::default() });
            let words: Vec<&str> = text.split_whitespace().collect();
            assert!(words.contains(&"noop!") || text.contains("noop !"), "{text}");
            assert!(!words.contains(&"piq!") && !text.contains("piq !"), "{text}");
            let flat = words.join(" ");
            for said in ["1.37 times the work", "--scale-time 1.5", "--pace dependent", "4,300 requests wait"]
            {
                assert!(flat.contains(said), "no {said}: {text}");
            }
            assert!(
                width.is_none_or(|width| text.lines().all(|line| line.chars().count() <= width)),
                "{text}"
            );
        }
        let page = html(&results);
        for said in ["1.37 times the work", "--scale-time 1.5", "class=\"overloaded\""] {
            assert!(page.contains(said), "no {said}");
        }
        assert!(json(&results).contains("\"stable_scale_time\": 1.5"));
        let mut one = results;
        one.runs.truncate(1);
        let text = single(&one, Style::default());
        assert!(text.contains("1.37 times the work") && text.contains("--scale-time 1.5"), "{text}");
    }

    #[test]
    fn without_overload_nothing_is_said_of_it() {
        let results = samples::six_schedulers();
        // The page's style has a class of that name.
        let page = html(&results).split("</style>").last().unwrap_or_default().to_owned();
        for text in [comparison(&results, Style::default()), page, json(&results)] {
            assert!(!text.contains("overload"), "{text}");
        }
    }
}
