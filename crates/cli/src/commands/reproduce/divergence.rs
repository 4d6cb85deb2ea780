//! In what the model differs from real devices, as its documentation says.

/// The documentation of the device model.
const DEVICE_MODEL: &str = include_str!("../../../../../docs/device-model.md");

/// Heading of its list.
const HEADING: &str = "## Divergence from real SSDs";

/// Title and text of each entry of the list.
pub fn list() -> Vec<(String, String)> {
    let section = DEVICE_MODEL.split_once(HEADING).map_or("", |(_, rest)| rest);
    let section = section.split("\n## ").next().unwrap_or(section);
    let mut entries: Vec<String> = Vec::new();
    for line in section.lines() {
        if let Some(first) = line.strip_prefix("* ") {
            entries.push(first.to_owned());
        } else if let (true, Some(entry)) = (line.starts_with("  "), entries.last_mut()) {
            *entry += " ";
            *entry += line.trim();
        }
    }
    let split = |entry: String| match entry.strip_prefix("**").and_then(|rest| rest.split_once("**")) {
        Some((title, text)) => (
            title.trim_end_matches(['.', ':']).to_owned(),
            text.trim_start_matches([':', '.', ' ']).to_owned(),
        ),
        None => (String::new(), entry),
    };
    entries.into_iter().map(split).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_entry_of_the_documentation_has_a_title_and_a_text() {
        let list = super::list();
        assert!(list.len() > 5, "{list:?}");
        assert!(list.iter().all(|(title, text)| !title.is_empty() && text.len() > 20), "{list:?}");
    }
}
