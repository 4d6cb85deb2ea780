//! Recipes: what to set up once, what to run, and which numbers of its output count. TOML files, as studies are; those of `crates/guest/recipes` are in the
//! program.
//!
//! Scripts are those of a shell, run as root in the guest, with the parameters in their environment (upper case), the drive at `$DRIVE`, its file system
//! at `/drive`.

use planewise_model::Bytes;
use planewise_model::names;
use planewise_workload::values::bytes;
use regex::Regex;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;

/// A recipe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// What it is, in one line.
    pub summary: String,
    /// Where its parameters come from, and what it leaves out.
    #[serde(default)]
    pub about: String,
    /// Programs that the root must have, as paths in it.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Memory of the guest.
    #[serde(default = "memory")]
    pub memory: String,
    /// The file system on the drive.
    #[serde(default)]
    pub file_system: FileSystem,
    /// Its size.
    #[serde(default = "size")]
    pub size: String,
    /// Parameters with their defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Done once: the drive is kept as this leaves it, for all runs.
    #[serde(default)]
    pub setup: String,
    /// Done before each run, and not measured: servers start.
    #[serde(default)]
    pub start: String,
    /// What is measured.
    pub run: String,
    /// Done behind it.
    #[serde(default)]
    pub stop: String,
    /// What counts in its output.
    #[serde(default)]
    pub numbers: Vec<Number>,
}

/// A parameter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its value where none is given.
    pub default: String,
    /// What it means, and in which unit.
    pub meaning: String,
}

/// A number in a program's output.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// A regular expression whose first group it is; of several matches the last counts.
    pub pattern: String,
    /// Whether more of it is better.
    pub more_is_better: bool,
    /// What the number in the output is multiplied by.
    #[serde(default = "one")]
    pub factor: f64,
}

/// File systems that the guest's kernel has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// The default of Debian.
    #[default]
    Ext4,
    /// That of databases.
    Xfs,
    /// For flash.
    F2fs,
    /// None: programs use the drive itself.
    None,
}

impl FileSystem {
    /// All of them.
    pub const ALL: [FileSystem; 4] = [FileSystem::Ext4, FileSystem::Xfs, FileSystem::F2fs, FileSystem::None];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::F2fs => "f2fs",
            FileSystem::None => "none",
        }
    }

    /// The program that makes one, in the root; none where nothing is made.
    pub fn maker(self) -> Option<&'static str> {
        match self {
            FileSystem::Ext4 => Some("mkfs.ext4"),
            FileSystem::Xfs => Some("mkfs.xfs"),
            FileSystem::F2fs => Some("mkfs.f2fs"),
            FileSystem::None => None,
        }
    }

    /// The shell's line that makes one of so many bytes on a drive. What tools would draw at random is fixed; tables are written at once, as zeros that
    /// cost a drive nothing, and not by a thread of the kernel's during the first minutes.
    pub fn make(self, drive: &str, size: Bytes) -> String {
        const IDENTITY: &str = "506c616e-6577-4973-8000-000000000001";
        match self {
            FileSystem::Ext4 => format!(
                "mkfs.ext4 -q -F -U {IDENTITY} -E lazy_itable_init=0,lazy_journal_init=0,hash_seed={IDENTITY} {drive} {}k",
                size.0 / 1024
            ),
            FileSystem::Xfs => format!("mkfs.xfs -q -f -m uuid={IDENTITY} -d size={} {drive}", size.0),
            FileSystem::F2fs => format!("mkfs.f2fs -q -f -U {IDENTITY} {drive} {}", size.0 / 512),
            FileSystem::None => String::new(),
        }
    }
}

impl FromStr for FileSystem {
    type Err = String;

    fn from_str(text: &str) -> Result<FileSystem, String> {
        FileSystem::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| {
            names::unknown("file system", text, FileSystem::ALL.map(FileSystem::name)).to_string()
        })
    }
}

/// Of the environment that scripts have anyhow.
const RESERVED: [&str; 4] = ["drive", "home", "lang", "path"];

fn one() -> f64 {
    1.0
}

fn memory() -> String {
    "512m".into()
}

fn size() -> String {
    "8g".into()
}

/// Those in the program: name and text.
pub const EMBEDDED: [(&str, &str); 8] = [
    ("fio", include_str!("../recipes/fio.toml")),
    ("git-checkout", include_str!("../recipes/git-checkout.toml")),
    ("mail", include_str!("../recipes/mail.toml")),
    ("pgbench", include_str!("../recipes/pgbench.toml")),
    ("readers-writer", include_str!("../recipes/readers-writer.toml")),
    ("sqlite", include_str!("../recipes/sqlite.toml")),
    ("sysbench-fileio", include_str!("../recipes/sysbench-fileio.toml")),
    ("sysbench-oltp", include_str!("../recipes/sysbench-oltp.toml")),
];

