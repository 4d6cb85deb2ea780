//! The command line that makes the same results again.

use planewise_sim::results::Results;

/// `planewise compare …` (or `run` for one run) with every option of the setup, quoted for a POSIX shell.
///
/// An option `true` is a flag; `false` or an empty value means that it was not given.
pub(super) fn command(results: &Results) -> String {
    let verb = match results.runs.len() {
        _ if results.setup.options.contains_key("syscall-ns") => "linux",
        _ if results.setup.options.contains_key("lateness-bound") => "replay",
        _ if results.setup.options.contains_key("target") => "bench",
        1 => "run",
        _ => "compare",
    };
    let mut command = format!("planewise {verb}");
    // What this command takes without a name.
    let unnamed: &[&str] = if verb == "replay" { &["trace", "target"] } else { &[] };
    for value in unnamed.iter().filter_map(|key| results.setup.options.get(*key)) {
        command += &format!(" {}", quoted(value));
    }
    // The words that a guest runs come last, as they were quoted.
    let words = results.setup.options.get(GUEST_COMMAND).filter(|words| !words.is_empty());
    let is_named = |key: &str| !unnamed.contains(&key) && key != GUEST_COMMAND;
    for (key, value) in results.setup.options.iter().filter(|(key, _)| is_named(key)) {
        let option = quoted(&format!("--{}", key.trim_start_matches('-')));
        match value.as_str() {
            "" | "false" => {}
            "true" => command += &format!(" \\\n  {option}"),
            value => command += &format!(" \\\n  {option} {}", quoted(value)),
        }
    }
    words.map_or(command.clone(), |words| format!("{command} \\\n  -- {words}"))
}

/// The option that holds the words that a guest runs, quoted for a POSIX shell.
pub const GUEST_COMMAND: &str = "command";

/// The word as a POSIX shell must see it.
pub fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn flags_stand_alone_and_what_was_not_given_is_left_out() {
        let mut results = samples::six_schedulers();
        results.setup.options.insert("force".to_owned(), "true".to_owned());
        let command = command(&results);
        assert!(command.starts_with("planewise compare \\\n  --baseline rws"), "{command}");
        assert!(command.contains("--force \\\n") && !command.contains("--check"), "{command}");
        results.runs.truncate(1);
        assert!(super::command(&results).starts_with("planewise run "));
    }

    #[test]
    fn no_value_breaks_out_of_its_word() {
        assert_eq!(quoted("a b; rm -rf '/'"), r"'a b; rm -rf '\''/'\'''");
        assert_eq!(quoted("$(x)"), "'$(x)'");
        assert_eq!(quoted("fin1.csv"), "fin1.csv");
    }
}
