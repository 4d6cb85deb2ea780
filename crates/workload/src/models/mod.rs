//! Application models: what a benchmark program, its database and its file system ask of the block device.
//!
//! A model is a kind with parameters; the files of `workloads/` hold the parameters of published experiments, and what they
//! leave unsaid is that of the file that ships under the kind's name.

mod file_benchmark;
mod files;
mod journal;
mod oltp;
mod sysbench_file;
mod wakeup;

use crate::Workload;
use crate::error::WorkloadError;
use planewise_model::{Ns, names};
use wakeup::WakingUp;

/// The workloads that ship with the program, by name.
pub static EMBEDDED: &[(&str, &str)] = &[
    ("file-benchmark", include_str!("../../../../workloads/file-benchmark.toml")),
    ("sysbench-file", include_str!("../../../../workloads/sysbench-file.toml")),
    ("sysbench-oltp-simple", include_str!("../../../../workloads/sysbench-oltp-simple.toml")),
    ("sysbench-oltp-complex", include_str!("../../../../workloads/sysbench-oltp-complex.toml")),
];

/// What is wrong with a parameter: its name, and what is allowed.
type Wrong = (&'static str, String);
/// Builds a workload of parameters, all of which are there, on a device of so many bytes, with a seed.
type Build = fn(&Parameters<'_>, u64, u64) -> Result<Box<dyn Workload>, Wrong>;

/// A kind of model.
struct Kind {
    name: &'static str,
    /// The embedded file that says what is left unsaid.
    defaults: &'static str,
    build: Build,
}

static KINDS: [Kind; 3] = [
    Kind { name: "file-benchmark", defaults: "file-benchmark", build: file_benchmark::build },
    Kind { name: "sysbench-file", defaults: "sysbench-file", build: sysbench_file::build },
    Kind { name: "sysbench-oltp", defaults: "sysbench-oltp-complex", build: oltp::build },
];

/// Keys of a model's file that are no parameters.
const ABOUT: [&str; 3] = ["model", "description", "source"];

/// A model with its parameters, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    kind: &'static str,
    /// One line about it.
    pub description: String,
    /// The profile that the file names as its target.
    pub profile: Option<String>,
    values: Vec<(String, String)>,
}

/// Whether the text of a workload's file is one of a model rather than of jobs.
pub fn is_model(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("model"))
}

impl Model {
    /// One that ships with the program.
    ///
    /// # Errors
    /// There is none of that name: the error offers the nearest.
    pub fn embedded(name: &str) -> Result<Model, WorkloadError> {
        let found = EMBEDDED.iter().find(|(known, _)| *known == name);
        let (known, text) = found.ok_or_else(|| WorkloadError::Unknown {
            place: None,
            job: None,
            name: Box::new(names::unknown("workload", name, EMBEDDED.iter().map(|(known, _)| *known))),
        })?;
        Model::parse(text, known)
    }

    /// Reads a model's file.
    ///
    /// # Errors
    /// Syntax, an unknown kind, unknown parameters.
    pub fn parse(text: &str, origin: &str) -> Result<Model, WorkloadError> {
        let wrong = |message: String| WorkloadError::File(format!("{origin}: {message}"));
        let table = crate::jobs::table(text, origin)?;
        let name = table.get("model").and_then(toml::Value::as_str).unwrap_or_default();
        let known = KINDS.iter().map(|kind| kind.name);
        let kind = KINDS
            .iter()
            .find(|kind| kind.name == name)
            .ok_or_else(|| wrong(names::unknown("model", name, known).to_string()))?;
        let is_own = EMBEDDED.iter().any(|(_, embedded)| *embedded == text);
        let mut model = if is_own {
            Model { kind: kind.name, description: String::new(), profile: None, values: Vec::new() }
        } else {
            Model::embedded(kind.defaults)?
        };
        let description = table.get("description").and_then(toml::Value::as_str);
        description.unwrap_or_default().clone_into(&mut model.description);
        for (key, value) in table.iter().filter(|(key, _)| !ABOUT.contains(&key.as_str())) {
            if let ("target", toml::Value::Table(target)) = (key.as_str(), value) {
                model.profile = crate::jobs::target_profile(target).map_err(wrong)?;
                continue;
            }
            let value = crate::jobs::value_text(key, value).map_err(wrong)?;
            if is_own {
                model.values.push((key.clone(), value));
            } else {
                model.set(key, &value).map_err(|error| wrong(error.to_string()))?;
            }
        }
        Ok(model)
    }

