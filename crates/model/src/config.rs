//! TOML files as users write them: one line per error, naming file, line, key, what was found and what is allowed.

use crate::names;
use serde::de::DeserializeOwned;

/// What is wrong with a configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}{}: {message}", .line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct ConfigError {
    /// The file, or the name of an embedded profile.
    pub origin: String,
    /// Line of the key at fault, from 1, when it is known.
    pub line: Option<usize>,
    /// Key, what was found, what is allowed.
    pub message: String,
}

impl ConfigError {
    /// An error about one key, or `table.key` where several tables have keys of that name; finds the line where the text sets it.
    pub fn at_key(origin: &str, text: &str, key: &str, problem: &str) -> ConfigError {
        let (table, name) = key.split_once('.').unwrap_or(("", key));
        let header = format!("[{table}]");
        let first = if table.is_empty() { Some(0) } else { text.lines().position(|l| l.trim() == header) };
        let sets = |line: &str| line.split('=').next().is_some_and(|left| left.trim() == name);
        let line = first.and_then(|first| Some(first + text.lines().skip(first).position(sets)?));
        ConfigError {
            origin: origin.to_owned(),
            line: line.map(|n| n + 1),
            message: format!("key '{key}': {problem}"),
        }
    }
}

/// Reads a TOML document. Unknown keys are errors for types that deny them, and the nearest allowed key is offered.
///
/// # Errors
/// Syntax errors, unknown or missing keys, values of the wrong type; always a single line.
pub fn parse_toml<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start.min(text.len())].lines().count().max(1));
        let line = match error.span() {
            Some(span) if text[..span.start.min(text.len())].ends_with('\n') => line.map(|n| n + 1),
            _ => line,
        };
        let setting = line.and_then(|line| setting(text.lines().nth(line - 1)?));
        ConfigError { origin: origin.to_owned(), line, message: explain(error.message(), setting) }
    })
}

/// The key that a line sets, and the value as written.
fn setting(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once('=')?;
    let key = key.trim();
    let is_name = key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    is_name.then_some((key, value.trim()))
}

/// What serde calls the type of a value, in words.
fn in_words(expected: &str) -> &str {
    match expected {
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "text in quotes",
        other => other,
    }
}

/// Turns serde's "unknown field `x`, expected one of `a`, `b`" into a line that offers the nearest key, and its
/// "invalid type: string "8", expected u32" into one that names the key and what is allowed.
fn explain(message: &str, setting: Option<(&str, &str)>) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let (Some((key, value)), Some((found, expected))) = (setting, message.split_once("expected ")) {
        // What serde has no word for it leaves out, and the value itself is told.
        let found = match found.strip_prefix("invalid type: ").or(found.strip_prefix("invalid value: ")) {
            Some(found) => Some(found.trim_end_matches([',', ' '])),
            None => found.is_empty().then_some(value),
        };
        if let Some(found) = found {
            return format!("key '{key}': found {found}; allowed: {}", in_words(expected));
        }
    }
    let is_unknown = message.starts_with("unknown field") || message.starts_with("unknown variant");
    if !is_unknown {
        return message;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let Some(found) = quoted.next() else { return message };
    let known: Vec<&str> = quoted.collect();
    let what = if message.starts_with("unknown field") { "key" } else { "value" };
    let nearest = names::nearest(found, known.iter().copied())
        .map(|name| format!(" (did you mean '{name}'?)"))
        .unwrap_or_default();
    format!("unknown {what} '{found}'{nearest}; allowed: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Example {
        channels: u32,
        chips: u32,
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_allowed_key() {
        let error = parse_toml::<Example>("channels = 1\nchipz = 2\n", "a.toml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "a.toml:2: unknown key 'chipz' (did you mean 'chips'?); allowed: channels, chips"
        );
    }

    #[test]
    fn a_value_of_the_wrong_type_is_told_with_its_key_and_what_is_allowed() {
        let cases = [
            (
                "channels = \"8\"\nchips = 2\n",
                "a.toml:1: key 'channels': found string \"8\"; allowed: a whole number from 0 to 4294967295",
            ),
            (
                "channels = 1\nchips = -2\n",
                "a.toml:2: key 'chips': found integer `-2`; allowed: a whole number from 0 to 4294967295",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_toml::<Example>(text, "a.toml").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_missing_key_and_a_wrong_type_are_single_lines() {
        for text in
            ["channels = 1\n", "channels = 'x'\nchips = 2\n", "channels = = 1", "channels = 1\nchannels = 2"]
        {
            let error = parse_toml::<Example>(text, "a.toml").unwrap_err().to_string();
            assert!(error.starts_with("a.toml") && !error.contains('\n'), "{error}");
        }
    }
}
