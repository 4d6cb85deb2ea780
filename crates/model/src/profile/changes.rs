//! Changes of single keys of a profile, written behind its name: `gc-128g:geometry.channels=8,write_buffer=none`.
//!
//! What may be changed, and what is optional, is read off the schema of profiles, so that a key of a section is known here as soon
//! as it exists. A changed profile carries its changes in its name, unless the name itself is changed: results that differ by a
//! change can be told apart.

use super::{Problem, Profile};
use crate::config::{self, ConfigError};
use crate::names;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The word that takes an optional section away.
const NONE: &str = "none";

/// Where a name with changes is cut: what is in front, and what is behind the colon. None: there are no changes.
///
/// Names and values may hold colons (`ncq:32`, a file's name), so that it is the first colon behind a profile that `exists`, or
/// else the first behind which a key and `=` follow. Where the whole is a profile that exists, nothing is cut.
pub fn split(name: &str, exists: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    if exists(name) {
        return None;
    }
    let cuts = || name.match_indices(':').map(|(at, _)| (&name[..at], &name[at + 1..]));
    cuts().find(|(profile, _)| exists(profile)).or_else(|| cuts().find(|(_, changes)| sets_a_key(changes)))
}

/// Whether a text begins with a key and `=`.
fn sets_a_key(text: &str) -> bool {
    let is_key = |key: &str| {
        let key = key.trim();
        !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    text.split_once('=').is_some_and(|(key, _)| is_key(key))
}

/// One change of a TOML text.
pub struct Change<'a> {
    /// The key, behind its section where it is in one.
    pub key: &'a str,
    /// The value as written.
    pub value: &'a str,
}

impl Profile {
    /// The profile with changes: `SECTION.KEY=VALUE`, separated by commas. Values are TOML, and text may do without quotes; `SECTION=none`
    /// takes an optional section away, `SECTION={KEY=VALUE,..}` puts one in. `origin` is what errors call the profile.
    ///
    /// # Errors
    /// A key that is unknown, changed twice or in a section that the profile does not have; a value of the wrong type, or that makes
    /// the profile one that cannot be.
    pub fn changed(&self, changes: &str, origin: &str) -> Result<Profile, ConfigError> {
        let wrong = |message: String| ConfigError { origin: origin.to_owned(), line: None, message };
        let changes = parse(changes).map_err(wrong)?;
        let schema = Schema::of_profiles();
        let mut profile = self.clone();
        for (index, change) in changes.iter().enumerate() {
            schema.check_key(change.key).map_err(wrong)?;
            check_once(&changes[..index], change).map_err(wrong)?;
            profile = apply(&profile, change, &schema).map_err(wrong)?;
        }
        profile.check().map_err(|problem| wrong(unusable(&changes, problem)))?;
        if !changes.iter().any(|change| change.key == "name") {
            let said: Vec<String> =
                changes.iter().map(|change| format!("{}={}", change.key, change.value)).collect();
            profile.name = format!("{}:{}", self.name, said.join(","));
        }
        Ok(profile)
    }
}

/// The changes of a text, `SECTION.KEY=VALUE` separated by commas, in their order.
///
/// # Errors
/// A part that is none.
pub fn parse(text: &str) -> Result<Vec<Change<'_>>, String> {
    parts(text)
        .into_iter()
        .map(|part| {
            let both = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            match both {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok(Change { key, value }),
                _ => Err(format!("found '{part}'; allowed: SECTION.KEY=VALUE, several separated by commas")),
            }
        })
        .collect()
}

