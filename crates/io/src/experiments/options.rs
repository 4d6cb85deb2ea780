//! Options of experiments, as text.

use super::Pattern;
use planewise_model::{Bytes, Ns, names};
use planewise_workload::values::{bytes, count, switch, time};

/// What experiments can be told. Lists are empty when an experiment's own values are meant.
#[derive(Clone, Debug)]
pub struct Options {
    /// The part of the target, from its beginning, that one workload works on.
    pub area: Bytes,
    /// How long each measurement goes on.
    pub time: Ns,
    /// Whether to write the area first, in order and in requests of 256 KiB (section 4.2).
    pub fill: bool,
    /// Rest between such writes and a measurement (section 4.2).
    pub pause: Ns,
    /// Patterns of requests.
    pub patterns: Vec<Pattern>,
    /// Sizes of requests, bytes.
    pub sizes: Vec<u32>,
    /// Requests in flight, or streams.
    pub depths: Vec<u32>,
    /// Domains of the device, for layouts (10 on both of the paper's drives).
    pub domains: u32,
    /// How long random writes condition the device (60 s in section 9.3).
    pub condition: Ns,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            // Random requests of the paper go to the first 1,024 MB (section 4.1).
            area: Bytes(1 << 30),
            // The paper's 30 s for each of the hundreds of points of a grid would take hours.
            time: Ns::from_millis(2_000),
            fill: true,
            pause: Ns::from_millis(5_000),
            patterns: Vec::new(),
            sizes: Vec::new(),
            depths: Vec::new(),
            domains: 10,
            condition: Ns::from_millis(60_000),
        }
    }
}

/// Names of options, as [`Options::set`] takes them.
pub const KEYS: [&str; 9] =
    ["area", "time", "fill", "pause", "patterns", "sizes", "depths", "domains", "condition"];

impl Options {
    /// Gives an option a value.
    ///
    /// # Errors
    /// It is unknown, or the value is not allowed: what was found, and what is.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        let positive_time = |text: &str| match time(text)? {
            Ns::ZERO => Err(format!("a time of more than 0; found '{text}'")),
            time => Ok(time),
        };
        let done = match key {
            "area" => block_sized(text).map(|bytes| self.area = Bytes(bytes)),
            "time" => positive_time(text).map(|time| self.time = time),
            "condition" => positive_time(text).map(|time| self.condition = time),
            "pause" => time(text).map(|time| self.pause = time),
            "fill" => switch(text).map(|fill| self.fill = fill),
            "domains" => number(text, 1024).map(|domains| self.domains = domains),
            "patterns" => list(text, |word| word.parse()).map(|patterns| self.patterns = patterns),
            "depths" => list(text, |word| number(word, 1024)).map(|depths| self.depths = depths),
            "sizes" => list(text, size).map(|sizes| self.sizes = sizes),
            _ => return Err(names::unknown("option of an experiment", key, KEYS).to_string()),
        };
        done.map_err(|allowed| match allowed.rsplit_once("; found ") {
            Some((allowed, found)) => format!("{key}: found {found}; allowed: {allowed}"),
            None => format!("{key}: found '{text}'; allowed: {allowed}"),
        })
    }
}

fn number(text: &str, most: u32) -> Result<u32, String> {
    let number = count(text, 1).ok().and_then(|number| u32::try_from(number).ok());
    number
        .filter(|number| *number <= most)
        .ok_or_else(|| format!("a whole number from 1 to {most}; found '{text}'"))
}

fn block_sized(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        bytes if bytes > 0 && bytes.is_multiple_of(4096) => Ok(bytes),
        _ => Err(format!("a multiple of 4 KiB, such as 1g; found '{text}'")),
    }
}

fn size(text: &str) -> Result<u32, String> {
    match bytes(text)? {
        bytes @ 512..=1_048_576 if bytes.is_multiple_of(512) => Ok(bytes as u32),
        _ => Err(format!("multiples of 512 bytes up to 1m; found '{text}'")),
    }
}

fn list<T: PartialEq>(text: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let mut values = Vec::new();
    for word in text.split(',').map(str::trim) {
        let value = one(word)?;
        if values.contains(&value) {
            return Err(format!("each value once; found '{word}' a second time"));
        }
        values.push(value);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_set_by_name_and_wrong_values_say_what_is_allowed() {
        let mut options = Options::default();
        for (key, text) in
            [("area", "256m"), ("time", "30"), ("fill", "0"), ("sizes", "4k,16k"), ("depths", "1,8,32")]
        {
            options.set(key, text).unwrap();
        }
        assert_eq!((options.area, options.time, options.fill), (Bytes(256 << 20), Ns(30_000_000_000), false));
        assert_eq!(
            (options.sizes.as_slice(), options.depths.as_slice()),
            (&[4096, 16384][..], &[1, 8, 32][..])
        );
        options.set("patterns", "read,randwrite").unwrap();
        assert_eq!(options.patterns, [Pattern::Read, Pattern::RandomWrite]);
        for (key, text, words) in [
            ("aera", "1g", "did you mean 'area'"),
            ("area", "0", "area: found '0'; allowed: a multiple of 4 KiB"),
            ("time", "0s", "more than 0"),
            ("time", "soon", "time: found 'soon'; allowed: a time"),
            ("depths", "0", "from 1 to 1024"),
            ("depths", "1,1", "'1' a second time"),
            ("sizes", "100", "multiples of 512"),
            ("patterns", "raednad", "found 'raednad'"),
            ("domains", "0", "from 1 to 1024"),
        ] {
            let error = options.set(key, text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
