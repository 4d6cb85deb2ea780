//! The shape of a study's file: what serde reads, before anything is looked up.

use crate::outcome::{FigureKind, Paper, Size};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A study's file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyFile {
    pub title: String,
    pub paper: Paper,
    pub figure: String,
    #[serde(default)]
    pub section: String,
    pub about: String,
    /// What commands may name in braces, whatever the size.
    #[serde(default)]
    pub variables: BTreeMap<String, Variable>,
    /// The same, at one size.
    #[serde(default)]
    pub quick: BTreeMap<String, Variable>,
    #[serde(default)]
    pub full: BTreeMap<String, Variable>,
    /// Job files that commands name as {file:NAME}.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    pub runs: Vec<RunsEntry>,
    /// Names for formulas.
    #[serde(default, rename = "let")]
    pub named: BTreeMap<String, String>,
    #[serde(default, rename = "check")]
    pub checks: Vec<CheckEntry>,
    #[serde(default, rename = "plot")]
    pub figures: Vec<FigureEntry>,
    #[serde(default, rename = "table")]
    pub tables: Vec<TableEntry>,
}

/// A value in braces, or several: then there is a command for each.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Variable {
    List(Vec<Item>),
    One(Scalar),
}

/// One of several values.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Item {
    One(Scalar),
    /// Several values that go together, under a name.
    Record(BTreeMap<String, Scalar>),
}

/// A word or a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    Text(String),
    Whole(i64),
    Number(f64),
    Truth(bool),
}

impl Scalar {
    pub fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.clone(),
            Scalar::Whole(number) => number.to_string(),
            Scalar::Number(number) => number.to_string(),
            Scalar::Truth(truth) => truth.to_string(),
        }
    }
}

/// A set of runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsEntry {
    pub name: String,
    pub command: String,
    /// Family of look-alikes that the variable `volume` names members of; `{trace}` is then the look-alike, or the real volume.
    pub volumes: Option<String>,
    /// Only at this size.
    pub only: Option<Size>,
}

/// A published number and a formula.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckEntry {
    pub claim: Option<String>,
    pub what: String,
    /// Number of the claim by its name.
    pub key: Option<String>,
    /// A number that the claim lacks, or the statement in words.
    pub published: Option<Scalar>,
    /// The published value as a formula over what was measured: closed forms.
    pub expected: Option<String>,
    /// The formula of a number.
    pub measured: Option<String>,
    /// Formulas shown beside one another, when a statement is about several numbers.
    #[serde(default)]
    pub shown: Vec<String>,
    /// What "no effect" is: 1 for ratios; absent for numbers with a unit.
    pub neutral: Option<f64>,
    /// Behind the numbers.
    #[serde(default)]
    pub unit: String,
    pub digits: Option<usize>,
    /// Formula that decides, instead of the distance between the numbers.
    pub holds: Option<String>,
    /// Formula that decides about the direction where the number does not hold.
    pub direction: Option<String>,
    /// Largest relative distance at which a number holds.
    pub within: Option<f64>,
    /// The drive was set up by the study, not measured by the paper: to hold is to pass a test of the method.
    #[serde(default)]
    pub self_test: bool,
    pub only: Option<Size>,
    /// What was measured of this in a real Linux, in words: nothing here makes it.
    pub in_linux: Option<String>,
    #[serde(default)]
    pub why: String,
}

/// A plot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureEntry {
    pub name: String,
    pub title: String,
    #[serde(default)]
    pub caption: String,
    pub kind: FigureKind,
    /// Label across.
    #[serde(default)]
    pub x: String,
    /// Label that tells the series apart.
    pub series: Option<String>,
    /// The formula.
    pub value: Option<String>,
    /// Formulas by the name of their series, instead of `value` and `series`.
    #[serde(default)]
    pub values: Vec<NamedFormula>,
    #[serde(default)]
    pub x_label: String,
    #[serde(default)]
    pub y_label: String,
    #[serde(default)]
    pub log_x: bool,
    #[serde(default)]
    pub log_y: bool,
    /// What to multiply x by: 1e-6 makes ms of ns. Only for distributions.
    pub x_scale: Option<f64>,
    /// Whether x are names even where they look like numbers.
    #[serde(default)]
    pub places: bool,
    /// A last place with the mean of all.
    #[serde(default)]
    pub mean: bool,
    /// What to call the values of the labels.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Published numbers: by series the one at the mean, or pairs of x and y.
    #[serde(default)]
    pub published: BTreeMap<String, PublishedPoints>,
    /// Published numbers across the plot.
    #[serde(default)]
    pub marks: Vec<MarkEntry>,
    pub only: Option<Size>,
}

/// A formula and what to call it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedFormula {
    pub name: String,
    pub value: String,
}

/// Published numbers of a series.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum PublishedPoints {
    Mean(f64),
    Points(Vec<(Scalar, f64)>),
}

/// A published number across the plot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MarkEntry {
    pub name: String,
    pub y: f64,
}

/// A table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableEntry {
    pub name: String,
    pub title: String,
    /// Label of the rows.
    pub rows: String,
    /// Label of the columns.
    pub columns: Option<String>,
    pub value: Option<String>,
    #[serde(default)]
    pub values: Vec<NamedFormula>,
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    #[serde(default)]
    pub mean: bool,
    #[serde(default = "two")]
    pub digits: usize,
    pub only: Option<Size>,
}

fn two() -> usize {
    2
}
