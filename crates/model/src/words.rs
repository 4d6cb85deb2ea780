//! Words of messages that depend on a number.

/// A number of things: `1 stream`, `2 streams`. For nouns whose plural ends in an s.
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {}", of(count, noun))
}

/// A noun as a number of such things has it: `stream` of 1, `streams` of any other.
pub fn of(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_all_others_are_plural() {
        let texts = [0, 1, 2, 21].map(|count| counted(count, "run"));
        assert_eq!(texts, ["0 runs", "1 run", "2 runs", "21 runs"]);
    }
}