    /// Gives a parameter a value.
    ///
    /// # Errors
    /// The model has none of that name.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        let plain = key.replace('-', "_");
        let known: Vec<String> = self.values.iter().map(|(known, _)| known.clone()).collect();
        match self.values.iter_mut().find(|(known, _)| *known == plain) {
            Some((_, old)) => {
                value.clone_into(old);
                Ok(())
            }
            None => Err(WorkloadError::Unknown {
                place: None,
                job: None,
                name: Box::new(names::unknown(
                    "parameter of the model",
                    key,
                    known.iter().map(String::as_str),
                )),
            }),
        }
    }

    /// The workload on a device of so many bytes.
    ///
    /// # Errors
    /// A value that is not allowed, or a device that is too small.
    pub fn build(&self, device_bytes: u64, seed: u64) -> Result<Box<dyn Workload>, WorkloadError> {
        let kind = KINDS.iter().find(|kind| kind.name == self.kind).expect("a model's kind is one of them");
        let parameters = Parameters(&self.values);
        let wakeup = parameters.get("wakeup_time", crate::values::time_us);
        let built = wakeup.and_then(|wakeup| {
            let workload = (kind.build)(&parameters, device_bytes, seed)?;
            Ok(if wakeup == Ns::ZERO { workload } else { Box::new(WakingUp::new(workload, wakeup)) })
        });
        built.map_err(|(key, allowed)| {
            let value = self.values.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value);
            let (allowed, found) = match allowed.rsplit_once("; found ") {
                Some((allowed, found)) => (allowed.to_owned(), found.to_owned()),
                None => (allowed, format!("'{value}'")),
            };
            WorkloadError::Option { place: None, job: None, key: key.to_owned(), found, allowed }
        })
    }

    /// Whether another has the same parameters, whatever words it has for them.
    pub(crate) fn means_the_same(&self, other: &Model) -> bool {
        let pairs = self.values.iter().zip(&other.values);
        let same = |(one, other): (&(String, String), &(String, String))| {
            one.0 == other.0 && is_same_value(&one.1, &other.1)
        };
        self.kind == other.kind && pairs.into_iter().all(same)
    }

    /// The whole as TOML.
    pub fn to_toml(&self) -> String {
        let mut text = format!("model = {}\n", toml::Value::from(self.kind));
        for (key, value) in &self.values {
            text += &format!("{key} = {}\n", toml::Value::from(value.as_str()));
        }
        text
    }
}

/// 4k and 4096, 1 and 1.0, 1 and true are the same to every parameter that takes them.
fn is_same_value(one: &str, other: &str) -> bool {
    let number = |text: &str| text.trim().parse::<f64>().ok();
    let size = |text: &str| crate::values::bytes(text).ok();
    let switch = |text: &str| crate::values::switch(text).ok();
    one == other
        || number(one).is_some_and(|value| number(other) == Some(value))
        || size(one).is_some_and(|value| size(other) == Some(value))
        || switch(one).is_some_and(|value| switch(other) == Some(value))
}

/// The parameters of a model, read by name.
struct Parameters<'a>(&'a [(String, String)]);

