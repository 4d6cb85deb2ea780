//! A probe as one self-contained page.

use super::rows::{self, Group};
use crate::format::{self, ABSENT};
use crate::plot::curves;
use minijinja::{Environment, Value, context};
use planewise_io::probe::file::{ProbeFile, Status};
use planewise_io::probe::interference::{Interference, PATTERNS};
use planewise_io::probe::mapping::Mapping;
use planewise_io::probe::{Curve, Findings, STAGES};
use planewise_model::Bytes;
use serde::Serialize;

/// The page. `profile` is the device profile that was made of the findings, empty when none was. The same file gives the same bytes.
pub fn html(file: &ProbeFile, profile: &str) -> String {
    let mut environment = Environment::new();
    // The name ends in .html: every value is escaped unless marked as safe.
    environment
        .add_template("probe.html", include_str!("../../templates/probe.html"))
        .expect("the template is tested");
    let findings = &file.findings;
    let subject = &findings.subject;
    let page = environment.get_template("probe.html").expect("just added");
    page.render(context! {
        style => Value::from_safe_string(include_str!("../../templates/report.css").to_owned()),
        title => format!("What is inside {}", format::one_line(&subject.target, 80)),
        incomplete => file.status != Status::Complete,
        problem => &file.problem,
        summary => summary(findings),
        groups => rows::groups(findings).iter().map(GroupOfPage::from).collect::<Vec<_>>(),
        missing => rows::missing(findings).iter().map(|(cause, what)| (*cause, what.join("; "))).collect::<Vec<_>>(),
        hints => rows::hints(findings),
        interference => findings.interference.as_ref().map(Matrix::from),
        figures => figures(findings),
        stages => stages(findings),
        totals => totals(findings),
        setup => setup(file),
        profile => profile,
        command => &file.command,
        generator => &file.generator,
        format_version => file.format,
    })
    .expect("the template takes any findings: it is rendered for whole, partial and empty ones in the tests")
}

#[derive(Serialize)]
struct GroupOfPage {
    title: &'static str,
    rows: Vec<RowOfPage>,
}

#[derive(Serialize)]
struct RowOfPage {
    name: &'static str,
    value: Option<String>,
    sure: String,
    statistic: String,
    reason: String,
}

impl From<&Group> for GroupOfPage {
    fn from(group: &Group) -> GroupOfPage {
        let row = |row: &rows::Row| RowOfPage {
            name: row.name,
            value: row.value.clone(),
            sure: row.sure(),
            statistic: row.statistic.clone(),
            reason: row.reason.clone(),
        };
        GroupOfPage { title: group.title, rows: group.rows.iter().map(row).collect() }
    }
}

