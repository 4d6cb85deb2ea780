//! What came of a study: everything its page shows, as plain values.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A study that was run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the study, its file's stem: `piq-fig8`. Names the page and all files beside it.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// The source document.
    pub paper: Paper,
    /// What it stands for there: `Figures 8 to 11`, `Table III`.
    pub figure: String,
    /// Section of the document: `V.B`.
    pub section: String,
    /// What is measured and how, paragraphs.
    pub about: Vec<String>,
    /// Size it was run at.
    pub size: Size,
    /// What the size sets: `requests`, `200000`.
    pub variables: Vec<(String, String)>,
    /// Which traces or workloads served, in sentences: `hm_0 … usr_0: look-alikes made from Table II`.
    pub sources: Vec<String>,
    /// The numbers, in the order of the file.
    pub checks: Vec<Check>,
    /// The plots.
    pub figures: Vec<Figure>,
    /// Tables of numbers without a plot.
    pub tables: Vec<Table>,
    /// The runs behind it as command lines, one for each set of runs, with braces where they vary.
    pub commands: Vec<RunSet>,
    /// Runs behind it, those from the cache included.
    pub runs: usize,
    /// Of these, those whose trace asked for more than could be served, by set and labels: their latencies are those of a backlog.
    pub overloaded: Vec<String>,
}

/// Where a study stands within its document: numbers in its name count as numbers, so that figure 3 comes before figure 13.
pub fn place_in_paper(id: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for c in id.chars() {
        let place = parts.len() - 1;
        let part = &mut parts[place];
        match c.to_digit(10) {
            Some(digit) => part.1 = part.1.saturating_mul(10).saturating_add(u64::from(digit)),
            None if in_number => parts.push((c.to_string(), 0)),
            None => part.0.push(c),
        }
        in_number = c.is_ascii_digit();
    }
    parts
}

/// A source document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Parallel issue queuing, IEEE TCAD 2017.
    Piq,
    /// Garbage collection through idle chips, ACM TODAES.
    Gc,
    /// Parallelism-aware scheduling of regions, JZUS-C 2014.
    Pass,
    /// Internal parallelism of SSDs, ACM TOS 2016.
    Chen,
    /// No paper: closed forms that the model must meet.
    Analysis,
}

impl Paper {
    /// All of them, in the order of the index.
    pub const ALL: [Paper; 5] = [Paper::Piq, Paper::Gc, Paper::Pass, Paper::Chen, Paper::Analysis];

    /// As files and claims name it.
    pub fn name(self) -> &'static str {
        match self {
            Paper::Piq => "piq",
            Paper::Gc => "gc",
            Paper::Pass => "pass",
            Paper::Chen => "chen",
            Paper::Analysis => "analysis",
        }
    }

    /// Heading of its part of the index.
    pub fn heading(self) -> &'static str {
        match self {
            Paper::Piq => "Parallel issue queuing (PIQ)",
            Paper::Gc => "Garbage collection through idle chips",
            Paper::Pass => "Scheduling by regions (PASS)",
            Paper::Chen => "Internal parallelism of SSDs",
            Paper::Analysis => "Closed forms",
        }
    }

    /// Where it was published.
    pub fn citation(self) -> &'static str {
        match self {
            Paper::Piq => {
                "C. Gao et al.: Exploiting Parallelism for Access Conflict Minimization in Flash-based Solid State Drives, IEEE TCAD (2017)"
            }
            Paper::Gc => {
                "C. Gao et al.: Exploiting Chip Idleness for Minimizing Garbage Collection Induced Chip Access Conflict on SSDs, ACM TODAES"
            }
            Paper::Pass => {
                "PASS: an optimized I/O scheduler for flash-based SSDs, Journal of Zhejiang University Science C (2014)"
            }
            Paper::Chen => {
                "F. Chen, B. Hou, R. Lee: Internal Parallelism of Flash Memory-Based Solid-State Drives, ACM TOS (2016)"
            }
            Paper::Analysis => "what follows from the design of the model",
        }
    }
}

/// How much a study runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Enough to see the shape.
    Quick,
    /// As much as the paper did.
    Full,
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Size::Quick => "quick",
            Size::Full => "full",
        })
    }
}