/// Cuts at commas that are neither in quotes nor in brackets.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_u32, None);
    for (at, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'[' | b'{') => depth += 1,
            (None, b']' | b'}') => depth = depth.saturating_sub(1),
            (None, b',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Refuses a second change of a key, or of a section and a key in it.
///
/// # Errors
/// The second change, with the one before.
pub fn check_once(before: &[Change<'_>], change: &Change<'_>) -> Result<(), String> {
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let Change { key, value } = change;
    let clashing = before.iter().find(|other| holds(other.key, key) || holds(key, other.key));
    clashing.map_or(Ok(()), |other| {
        Err(format!("found {key}={value} after {}={}; allowed: each key once", other.key, other.value))
    })
}

/// Makes one change; other keys are as they were.
fn apply(profile: &Profile, change: &Change<'_>, schema: &Schema) -> Result<Profile, String> {
    let Change { key, value } = *change;
    let mut table = Table::try_from(profile).expect("a profile is plain data");
    match key.split_once('.') {
        None if value == NONE && schema.sections.contains_key(key) => {
            if !schema.is_optional(key) {
                return Err(format!(
                    "{key}={NONE}: every profile has this section; allowed: {NONE} for {}",
                    schema.optional.join(", ")
                ));
            }
            table.remove(key);
        }
        None => {
            table.insert(key.to_owned(), self::value(value));
        }
        Some((section, name)) => {
            let Some(Value::Table(section_table)) = table.get_mut(section) else {
                let keys = schema.sections[section].iter().map(|key| format!("{key}=.."));
                let keys = keys.collect::<Vec<_>>().join(",");
                return Err(format!(
                    "{key}={value}: '{}' has no section '{section}' to change; allowed: {section}={{{keys}}} to put one in",
                    profile.name
                ));
            };
            section_table.insert(name.to_owned(), self::value(value));
        }
    }
    let text = toml::to_string(&table).expect("a table of plain values is TOML");
    config::parse_toml(&text, "").map_err(|error| in_full(key, &error.message))
}

/// A value as TOML; what is none is text without quotes.
pub fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    let alone = parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
    alone.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The message of a value's error, with the section that its key is in.
fn in_full(key: &str, message: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    match message.strip_prefix(&format!("key '{name}': ")) {
        Some(problem) => format!("key '{key}': {problem}"),
        None => format!("key '{key}': {message}"),
    }
}

/// What is wrong with the whole, which may be a key that was not changed: the geometry leaves less room than the buffers take.
fn unusable(changes: &[Change<'_>], (key, problem): Problem) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    let is_changed = changes.iter().any(|change| {
        change.key.rsplit('.').next() == Some(name) || change.value.contains(name) || change.key == key
    });
    let whose = if is_changed { "" } else { " (as the profile has it)" };
    format!("key '{key}'{whose}: {problem}")
}

/// Sections and keys of profiles.
struct Schema {
    /// Keys of the top level that are no section.
    top: Vec<String>,
    /// Keys of each section.
    sections: BTreeMap<String, Vec<String>>,
    /// Sections that a profile may do without.
    optional: Vec<String>,
}

impl Schema {
    fn of_profiles() -> Schema {
        let schema = Profile::json_schema().to_value();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(|key| key.as_str()).collect();
        let mut found = Schema { top: Vec::new(), sections: BTreeMap::new(), optional: Vec::new() };
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let reference = property["$ref"].as_str().or_else(|| property["anyOf"][0]["$ref"].as_str());
            let Some(definition) = reference.and_then(|path| path.strip_prefix("#/$defs/")) else {
                found.top.push(key.clone());
                continue;
            };
            let keys = schema["$defs"][definition]["properties"].as_object();
            let keys = keys.into_iter().flatten().map(|(key, _)| key.clone()).collect();
            found.sections.insert(key.clone(), keys);
            if !required.contains(&key.as_str()) {
                found.optional.push(key.clone());
            }
        }
        found
    }

    fn is_optional(&self, section: &str) -> bool {
        self.optional.iter().any(|optional| optional == section)
    }

    /// Refuses a key that no profile has.
    fn check_key(&self, key: &str) -> Result<(), String> {
        let (section, name) =
            key.split_once('.').map_or((key, None), |(section, name)| (section, Some(name)));
        match (self.sections.get(section), name) {
            (Some(_), None) => Ok(()),
            (Some(keys), Some(name)) if keys.iter().any(|known| known == name) => Ok(()),
            (None, None) if self.top.iter().any(|known| known == key) => Ok(()),
            (Some(keys), Some(name)) => {
                Err(self.unknown(key, name, keys.iter().map(String::as_str), section))
            }
            (None, _) => {
                let sections = self.sections.keys().map(String::as_str);
                Err(self.unknown(key, section, sections.chain(self.top.iter().map(String::as_str)), ""))
            }
        }
    }

    /// The error for a key; a key of that very name in another section is meant before one that only looks like it.
    fn unknown<'a>(
        &self,
        key: &str,
        found: &str,
        known: impl Iterator<Item = &'a str> + Clone,
        section: &str,
    ) -> String {
        let name = key.rsplit('.').next().unwrap_or(key);
        let elsewhere = self.sections.iter().find(|(_, keys)| keys.iter().any(|known| known == name));
        let nearest = match elsewhere {
            Some((section, _)) => Some(format!("{section}.{name}")),
            None => {
                names::nearest(found, known.clone()).map(|nearest| match (section, key.split_once('.')) {
                    ("", Some((_, name))) => format!("{nearest}.{name}"),
                    ("", None) => nearest.to_owned(),
                    (section, _) => format!("{section}.{nearest}"),
                })
            }
        };
        let nearest = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
        let inside = if section.is_empty() { String::new() } else { format!(" in {section}") };
        format!("unknown key '{key}'{nearest}; allowed{inside}: {}", known.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(name: &str, changes: &str) -> Result<Profile, String> {
        let origin = format!("{name}:{changes}");
        Profile::embedded(name).unwrap().changed(changes, &origin).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_of_all_types_are_changed_and_others_stay() {
        let before = Profile::embedded("ssd-s").unwrap();
        let after = changed(
            "ssd-s",
            "geometry.channels=8, translation.over_provisioning=0.25,interface.command_queue=ncq:16,\
             collection.victims='d-choices:4',processor.drains_to_turn=false,timing.read_ns=[25_000,50_000],\
             collection.streams=conflict,advanced_commands.cache_read=true,write_buffer=none,timing.variation=0",
        )
        .unwrap();
        let mut expected = before.clone();
        expected.geometry.channels = 8;
        expected.translation.over_provisioning = 0.25;
        expected.interface.command_queue = "ncq:16".to_owned();
        expected.collection.victims = "d-choices:4".to_owned();
        expected.processor.as_mut().unwrap().drains_to_turn = false;
        expected.timing.read_ns = super::super::PageLatency::PerType(vec![25_000, 50_000]);
        expected.collection.streams = super::super::StreamRule::Conflict;
        expected.advanced_commands.cache_read = true;
        expected.write_buffer = None;
        expected.name.clone_from(&after.name);
        assert_eq!(after, expected);
        assert!(after.name.starts_with("ssd-s:geometry.channels=8,translation.over_provisioning=0.25,"));
        assert_eq!(Profile::parse(&after.to_toml(), "again").unwrap(), after);
    }

    #[test]
    fn a_section_goes_in_whole_and_a_name_of_its_own_is_kept() {
        let linked =
            changed("piq-128g", "link={mb_per_s=250,command_ns=5_000},interface.command_queue=ncq:32");
        assert_eq!(linked.unwrap().link.unwrap().mb_per_s, 250);
        assert_eq!(changed("piq-128g", "name=mine,timing.read_ns=1").unwrap().name, "mine");
        // Policies can be called none: that is a value there, and nothing is taken away.
        assert_eq!(
            changed("piq-128g", "translation.wear_levelling=none").unwrap().translation.wear_levelling,
            "none"
        );
    }

    #[test]
    fn every_key_that_a_profile_has_can_be_set_to_the_value_it_has() {
        for (name, _) in super::super::EMBEDDED {
            let profile = Profile::embedded(name).unwrap();
            for (section, value) in Table::try_from(&profile).unwrap() {
                let Value::Table(keys) = value else { continue };
                for (key, value) in keys {
                    let mut same = profile.changed(&format!("{section}.{key}={value}"), name).unwrap();
                    same.name.clone_from(&profile.name);
                    assert_eq!(same, profile, "{section}.{key}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_changed_so_says_what_can() {
        for (name, changes, words) in [
            (
                "gc-128g",
                "geometry.chanels=8",
                &["unknown key 'geometry.chanels'", "'geometry.channels'", "allowed in geometry"][..],
            ),
            ("gc-128g", "geomtry.channels=8", &["did you mean 'geometry.channels'"]),
            ("gc-128g", "channels=8", &["did you mean 'geometry.channels'"]),
            ("gc-128g", "writebuffer=none", &["did you mean 'write_buffer'"]),
            (
                "gc-128g",
                "write_buffer.pages=8",
                &["no section 'write_buffer'", "write_buffer={", "watermark=.."],
            ),
            ("gc-128g", "geometry=none", &["every profile has this section", "write_buffer"]),
            ("gc-128g", "geometry.channels=eight", &["key 'geometry.channels'", "eight", "a whole number"]),
            ("gc-128g", "geometry.channels=8.5", &["key 'geometry.channels'", "8.5", "a whole number"]),
            ("gc-128g", "geometry.channels=-1", &["key 'geometry.channels'", "-1", "0 to"]),
            ("gc-128g", "advanced_commands.copyback=1", &["advanced_commands.copyback", "true or false"]),
            ("gc-128g", "timing.read_ns=fast", &["key 'timing.read_ns'", "nanoseconds"]),
            ("gc-128g", "collection.streams=some", &["'some'", "conflict, all"]),
            ("gc-128g", "name=5", &["key 'name'", "text"]),
            ("gc-128g", "geometry.channels=8,geometry.channels=4", &["after geometry.channels=8", "once"]),
            ("ssd-s", "write_buffer.pages=8,write_buffer=none", &["after write_buffer.pages=8", "once"]),
            ("ssd-s", "link={mb_per_s=1}", &["key 'link'", "command_ns"]),
            ("gc-128g", "geometry.channels", &["'geometry.channels'", "SECTION.KEY=VALUE"]),
            ("gc-128g", "", &["found ''", "SECTION.KEY=VALUE"]),
            ("gc-128g", "geometry.channels=", &["SECTION.KEY=VALUE"]),
            ("gc-128g", "geometry.channels=8,", &["SECTION.KEY=VALUE"]),
            ("gc-128g", "geometry.channels=0", &["channels", "found 0"]),
            ("gc-128g", "translation.over_provisioning=0.95", &["over_provisioning", "0 to 0.9"]),
            ("gc-128g", "geometry.blocks_per_plane=4", &["(as the profile has it)", "spare blocks"]),
            ("ssd-s", "interface.command_queue=blocking", &["command_queue", "ncq:D"]),
            ("gc-128g", "geometry.channels=8\nx=1", &["geometry.channels", "a whole number"]),
        ] {
            let error = changed(name, changes).unwrap_err();
            for word in words {
                assert!(error.contains(word), "{changes}: no '{word}' in: {error}");
            }
            assert!(error.starts_with(&format!("{name}:{changes}: ")), "{error}");
        }
    }

    #[test]
    fn a_name_is_cut_behind_what_exists_or_before_the_first_key() {
        let exists = |name: &str| ["ssd-s", "a:b.toml", "odd:x=1"].contains(&name);
        for (name, expected) in [
            ("ssd-s", None),
            ("odd:x=1", None),
            ("other", None),
            ("a:b", None),
            ("ssd-s:", Some(("ssd-s", ""))),
            ("ssd-s:channels", Some(("ssd-s", "channels"))),
            (
                "ssd-s:interface.command_queue=ncq:8,write_buffer=none",
                Some(("ssd-s", "interface.command_queue=ncq:8,write_buffer=none")),
            ),
            ("a:b.toml:x.y=1", Some(("a:b.toml", "x.y=1"))),
            ("c:d.toml:x.y=1", Some(("c:d.toml", "x.y=1"))),
            ("sds-s:x.y=1", Some(("sds-s", "x.y=1"))),
        ] {
            assert_eq!(split(name, exists), expected, "{name}");
        }
    }
}