/// Table II of the paper.
#[derive(Serialize)]
struct Matrix {
    request: String,
    patterns: [&'static str; 4],
    rows: Vec<MatrixRow>,
}

#[derive(Serialize)]
struct MatrixRow {
    name: &'static str,
    alone: String,
    cells: Vec<MatrixCell>,
}

#[derive(Serialize)]
struct MatrixCell {
    rate: String,
    ratio: String,
    class: &'static str,
}

/// What is left of a rate counts as a loss, or as much of one, below these.
const LOSS: f64 = 0.8;
const GREAT_LOSS: f64 = 0.5;

impl From<&Interference> for Matrix {
    fn from(of: &Interference) -> Matrix {
        let rows = PATTERNS.iter().enumerate().map(|(row, name)| MatrixRow {
            name,
            alone: format::three_digits(of.alone[row]),
            cells: of.together[row]
                .iter()
                .map(|pair| MatrixCell {
                    rate: format::three_digits(pair[0]),
                    ratio: format::ratio(pair[0], of.alone[row]).unwrap_or_else(|| ABSENT.to_owned()),
                    class: match pair[0] / of.alone[row] {
                        share if share < GREAT_LOSS => "great-loss",
                        share if share < LOSS => "loss",
                        _ => "",
                    },
                })
                .collect(),
        });
        Matrix { request: rows::size(Bytes(of.request_bytes)), patterns: PATTERNS, rows: rows.collect() }
    }
}

#[derive(Serialize)]
struct Figure {
    heading: String,
    svg: Option<Value>,
}

fn figures(findings: &Findings) -> Vec<Figure> {
    findings.curves.iter().map(|(_, curve)| figure(curve)).collect()
}

fn figure(curve: &Curve) -> Figure {
    let lines: Vec<curves::Curve<'_>> =
        curve.lines.iter().map(|(name, points)| curves::Curve { name, points }).collect();
    let [x, y] = [&curve.x, &curve.y].map(|axis| rows::in_units(axis));
    let svg = curves::plot(&curve.title, &x, &y, &lines).map(Value::from_safe_string);
    Figure { heading: curve.title.clone(), svg }
}

/// Name, what, time, reads, written.
fn stages(findings: &Findings) -> Vec<[String; 5]> {
    let stages = findings.stages.iter().map(|stage| {
        let what = STAGES.iter().find(|entry| entry.name == stage.name).map_or("", |entry| entry.what);
        [
            stage.name.clone(),
            what.to_owned(),
            format::time(stage.seconds * 1e9),
            format::count(stage.reads),
            rows::size(stage.written),
        ]
    });
    stages.collect()
}

/// Time, reads, written of all stages.
fn totals(findings: &Findings) -> [String; 3] {
    let seconds: f64 = findings.stages.iter().map(|stage| stage.seconds).sum();
    let reads = findings.stages.iter().map(|stage| stage.reads).sum();
    let written = findings.stages.iter().map(|stage| stage.written.0).sum();
    [format::time(seconds * 1e9), format::count(reads), rows::size(Bytes(written))]
}

fn setup(file: &ProbeFile) -> Vec<(&'static str, String)> {
    let subject = &file.findings.subject;
    let mut rows = vec![
        ("target", subject.target.clone()),
        ("kind", format!("{}, served by {}", subject.kind, subject.engine)),
        ("capacity", rows::size(subject.capacity)),
        ("blocks", rows::size(Bytes(u64::from(subject.block_bytes)))),
        (
            "area",
            format!("{} from byte {} on", rows::size(subject.area), format::count(subject.area_start.0)),
        ),
        ("operations at a time", format!("{} at most", subject.depth)),
        ("writes", if subject.writes { "allowed" } else { "not allowed" }.to_owned()),
        ("probe", if subject.quick { "short" } else { "full" }.to_owned()),
        ("seed", subject.seed.to_string()),
    ];
    if let Some(simulated) = &file.simulated {
        rows.push(("condition", simulated.condition.clone()));
    }
    rows
}

/// What matters, in sentences.
fn summary(findings: &Findings) -> Vec<String> {
    let mut sentences = Vec::new();
    let chunk = findings.chunk.as_ref().and_then(|chunk| chunk.value);
    if let Some(domains) = &findings.domains {
        let pieces = chunk.map_or_else(
            || "The size of its chunks is undetermined".to_owned(),
            |size| format!("Data are spread in chunks of {}", rows::size(size)),
        );
        let over = match (domains.degree.value, domains.sub_domains.value, domains.units.value) {
            (Some(degree), Some(sub), Some(units)) => {
                format!("{degree} domains of {sub} units each, {units} units in all")
            }
            (_, _, Some(units)) => format!("{units} units; which of them share a bus is undetermined"),
            _ => "domains that are undetermined".to_owned(),
        };
        let is_known = chunk.is_some() || domains.units.value.is_some();
        sentences.push(match is_known {
            true => format!("{pieces}, over {over}."),
            false => "How data are spread is undetermined: neither chunks nor domains showed from outside."
                .to_owned(),
        });
    }
    match findings.mapping.as_ref().map(|mapping| mapping.value) {
        Some(Some(Mapping::Static)) => {
            sentences.push("Addresses decide where data go (static mapping).".into())
        }
        Some(Some(Mapping::WriteOrder)) => {
            sentences.push("The order of the writes decides where data go (write-order mapping).".into());
        }
        Some(Some(Mapping::Dynamic)) => {
            sentences.push("Data go to whatever units are idle (dynamic mapping).".into());
        }
        Some(None) => sentences.push("What decides where data go is undetermined.".into()),
        None => {}
    }
    if let Some(of) = &findings.latencies {
        let mut text = format!("On an idle device a read of a block takes {}", format::time(of.block_read));
        if let Some(write) = of.chunk_write {
            text += &format!(", a write of a page {}", format::time(write));
        }
        sentences.push(text + ".");
    }
    if let Some(of) = &findings.parallelism {
        let grows = |what: &str, depth: Option<u32>| match depth {
            Some(depth) => format!("Throughput of {what} grows up to {depth} at a time."),
            None => format!("Up to how many {what} at a time throughput grows is undetermined."),
        };
        sentences.push(grows("reads", of.reads.value));
        if findings.subject.writes {
            sentences.push(grows("writes", of.writes.value));
        }
    }
    if let Some(volume) = findings.collection.as_ref().and_then(|of| of.volume.value) {
        let text =
            format!("After {} of random writes garbage collection slows them down.", rows::size(volume));
        sentences.push(text);
    }
    let unknown: Vec<&str> = rows::groups(findings)
        .iter()
        .flat_map(|group| &group.rows)
        .filter(|row| row.value.is_none())
        .map(|row| row.name)
        .collect();
    if !unknown.is_empty() {
        sentences.push(format!("Undetermined, with the reasons below: {}.", unknown.join(", ")));
    }
    let [time, reads, written] = totals(findings);
    sentences.push(format!("It took {time} of the device's time, {reads} reads and {written} of writes."));
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use planewise_io::probe::file::Simulated;
    use planewise_io::probe::{FORMAT, Finding, Stage, Subject};

    fn file(findings: Findings) -> ProbeFile {
        ProbeFile {
            format: FORMAT,
            generator: "planewise".into(),
            status: Status::Complete,
            problem: String::new(),
            simulated: Some(Simulated { profile: String::new(), condition: "filled".into() }),
            command: "planewise probe 'a b'".into(),
            findings,
        }
    }

    #[test]
    fn an_empty_probe_is_a_page_too() {
        let page = html(&file(Findings::default()), "");
        assert!(page.contains("What is inside") && !page.contains("<script"), "{page}");
    }

    #[test]
    fn names_and_reasons_are_escaped_and_a_partial_probe_says_so() {
        let subject = Subject { target: "<b>".into(), ..Subject::default() };
        let curve = Curve {
            title: "a<b".into(),
            x: "n".into(),
            y: "us".into(),
            lines: vec![("l".into(), vec![(1.0, 2.0)])],
        };
        let findings = Findings {
            subject,
            chunk: Some(Finding::undetermined("x<y".into(), "because <i>")),
            stages: vec![Stage { name: "chunk".into(), seconds: 1.5, reads: 12_345, written: Bytes(0) }],
            curves: vec![("chunk".into(), curve)],
            ..Findings::default()
        };
        let mut file = file(findings);
        file.status = Status::Failed;
        file.problem = "it is <gone>".into();
        let page = html(&file, "");
        for (raw, escaped) in [("<b>", "&lt;b&gt;"), ("<i>", "&lt;i&gt;"), ("<gone>", "&lt;gone&gt;")] {
            assert!(!page.contains(raw) && page.contains(escaped), "{raw}");
        }
        for words in ["Incomplete", "undetermined", "12,345", "<svg viewBox"] {
            assert!(page.contains(words), "{words}");
        }
    }
}
