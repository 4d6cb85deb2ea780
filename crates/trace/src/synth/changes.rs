//! Changes of single numbers of a volume, written behind its name: `piq-hm_0:shape.burst_length_mean=14,write_ratio=0.5`.

use super::VolumeDescription;
use planewise_model::config::{ConfigError, parse_toml};
use planewise_model::names;
use planewise_model::profile::changes::{Change, check_once, parse, value};
use toml::{Table, Value};

/// The section of what the columns leave open.
const SHAPE: &str = "shape";

impl VolumeDescription {
    /// The volume with changes, `KEY=VALUE` or `shape.KEY=VALUE` separated by commas. Its name says them, and so do the sources of what
    /// was changed. `origin` is what errors call the volume.
    ///
    /// # Errors
    /// A key that is unknown or changed twice, a value of the wrong type, columns that cannot hold together.
    pub fn changed(&self, changes: &str, origin: &str) -> Result<VolumeDescription, ConfigError> {
        let wrong = |message: String| ConfigError { origin: origin.to_owned(), line: None, message };
        let changes = parse(changes).map_err(wrong)?;
        let mut table = Table::try_from(self).expect("a description is a table");
        for (index, change) in changes.iter().enumerate() {
            check_once(&changes[..index], change).map_err(wrong)?;
            apply(&mut table, change).map_err(wrong)?;
        }
        let text = toml::to_string(&table).expect("a table of plain values is TOML");
        let mut volume: VolumeDescription = parse_toml(&text, "").map_err(|error| wrong(error.message))?;
        volume.check().map_err(|(key, problem)| wrong(format!("key '{key}': {problem}")))?;
        let said: Vec<String> =
            changes.iter().map(|change| format!("{}={}", change.key, change.value)).collect();
        volume.name = format!("{}:{}", self.name, said.join(","));
        for change in &changes {
            let key = change.key.trim_start_matches("shape.");
            volume.sources.insert(key.to_owned(), "changed behind the volume's name".to_owned());
        }
        Ok(volume)
    }
}

/// Puts one value in its place.
fn apply(table: &mut Table, change: &Change<'_>) -> Result<(), String> {
    let Change { key, value: text } = *change;
    let places = places(table);
    if !places.iter().any(|place| place == key) {
        let inside = key.rsplit('.').next().unwrap_or(key);
        // A key of that very name in the other section is meant before one that only looks like it.
        let elsewhere = places.iter().find(|place| place.rsplit('.').next() == Some(inside));
        let nearest = elsewhere.map(String::as_str);
        let nearest = nearest.or_else(|| names::nearest(key, places.iter().map(String::as_str)));
        let nearest = nearest.map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default();
        return Err(format!("unknown key '{key}'{nearest}; allowed: {}", places.join(", ")));
    }
    let (section, name) = match key.split_once('.') {
        Some((section, name)) => (table.get_mut(section).and_then(Value::as_table_mut), name),
        None => (Some(table), key),
    };
    // Whole numbers are written without a point where the description has one.
    let section = section.expect("a place that was found");
    let number = match (value(text), section.get(name)) {
        (Value::Integer(whole), Some(Value::Float(_))) => Value::Float(whole as f64),
        (other, _) => other,
    };
    section.insert(name.to_owned(), number);
    Ok(())
}

/// Every key that can be changed.
fn places(table: &Table) -> Vec<String> {
    let top = table.keys().filter(|key| !["name", "summary", "sources", SHAPE].contains(&key.as_str()));
    let shape = table[SHAPE].as_table().into_iter().flat_map(Table::keys);
    top.cloned().chain(shape.map(|key| format!("{SHAPE}.{key}"))).collect()
}

#[cfg(test)]
mod tests {
    use crate::synth::volume;

    #[test]
    fn a_changed_volume_differs_by_what_was_changed_and_says_so_in_its_name() {
        let before = volume("piq-hm_0").unwrap();
        let after = before.changed("shape.burst_length_mean=14, write_ratio=0.75", "x").unwrap();
        assert_eq!(after.name, "piq-hm_0:shape.burst_length_mean=14,write_ratio=0.75");
        assert_eq!((after.shape.burst_length_mean, after.write_ratio), (14.0, 0.75));
        assert_eq!(after.sources["burst_length_mean"], "changed behind the volume's name");
        assert_eq!(after.shape.burst_gap_mean_us, before.shape.burst_gap_mean_us);
    }

    #[test]
    fn what_cannot_be_changed_so_names_the_key_and_what_is_allowed() {
        let cases = [
            (
                "burst_length_mean=14",
                "unknown key 'burst_length_mean' (did you mean 'shape.burst_length_mean'?)",
            ),
            ("write_ration=0.5", "(did you mean 'write_ratio'?)"),
            ("shape.streams", "found 'shape.streams'; allowed: SECTION.KEY=VALUE"),
            ("shape.streams=many", "allowed: "),
            ("shape.streams=40", "key 'streams': 40; allowed: 1 to 12"),
            ("write_ratio=0.5,write_ratio=0.6", "allowed: each key once"),
            ("shape={}", "unknown key 'shape'"),
            ("name=mine", "unknown key 'name'"),
            ("shape.burst_length_mean=1", "key 'burst_length_mean': 1; allowed"),
        ];
        for (changes, expected) in cases {
            let error = volume("piq-hm_0").unwrap().changed(changes, "piq-hm_0:x").unwrap_err().to_string();
            assert!(
                error.starts_with("piq-hm_0:x") && error.contains(expected) && !error.contains('\n'),
                "{changes}: {error}"
            );
        }
    }
}
