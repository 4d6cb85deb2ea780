//! Looking up names as a person types them: exact match or an error that offers the nearest.

/// A name that is not in the table it was looked up in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{found}'{}; known: {}", suggestion(.nearest), .known.join(", "))]
pub struct UnknownName {
    /// What was looked up: "scheduler", "device profile", "trace format", …
    pub kind: &'static str,
    /// The name given.
    pub found: String,
    /// The closest known name, when one is close enough to be a plausible slip.
    pub nearest: Option<String>,
    /// All names allowed, in table order.
    pub known: Vec<String>,
}

fn suggestion(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}

/// The candidate most like `found`, if it is like it at all.
pub fn nearest<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = found.to_ascii_lowercase();
    candidates
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&lower, &name.to_ascii_lowercase()), name))
        .filter(|(score, _)| *score >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The error for a name that is in none of `known`.
pub fn unknown<'a>(
    kind: &'static str,
    found: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> UnknownName {
    UnknownName {
        kind,
        found: found.to_owned(),
        nearest: nearest(found, known.clone()).map(str::to_owned),
        known: known.into_iter().map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_answered_with_the_name_meant() {
        let error = unknown("scheduler", "nop", ["noop", "rws", "piq"]);
        assert_eq!(
            error.to_string(),
            "unknown scheduler 'nop' (did you mean 'noop'?); known: noop, rws, piq"
        );
        assert_eq!(unknown("scheduler", "zzz", ["noop"]).nearest, None);
    }
}