impl Parameters<'_> {
    /// A parameter, read as its kind of value.
    fn get<T>(&self, key: &'static str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Wrong> {
        let (_, text) =
            self.0.iter().find(|(known, _)| known == key).expect("embedded files hold all parameters");
        read(text).map_err(|allowed| (key, allowed))
    }

    fn count(&self, key: &'static str, least: u64, most: u64) -> Result<u64, Wrong> {
        self.get(key, |text| {
            let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("a whole number from {least} to {most}"))
        })
    }

    /// A size that is a multiple of a sector, and not 0.
    fn size(&self, key: &'static str) -> Result<u64, Wrong> {
        self.get(key, |text| {
            let size = crate::values::bytes(text)?;
            if size > 0 && size % 512 == 0 {
                Ok(size)
            } else {
                Err("a multiple of 512 bytes above 0".to_owned())
            }
        })
    }

    /// A size with a least and a largest value, bytes.
    fn size_within(&self, key: &'static str, least: u64, most: u64) -> Result<u64, Wrong> {
        let size = self.size(key)?;
        if (least..=most).contains(&size) {
            Ok(size)
        } else {
            Err((key, format!("from {least} to {most} bytes")))
        }
    }

    /// The journal of the file system: at least a descriptor and a commit block, at most what jbd2's block numbers count.
    fn journal_size(&self) -> Result<u64, Wrong> {
        self.size_within("journal_size", 2 * files::BLOCK, u64::from(u32::MAX) * files::BLOCK)
    }

    fn switch(&self, key: &'static str) -> Result<bool, Wrong> {
        self.get(key, crate::values::switch)
    }

    fn number(&self, key: &'static str, least: f64, most: f64) -> Result<f64, Wrong> {
        self.get(key, |text| {
            let number = text.parse::<f64>().ok().filter(|number| (least..=most).contains(number));
            number.ok_or_else(|| format!("a number from {least} to {most}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Step;

    #[test]
    fn every_embedded_model_builds_and_reads_back_what_it_writes() {
        for (name, _) in EMBEDDED {
            let model = Model::embedded(name).unwrap();
            assert!(!model.description.is_empty(), "{name}");
            let workload = model.build(60 << 30, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!workload.groups().is_empty());
            let again = Model::parse(&model.to_toml(), "again").unwrap();
            assert_eq!(again.values, model.values, "{name}");
        }
    }

    #[test]
    fn a_process_is_awake_a_microsecond_behind_what_it_waited_for() {
        let mut model = Model::embedded("file-benchmark").unwrap();
        let mut first_steps = |wakeup: Option<&str>| {
            wakeup.into_iter().for_each(|time| model.set("wakeup_time", time).unwrap());
            let mut workload = model.build(60 << 30, 1).unwrap();
            let Step::Submit(io) = workload.next(0, Ns::ZERO) else { panic!("threads start at once") };
            assert_eq!(workload.next(0, Ns::ZERO), Step::Wait);
            workload.completed(0, &io.request(Ns::ZERO, 0), Ns(5_000));
            [workload.next(0, Ns(5_000)), workload.next(0, Ns(6_000))]
        };
        let [at_once, then] = first_steps(None);
        assert_eq!(at_once, Step::WaitUntil(Ns(6_000)));
        assert!(matches!(then, Step::Submit(_)), "{then:?}");
        assert!(matches!(first_steps(Some("0")), [Step::Submit(_), _]));
        assert_eq!(first_steps(Some("20"))[0], Step::WaitUntil(Ns(25_000)));
    }

    #[test]
    fn values_are_compared_and_not_their_spelling() {
        assert!(is_same_value("4k", "4096") && is_same_value("1", "true") && is_same_value("1", "1.0"));
        assert!(
            !is_same_value("4k", "4096k") && !is_same_value("simple", "complex") && !is_same_value("0", "1")
        );
    }

    #[test]
    fn wrong_parameters_are_named_with_what_is_allowed() {
        let mut model = Model::embedded("sysbench-file").unwrap();
        let error = model.set("thread", "4").unwrap_err().to_string();
        assert!(error.contains("'thread'") && error.contains("did you mean 'threads'"), "{error}");
        model.set("threads", "0").unwrap();
        let error = model.build(60 << 30, 1).err().unwrap().to_string();
        assert!(error.contains("threads: found '0'; allowed: a whole number from 1"), "{error}");
        model.set("threads", "4").unwrap();
        model.set("wakeup_time", "soon").unwrap();
        let error = model.build(60 << 30, 1).err().unwrap().to_string();
        assert!(error.contains("wakeup_time: found 'soon'"), "{error}");
        model.set("wakeup_time", "0").unwrap();
        let error = model.build(1 << 30, 1).err().unwrap().to_string();
        assert!(error.contains("total_size") && error.contains("device"), "{error}");
        model.set("journal_size", "512").unwrap();
        let error = model.build(60 << 30, 1).err().unwrap().to_string();
        assert!(error.contains("journal_size: found '512'; allowed: from 8192 to"), "{error}");
        model.set("journal_size", "8k").unwrap();
        model.set("ratio_counts", "begun").unwrap();
        let error = model.build(60 << 30, 1).err().unwrap().to_string();
        assert!(error.contains("ratio_counts: found 'begun'; allowed: completed or issued"), "{error}");
        let error = Model::parse("model = 'sysbench-fil'", "x.toml").unwrap_err().to_string();
        assert!(error.contains("x.toml") && error.contains("did you mean 'sysbench-file'"), "{error}");
    }
}
