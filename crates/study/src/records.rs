//! Results of commands as records: one for each run, told apart by labels.

use crate::expression::Vector;
use serde_json::Value;

/// All runs of a set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordSet {
    labels: Vec<String>,
    records: Vec<Record>,
}

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    labels: Vec<String>,
    run: Value,
}

impl RecordSet {
    /// The runs of commands that differ in the values of `variables`; each gave the JSON that it prints. Labels are the variables, and
    /// what differs between the runs of one command.
    pub fn new(variables: &[String], commands: Vec<(Vec<String>, Value)>) -> RecordSet {
        let mut parsed: Vec<Command> = Vec::with_capacity(commands.len());
        for (values, output) in commands {
            let runs = match output {
                Value::Object(mut object) if object.contains_key("runs") => match object.remove("runs") {
                    Some(Value::Array(runs)) => runs,
                    other => other.into_iter().collect(),
                },
                // A command without runs (a probe) is one by itself.
                other => vec![other],
            };
            parsed.push((values, runs.into_iter().map(|run| (labels_of(&run), run)).collect()));
        }
        let mut varying: Vec<String> = Vec::new();
        for (_, runs) in &parsed {
            for (name, first) in runs.first().map(|(labels, _)| labels.as_slice()).unwrap_or_default() {
                let differs = runs.iter().any(|(labels, _)| value_of(labels, name) != Some(first));
                if differs && !varying.contains(name) && !variables.contains(name) {
                    varying.push(name.clone());
                }
            }
        }
        let mut records = Vec::new();
        for (values, runs) in parsed {
            for (labels, run) in runs {
                let own = varying.iter().map(|name| value_of(&labels, name).cloned().unwrap_or_default());
                records.push(Record { labels: values.iter().cloned().chain(own).collect(), run });
            }
        }
        RecordSet { labels: variables.iter().cloned().chain(varying).collect(), records }
    }

    /// A number of each run; runs that have none are left out.
    pub fn vector(&self, of: impl Fn(&Record) -> Option<f64>) -> Vector {
        let cells = self.records.iter().filter_map(|record| Some((record.labels.clone(), of(record)?)));
        Vector { labels: self.labels.clone(), cells: cells.collect() }
    }

    /// Names of the labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// The runs.
    pub fn records(&self) -> &[Record] {
        &self.records
    }
}

impl Record {
    /// The values of the labels.
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    /// What is at a path: in the metrics of the run, or in the run itself.
    pub fn at(&self, path: &str) -> Option<&Value> {
        resolve(self.run.get("metrics"), path).or_else(|| resolve(Some(&self.run), path))
    }

    /// The number at a path; truths are 1 and 0.
    pub fn number(&self, path: &str) -> Option<f64> {
        match self.at(path)? {
            Value::Number(number) => number.as_f64().filter(|value| value.is_finite()),
            Value::Bool(truth) => Some(f64::from(u8::from(*truth))),
            _ => None,
        }
    }

    /// The text at a path.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.at(path)?.as_str()
    }
}

fn resolve<'a>(from: Option<&'a Value>, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(from?, |value, part| match value {
        Value::Object(object) => object.get(part),
        Value::Array(array) => array.get(part.parse::<usize>().ok()?),
        _ => None,
    })
}

type Labels = Vec<(String, String)>;

/// The values of the variables of a command, and its runs.
type Command = (Vec<String>, Vec<(Labels, Value)>);

fn value_of<'a>(labels: &'a Labels, name: &str) -> Option<&'a String> {
    labels.iter().find(|(own, _)| own == name).map(|(_, value)| value)
}

/// The labels of a run, those of its workload among them.
fn labels_of(run: &Value) -> Labels {
    let mut labels = Vec::new();
    let Some(Value::Object(object)) = run.get("labels") else { return labels };
    for (name, value) in object {
        match value {
            Value::Object(inner) => {
                labels.extend(inner.iter().filter_map(|(name, value)| Some((name.clone(), text(value)?))))
            }
            other => labels.extend(text(other).map(|text| (name.clone(), text))),
        }
    }
    labels
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_are_the_variables_and_what_differs_within_a_command() {
        let run = |scheduler: &str, device: &str, mean: f64| json!({"labels": {"scheduler": scheduler, "device": device, "workload": {"bs": "4k"}}, "metrics": {"read": {"mean": mean, "list": [1, 2]}}, "closed_loop": {"x": 3}});
        let command = |device: &str| json!({"runs": [run("noop", device, 1.0), run("piq", device, 2.0)]});
        let set = RecordSet::new(
            &["chips".to_owned()],
            vec![(vec!["4".to_owned()], command("d4")), (vec!["8".to_owned()], command("d8"))],
        );
        assert_eq!(set.labels(), ["chips", "scheduler"]);
        let vector = set.vector(|record| record.number("read.mean"));
        assert_eq!(vector.cells.len(), 4);
        assert_eq!(vector.cells[3], (vec!["8".to_owned(), "piq".to_owned()], 2.0));
        let first = &set.records()[0];
        assert_eq!(first.number("closed_loop.x"), Some(3.0));
        assert_eq!(first.number("read.list.1"), Some(2.0));
        assert_eq!(first.number("read.nothing"), None);
    }

    #[test]
    fn a_command_without_runs_is_one_record() {
        let set = RecordSet::new(&[], vec![(vec![], json!({"findings": {"mapping": {"value": "static"}}}))]);
        assert_eq!(set.records()[0].text("findings.mapping.value"), Some("static"));
    }
}
