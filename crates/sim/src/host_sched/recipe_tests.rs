//! The recipe of CONTRIBUTING.md: its example is the file beside this one, and that is a scheduler.

use super::{SCHEDULERS, find};
use crate::config::RunConfig;
use crate::engine::Simulator;
use crate::host::Merging;
use crate::observers::invariants::Invariants;
use planewise_model::profile::Profile;
use planewise_model::{Direction, Lsn, Ns, Request};

const RECIPE: &str = include_str!("../../../../CONTRIBUTING.md");

/// What stands between the first ```` ```rust ```` and its end, without the indentation of the list that it is in.
fn code_block(markdown: &str) -> String {
    let lines = markdown.lines().skip_while(|line| line.trim_start() != "```rust").skip(1);
    let block = lines.take_while(|line| line.trim_start() != "```");
    block.map(|line| line.strip_prefix("   ").unwrap_or(line).to_owned() + "\n").collect()
}

#[test]
fn the_code_in_contributing_is_the_file_that_is_compiled_here() {
    assert_eq!(code_block(RECIPE), include_str!("lifo.rs"));
}

#[test]
fn contributing_names_files_and_helpers_that_exist() {
    let words = RECIPE.split('`').skip(1).step_by(2);
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let mut files = 0;
    for word in words.filter(|word| word.ends_with(".rs") || word.ends_with(".md")) {
        // What the reader is about to write.
        if ["docs/schedulers/lifo.md"].contains(&word) {
            continue;
        }
        let places = ["", "crates/sim/src/host_sched/"].map(|folder| format!("{root}{folder}{word}"));
        assert!(places.iter().any(|place| std::path::Path::new(place).exists()), "{word}");
        files += 1;
    }
    assert!(files > 5, "{files}");
}

/// Requests of one page of the same unit, all at once.
fn issue_order(scheduler: &str, merging: Merging, pages: &[u64]) -> Vec<u64> {
    let profile = Profile::embedded("piq-128g").expect("a profile of the table");
    let config = RunConfig { scheduler: scheduler.into(), merging, ..RunConfig::new(profile) };
    let mut simulator = Simulator::new(&config, Invariants::new()).unwrap();
    simulator.keep_completions();
    for &page in pages {
        simulator.submit(&Request::new(Ns::ZERO, Lsn(page * 8), 8, Direction::Read)).unwrap();
    }
    simulator.drain().unwrap();
    simulator.observer().report().expect("no invariant is violated");
    let mut completions = Vec::new();
    simulator.take_completions(&mut completions);
    completions.iter().map(|completion| completion.request.start.0 / 8).collect()
}

#[test]
fn the_example_runs_in_the_simulator_and_issues_the_youngest_first() {
    assert!(find("lifo").is_ok() && SCHEDULERS.len() > 15, "it is in the table as the recipe says");
    let same_unit = [0, 64, 128, 192];
    assert_eq!(issue_order("noop", Merging::None, &same_unit), [0, 64, 128, 192]);
    assert_eq!(issue_order("lifo", Merging::None, &same_unit), [192, 128, 64, 0]);
    // The third fills the gap between the first two, which become one: `removed` is called.
    assert_eq!(issue_order("lifo", Merging::Full, &[0, 2, 1, 64]).len(), 4);
}