/// How a measured number stands to a published one, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The method finds what the study itself put into a drive, as the paper's drives are not known: nothing published is confirmed by
    /// that. One that fails is [`Verdict::Fails`].
    SelfTest,
    /// As published, within ten points or ten per cent, and on the same side of no effect.
    Holds,
    /// The same direction, another size.
    Direction,
    /// Not as published.
    Fails,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::SelfTest => "self-test passed",
            Verdict::Holds => "holds",
            Verdict::Direction => "holds in direction",
            Verdict::Fails => "does not hold",
        }
    }
}

/// A number or a statement, published and measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The claim it belongs to (`piq.fig8.piq_r`); none for what the document does not say.
    pub claim: Option<String>,
    /// What is measured.
    pub what: String,
    /// As published, with its unit: `0.583`, `25.9 MB/s`, `13 of 15`; a dash when nothing was.
    pub published: String,
    /// As measured, alike.
    pub measured: String,
    /// The published number, where it is one.
    pub published_value: Option<f64>,
    /// The measured number; none when nothing could be measured.
    pub measured_value: Option<f64>,
    /// None for what nobody published.
    pub verdict: Option<Verdict>,
    /// What was measured of this in a real Linux, as the study's file has it.
    pub in_linux: Option<String>,
    /// Why it comes out otherwise, paragraphs; empty when it holds or nobody knows.
    pub why: Vec<String>,
}

/// A set of runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSet {
    /// Its name in the study.
    pub name: String,
    /// The command with variables in braces.
    pub command: String,
    /// What the variables stand for: `volume`, `hm_0, hm_1, prn_0`.
    pub over: Vec<(String, String)>,
    /// How many commands that makes.
    pub cells: usize,
}

/// A plot in the form that the paper gave it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Names its files within the study: `read-latency`.
    pub name: String,
    /// Above the plot.
    pub title: String,
    /// Below it: what to see. Empty for none.
    pub caption: String,
    /// Form.
    pub kind: FigureKind,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// What is drawn, in the order of the legend.
    pub series: Vec<Series>,
    /// Published numbers that belong to no single point: lines across the plot.
    pub marks: Vec<Mark>,
}

/// Form of a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FigureKind {
    /// Bars, a group for each place of the x axis, a bar of each series.
    Bars,
    /// The series on top of one another, a bar for each place.
    Stacked,
    /// Lines with markers over places or numbers.
    Lines,
    /// Cumulative distributions: lines without markers, y from 0 to 1, drawn as steps.
    Distribution,
}

/// An axis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Axis {
    /// What it shows, with its unit: `queue depth`, `MB/s`, `latency over NOOP`.
    pub label: String,
    /// Whether it is logarithmic; only for numbers. The shares of a distribution are stretched towards the tail then.
    pub log: bool,
    /// Names of the places when it has places and no numbers: points then have the place's index as their coordinate.
    pub places: Option<Vec<String>>,
}

/// A line, or the bars of one colour.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// `[x, y]`, rising in x; a place without a value is missing.
    pub points: Vec<(f64, f64)>,
    /// What the document gives for the same places, where it gives numbers: drawn as open markers beside or on top.
    pub published: Vec<(f64, f64)>,
}

/// A published number across the plot.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mark {
    /// What it is: `published mean of PIQ`.
    pub name: String,
    /// Its place on the y axis.
    pub y: f64,
}

/// A table of numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// Names its file within the study.
    pub name: String,
    /// Above it.
    pub title: String,
    /// Names of the columns; the first is that of the rows.
    pub columns: Vec<String>,
    /// Name and numbers of each row; none where there is none.
    pub rows: Vec<(String, Vec<Option<f64>>)>,
    /// Digits behind the point.
    pub digits: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_come_in_the_order_of_their_numbers() {
        let mut ids = ["piq-fig13", "piq-examples", "piq-fig3", "pass-sec4-4", "pass-fig2", "piq-fig1"];
        ids.sort_by_key(|id| place_in_paper(id));
        assert_eq!(ids, ["pass-fig2", "pass-sec4-4", "piq-examples", "piq-fig1", "piq-fig3", "piq-fig13"]);
    }
}