impl Recipe {
    /// One by name.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn embedded(name: &str) -> Result<Recipe, String> {
        let known = EMBEDDED.iter().find(|(known, _)| *known == name);
        let (name, text) = known
            .ok_or_else(|| names::unknown("recipe", name, EMBEDDED.map(|(name, _)| name)).to_string())?;
        Recipe::parse(text, name)
    }

    /// From a text; `place` is what errors call it.
    ///
    /// # Errors
    /// It is no recipe: where, what was found, what is allowed.
    pub fn parse(text: &str, place: &str) -> Result<Recipe, String> {
        let recipe: Recipe = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            format!("{place}:{line}: {}", error.message().replace('\n', " "))
        })?;
        for number in &recipe.numbers {
            number.expression().map_err(|problem| format!("{place}: numbers: {}: {problem}", number.name))?;
        }
        for (key, text) in [("memory", &recipe.memory), ("size", &recipe.size)] {
            bytes(text).map_err(|problem| format!("{place}: {key}: allowed: {problem}"))?;
        }
        for name in recipe.parameters.keys() {
            let is_word = name.starts_with(|first: char| first.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
            if RESERVED.contains(&name.as_str()) {
                return Err(format!(
                    "{place}: parameters: found '{name}'; allowed: any name but {}",
                    RESERVED.join(", ")
                ));
            }
            if !is_word {
                return Err(format!(
                    "{place}: parameters: found '{name}'; allowed: small letters, digits and _, a letter first"
                ));
            }
        }
        Ok(recipe)
    }

    /// The parameters as the scripts see them, with those that were given.
    ///
    /// # Errors
    /// A parameter that it has not, or one that was given twice.
    pub fn environment(&self, given: &[(String, String)]) -> Result<Vec<(String, String)>, String> {
        for (number, (name, value)) in given.iter().enumerate() {
            if !self.parameters.contains_key(name) {
                let known = self.parameters.keys().map(String::as_str);
                return Err(names::unknown("parameter of this recipe", name, known).to_string());
            }
            if given[..number].iter().any(|(other, _)| other == name) {
                return Err(format!(
                    "parameter {name}: found {value} after another value; allowed: each once"
                ));
            }
        }
        let value = |name: &str, parameter: &Parameter| {
            let given = given.iter().find(|(other, _)| other == name);
            given.map_or_else(|| parameter.default.clone(), |(_, value)| value.clone())
        };
        let all =
            self.parameters.iter().map(|(name, parameter)| (name.to_uppercase(), value(name, parameter)));
        Ok(all.collect())
    }
}

impl Number {
    fn expression(&self) -> Result<Regex, String> {
        let expression = Regex::new(&format!("(?m){}", self.pattern))
            .map_err(|error| error.to_string().split_whitespace().collect::<Vec<_>>().join(" "))?;
        match expression.captures_len() {
            2 => Ok(expression),
            groups => Err(format!("found {} groups in '{}'; allowed: one", groups - 1, self.pattern)),
        }
    }

    /// Its value in an output; none where it is not there.
    pub fn find(&self, output: &str) -> Option<f64> {
        let expression = self.expression().ok()?;
        let text = expression.captures_iter(output).last()?.get(1)?.as_str().replace(',', "");
        // As fio rounds: 12.3k.
        let (digits, factor) = match text.strip_suffix('k') {
            Some(digits) => (digits, 1e3),
            None => text.strip_suffix('M').map_or((text.as_str(), 1.0), |digits| (digits, 1e6)),
        };
        digits.parse::<f64>().ok().map(|value| value * factor * self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_in_the_program_are_recipes_that_read_a_number_each() {
        for (name, _) in EMBEDDED {
            let recipe = Recipe::embedded(name).unwrap();
            assert!(!recipe.numbers.is_empty() && !recipe.needs.is_empty(), "{name}");
            assert!(recipe.about.len() > 40, "{name}: where it comes from");
        }
        assert!(Recipe::embedded("pgbenhc").unwrap_err().contains("pgbench"));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let wrong = |text: &str| Recipe::parse(text, "my.toml").unwrap_err();
        assert!(
            wrong("summary = 'x'\nrun = 'y'\nrnu = 'z'\n").starts_with("my.toml:3:"),
            "{}",
            wrong("summary = 'x'\nrun = 'y'\nrnu = 'z'\n")
        );
        assert!(wrong("summary = 'x'\n").contains("run"));
        let number = "summary = 'x'\nrun = 'y'\n[[numbers]]\nname = 'n'\nunit = 's'\nmore_is_better = true\npattern = ";
        assert!(wrong(&format!("{number}'a(b'")).contains("numbers: n"));
        assert!(wrong(&format!("{number}'ab'")).contains("0 groups"));
        assert!(wrong("summary = 'x'\nrun = 'y'\nsize = 'much'\n").contains("size"));
        assert!(
            wrong("summary = 'x'\nrun = 'y'\n[parameters.\"A-b\"]\ndefault = ''\nmeaning = ''\n")
                .contains("A-b")
        );
    }

    #[test]
    fn parameters_have_defaults_and_none_is_made_up() {
        let text = "summary = 'x'\nrun = 'y'\n[parameters.scale]\ndefault = '10'\nmeaning = 'tellers'\n";
        let recipe = Recipe::parse(text, "my.toml").unwrap();
        let given = |name: &str| vec![(name.to_owned(), "20".to_owned())];
        assert_eq!(recipe.environment(&[]).unwrap(), [("SCALE".to_owned(), "10".to_owned())]);
        assert_eq!(recipe.environment(&given("scale")).unwrap()[0].1, "20");
        assert!(recipe.environment(&given("sclae")).unwrap_err().contains("scale"));
        let own = text.replace("scale", "path");
        assert!(
            Recipe::parse(&own, "my.toml").unwrap_err().contains("any name but"),
            "scripts have it anyhow"
        );
        assert!(recipe.environment(&[given("scale"), given("scale")].concat()).is_err());
    }

    #[test]
    fn of_several_matches_the_last_counts() {
        let number = Number {
            name: "tps".into(),
            unit: "1/s".into(),
            pattern: "^tps = ([0-9,.]+)".into(),
            more_is_better: true,
            factor: 1.0,
        };
        assert_eq!(number.find("tps = 3\nx tps = 4\ntps = 1,234.5 (without)\n"), Some(1234.5));
        assert_eq!(number.find("none"), None);
        let rounded = Number { pattern: "IOPS=([0-9.]+k?)".into(), ..number };
        assert_eq!(rounded.find("read: IOPS=12.5k, BW"), Some(12_500.0));
    }
}
