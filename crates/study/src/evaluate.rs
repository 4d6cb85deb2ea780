//! From the results of a study's commands to its outcome.

use crate::cells::Cell;
use crate::claims::Claims;
use crate::expression::{self, Expression, Scope, Vector, label_number};
use crate::file::{CheckEntry, FigureEntry, NamedFormula, PublishedPoints, Scalar, TableEntry};
use crate::judge::{self, WITHIN};
use crate::outcome::{Axis, Check, Figure, FigureKind, Mark, Outcome, Series, Size, Table};
use crate::records::RecordSet;
use crate::study::Study;
use crate::{StudyError, Verdict};
use std::collections::BTreeMap;

/// Judges a study by what its commands printed, in the order of its cells.
///
/// # Errors
/// Formulas that do not go with the results.
pub fn evaluate(
    study: &Study,
    size: Size,
    cells: &[Cell],
    outputs: Vec<serde_json::Value>,
    sources: Vec<String>,
    claims: &Claims,
) -> Result<Outcome, StudyError> {
    let wrong = |problem: String| study.wrong(problem);
    let mut by_set: BTreeMap<usize, Vec<(Vec<String>, serde_json::Value)>> = BTreeMap::new();
    for (cell, output) in cells.iter().zip(outputs) {
        by_set.entry(cell.set).or_default().push((cell.values.clone(), output));
    }
    let names: Vec<&str> = study.sets().collect();
    let sets: BTreeMap<String, RecordSet> = by_set
        .into_iter()
        .map(|(set, outputs)| (names[set].to_owned(), RecordSet::new(&study.axes(set, size), outputs)))
        .collect();
    let named = name_formulas(study, &sets).map_err(wrong)?;
    let scope = Scope { sets: &sets, named: &named };
    let context = Context { study, scope: &scope };
    let file = &study.file;
    let here = |only: Option<Size>| only.is_none_or(|only| only == size);
    let checks: Result<Vec<Check>, String> = file
        .checks
        .iter()
        .filter(|check| here(check.only))
        .map(|check| context.check(check, claims))
        .collect();
    let figures: Result<Vec<Figure>, String> =
        file.figures.iter().filter(|figure| here(figure.only)).map(|figure| context.figure(figure)).collect();
    let tables: Result<Vec<Table>, String> =
        file.tables.iter().filter(|table| here(table.only)).map(|table| context.table(table)).collect();
    let variables = study.variables(size);
    let shown = |name: &String, variable: &crate::file::Variable| match variable {
        crate::file::Variable::One(one) => (name.clone(), one.text()),
        crate::file::Variable::List(items) => {
            let names: Vec<String> =
                items.iter().filter_map(|item| crate::cells::name_of(item).ok()).collect();
            (name.clone(), names.join(", "))
        }
    };
    Ok(Outcome {
        id: study.id.clone(),
        title: file.title.clone(),
        paper: file.paper,
        figure: file.figure.clone(),
        section: file.section.clone(),
        about: paragraphs(&file.about),
        size,
        variables: variables.iter().map(|(name, variable)| shown(name, variable)).collect(),
        sources,
        checks: checks.map_err(wrong)?,
        figures: figures.map_err(wrong)?,
        tables: tables.map_err(wrong)?,
        commands: study.run_sets(size, cells),
        runs: sets.values().map(|set| set.records().len()).sum(),
        overloaded: sets.iter().flat_map(|(name, set)| overloaded(name, set)).collect(),
    })
}

/// Runs whose trace asked for more than could be served, and the factor of time at which it would not.
fn overloaded(name: &str, set: &RecordSet) -> Vec<String> {
    let marked = set.records().iter().filter_map(|record| {
        let scale = record.number("overload.stable_scale_time")?;
        let labels: Vec<&str> =
            record.labels().iter().map(String::as_str).filter(|label| !label.is_empty()).collect();
        Some(format!("{name} ({}): stable at --scale-time {scale}", labels.join(", ")))
    });
    marked.collect()
}

/// Text in paragraphs, which blank lines separate.
fn paragraphs(text: &str) -> Vec<String> {
    let joined = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
    text.split("\n\n").map(joined).filter(|part| !part.is_empty()).collect()
}

/// The named formulas; each may use those that need it not.
fn name_formulas(
    study: &Study,
    sets: &BTreeMap<String, RecordSet>,
) -> Result<BTreeMap<String, Vector>, String> {
    let mut named = BTreeMap::new();
    let mut left: Vec<(&String, &String)> = study.file.named.iter().collect();
    loop {
        let before = left.len();
        let mut problem = None;
        left.retain(|(name, text)| {
            match expression::evaluate(&study.formulas[*text], &Scope { sets, named: &named }) {
                Ok(value) => {
                    named.insert((*name).clone(), value);
                    false
                }
                Err(error) => {
                    problem = Some(format!("let {name}: {error}"));
                    true
                }
            }
        });
        match problem {
            None => return Ok(named),
            // A name may be missing because its set is not run at this size: whoever uses it says so.
            Some(_) if left.len() == before => {
                let absent = |text: &str| {
                    let mut paths = Vec::new();
                    collect_paths(&study.formulas[text], &mut paths);
                    paths.iter().any(|path| {
                        let head = path.split('.').next().unwrap_or(path);
                        study.sets().any(|set| set == head) && !sets.contains_key(head)
                            || study.file.named.contains_key(*path) && !named.contains_key(*path)
                    })
                };
                return match left.iter().find(|(_, text)| !absent(text)) {
                    None => Ok(named),
                    Some((name, text)) => {
                        let scope = Scope { sets, named: &named };
                        let error =
                            expression::evaluate(&study.formulas[*text], &scope).err().unwrap_or_default();
                        Err(format!("let {name}: {error}"))
                    }
                };
            }
            Some(_) => {}
        }
    }
}

/// Checks that formulas begin with sets of runs or names of the study.
pub fn check_names(study: &Study) -> Result<(), String> {
    let known: Vec<&str> = study.sets().chain(study.file.named.keys().map(String::as_str)).collect();
    for (text, expression) in &study.formulas {
        let mut paths = Vec::new();
        collect_paths(expression, &mut paths);
        for path in paths {
            let head = path.split('.').next().unwrap_or(path);
            if !known.contains(&path) && !study.sets().any(|set| set == head) {
                let unknown =
                    planewise_model::names::unknown("name in a formula", head, known.iter().copied());
                return Err(format!("formula '{text}': {unknown}"));
            }
        }
    }
    Ok(())
}

fn collect_paths<'a>(expression: &'a Expression, paths: &mut Vec<&'a str>) {
    match expression {
        Expression::Number(_) => {}
        Expression::Path(path) | Expression::Is(path, _) => paths.push(path),
        Expression::Select(inner, _) | Expression::Negate(inner) | Expression::Not(inner) => {
            collect_paths(inner, paths)
        }
        Expression::Binary(_, left, right) => {
            collect_paths(left, paths);
            collect_paths(right, paths);
        }
        Expression::Call { arguments, .. } => {
            arguments.iter().for_each(|argument| collect_paths(argument, paths))
        }
    }
}

/// A name, and numbers by the values of a label.
type Line = (String, Vec<(String, f64)>);

struct Context<'a> {
    study: &'a Study,
    scope: &'a Scope<'a>,
}

impl Context<'_> {
    fn vector(&self, text: &str) -> Result<Vector, String> {
        let expression = &self.study.formulas[text];
        expression::evaluate(expression, self.scope).map_err(|error| format!("formula '{text}': {error}"))
    }

    fn single(&self, text: &str) -> Result<Option<f64>, String> {
        self.vector(text)?.single().map_err(|error| format!("formula '{text}': {error}"))
    }

    fn check(&self, entry: &CheckEntry, claims: &Claims) -> Result<Check, String> {
        let of = |error: String| format!("check '{}': {error}", entry.what);
        let measured =
            entry.measured.as_deref().map(|text| self.single(text)).transpose().map_err(of)?.flatten();
        let published = match (&entry.key, &entry.published, &entry.expected) {
            (Some(key), ..) => {
                let claim = entry.claim.as_deref().unwrap_or_default();
                let claim = claims.find(claim).map_err(|error| of(error.to_string()))?;
                Some(claim.number(key).map_err(|error| of(error.to_string()))?)
            }
            (_, Some(Scalar::Number(number)), _) => Some(*number),
            (_, Some(Scalar::Whole(number)), _) => Some(*number as f64),
            (_, _, Some(formula)) => self.single(formula).map_err(of)?,
            _ => None,
        };
        let truth = |text: &Option<String>| -> Result<Option<bool>, String> {
            let found = text.as_deref().map(|text| self.single(text)).transpose().map_err(of)?;
            Ok(found.map(|value| value.is_some_and(|value| value != 0.0)))
        };
        let (holds, direction) = (truth(&entry.holds)?, truth(&entry.direction)?);
        let within = entry.within.unwrap_or(WITHIN);
        let by_number = published.filter(|_| entry.measured.is_some()).map(|published| match measured {
            Some(measured) => judge::verdict(published, measured, entry.neutral, within),
            None => Verdict::Fails,
        });
        let verdict = match (holds, by_number) {
            (Some(true), _) => Some(Verdict::Holds),
            (Some(false), _) => Some(Verdict::Fails),
            (None, by_number) => by_number,
        };
        let verdict = match (verdict, direction) {
            (Some(Verdict::Fails), Some(true)) => Some(Verdict::Direction),
            (Some(Verdict::Direction), Some(false)) => Some(Verdict::Fails),
            (verdict, _) => verdict,
        };
        let verdict = match verdict {
            Some(Verdict::Holds) if entry.self_test => Some(Verdict::SelfTest),
            verdict => verdict,
        };
        let digits = entry.digits.unwrap_or(if entry.unit.is_empty() { 3 } else { 1 });
        let show = |value: Option<f64>| match value {
            Some(value) => format!("{value:.digits$}{}", entry.unit),
            None => "–".to_owned(),
        };
        let words = match &entry.published {
            Some(Scalar::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let shown: Result<Vec<String>, String> =
            entry.shown.iter().map(|text| Ok(show(self.single(text).map_err(of)?))).collect();
        let shown = shown?;
        let is_good = verdict.is_none_or(|verdict| verdict <= Verdict::Holds);
        Ok(Check {
            claim: entry.claim.clone(),
            what: entry.what.clone(),
            published: words.unwrap_or_else(|| show(published)),
            measured: if shown.is_empty() { show(measured) } else { shown.join(" / ") },
            published_value: published,
            measured_value: measured,
            verdict,
            in_linux: entry.in_linux.clone(),
            why: if is_good { Vec::new() } else { paragraphs(&entry.why) },
        })
    }

    fn figure(&self, entry: &FigureEntry) -> Result<Figure, String> {
        let of = |error: String| format!("plot {}: {error}", entry.name);
        let mut figure = Figure {
            name: entry.name.clone(),
            title: entry.title.clone(),
            caption: paragraphs(&entry.caption).join(" "),
            kind: entry.kind,
            x: Axis { label: entry.x_label.clone(), log: entry.log_x, places: None },
            y: Axis { label: entry.y_label.clone(), log: entry.log_y, places: None },
            series: Vec::new(),
            marks: entry.marks.iter().map(|mark| Mark { name: mark.name.clone(), y: mark.y }).collect(),
        };
        if figure.x.label.is_empty() {
            figure.x.label.clone_from(&entry.x);
        }
        if entry.kind == FigureKind::Distribution {
            figure.series = self.distributions(entry).map_err(of)?;
            return Ok(figure);
        }
        let lines = self
            .lines(&entry.x, entry.series.as_deref(), entry.value.as_deref(), &entry.values)
            .map_err(of)?;
        let mut places: Vec<String> = Vec::new();
        for (key, _) in lines.iter().flat_map(|(_, points)| points) {
            if !places.contains(key) {
                places.push(key.clone());
            }
        }
        let named = |text: &String| entry.names.get(text).unwrap_or(text).clone();
        let are_numbers = !entry.places
            && !matches!(entry.kind, FigureKind::Bars | FigureKind::Stacked)
            && places.iter().all(|place| label_number(place).is_some());
        let mut shown: Vec<String> = places.iter().map(named).collect();
        if entry.mean {
            shown.push("mean".to_owned());
        }
        let place_of = |text: &str| {
            let place = places.iter().position(|place| place == text).map(|place| place as f64);
            if are_numbers { label_number(text) } else { place }
        };
        for (name, points) in &lines {
            let mut drawn: Vec<(f64, f64)> =
                points.iter().filter_map(|(key, value)| Some((place_of(key)?, *value))).collect();
            let mut published = match entry.published.get(name) {
                Some(PublishedPoints::Points(points)) => {
                    points.iter().filter_map(|(x, y)| Some((place_of(&x.text())?, *y))).collect()
                }
                _ => Vec::new(),
            };
            if entry.mean && !points.is_empty() && !are_numbers {
                let mean = points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64;
                drawn.push((places.len() as f64, mean));
            }
            if let Some(PublishedPoints::Mean(value)) = entry.published.get(name) {
                if entry.mean {
                    published.push((places.len() as f64, *value));
                } else {
                    figure.marks.push(Mark { name: format!("published {}", named(name)), y: *value });
                }
            }
            drawn.sort_by(|a, b| a.0.total_cmp(&b.0));
            figure.series.push(Series { name: named(name), points: drawn, published });
        }
        if !are_numbers {
            figure.x.places = Some(shown);
        }
        Ok(figure)
    }

    /// Named numbers along a label: of one formula, a line for each value of another label; or a line for each formula.
    fn lines(
        &self,
        x: &str,
        series: Option<&str>,
        value: Option<&str>,
        values: &[NamedFormula],
    ) -> Result<Vec<Line>, String> {
        let along = |vector: &Vector, group: &[&(Vec<String>, f64)]| -> Result<Vec<(String, f64)>, String> {
            let place = vector.place(x)?;
            Ok(group.iter().map(|(key, value)| (key[place].clone(), *value)).collect())
        };
        let only = |vector: &Vector, allowed: &[&str]| match vector
            .labels
            .iter()
            .find(|label| !allowed.contains(&label.as_str()))
        {
            Some(label) => Err(format!("found numbers by '{label}' too; allowed: {}", allowed.join(" and "))),
            None => Ok(()),
        };
        let mut lines = Vec::new();
        if let Some(text) = value {
            let vector = self.vector(text)?;
            let allowed: Vec<&str> = [Some(x), series].into_iter().flatten().collect();
            only(&vector, &allowed)?;
            match series {
                Some(series) => {
                    let place = vector.place(series)?;
                    for name in vector.values(place) {
                        let group: Vec<_> =
                            vector.cells.iter().filter(|(key, _)| key[place] == name).collect();
                        lines.push((name, along(&vector, &group)?));
                    }
                }
                None => {
                    lines.push((String::new(), along(&vector, &vector.cells.iter().collect::<Vec<_>>())?))
                }
            }
        }
        for NamedFormula { name, value } in values {
            let vector = self.vector(value)?;
            only(&vector, &[x])?;
            lines.push((name.clone(), along(&vector, &vector.cells.iter().collect::<Vec<_>>())?));
        }
        Ok(lines)
    }

    /// The distributions at a path such as `main.read.cdf`, one for each run that is left.
    fn distributions(&self, entry: &FigureEntry) -> Result<Vec<Series>, String> {
        let mut series = Vec::new();
        let formulas = entry.value.iter().map(|value| (None, value));
        let formulas = formulas.chain(entry.values.iter().map(|named| (Some(&named.name), &named.value)));
        for (name, text) in formulas {
            let (mut expression, mut selectors) = (&self.study.formulas[text], Vec::new());
            while let Expression::Select(inner, own) = expression {
                selectors.extend(own.iter().cloned());
                expression = inner;
            }
            let Expression::Path(path) = expression else {
                return Err(format!(
                    "found '{text}'; allowed: a distribution such as main.read.cdf, with [label=value]"
                ));
            };
            let (set, rest) = expression::set_of(path, self.scope)?;
            // Selected by number, so that the same rules hold as for numbers.
            let mut place = 0.0;
            let numbered = set.vector(|_| Some(0.0));
            let mut numbered = Vector {
                cells: numbered
                    .cells
                    .into_iter()
                    .map(|(key, _)| {
                        place += 1.0;
                        (key, place - 1.0)
                    })
                    .collect(),
                ..numbered
            };
            for selector in &selectors {
                numbered = numbered.select(selector)?;
            }
            for (key, record) in &numbered.cells {
                let curve = set.records()[*record as usize].at(rest).and_then(serde_json::Value::as_array);
                let scale = entry.x_scale.unwrap_or(1.0);
                let point = |point: &serde_json::Value| {
                    Some((point.get(0)?.as_f64()? * scale, point.get(1)?.as_f64()?))
                };
                let points = curve.into_iter().flatten().filter_map(point).collect();
                let own = entry
                    .series
                    .as_deref()
                    .and_then(|label| numbered.place(label).ok())
                    .map(|place| key[place].clone());
                let own = own.unwrap_or_else(|| key.join(" "));
                let shown = name.cloned().unwrap_or_else(|| entry.names.get(&own).unwrap_or(&own).clone());
                series.push(Series { name: shown, points, published: Vec::new() });
            }
        }
        Ok(series)
    }

    fn table(&self, entry: &TableEntry) -> Result<Table, String> {
        let of = |error: String| format!("table {}: {error}", entry.name);
        let lines = self
            .lines(&entry.rows, entry.columns.as_deref(), entry.value.as_deref(), &entry.values)
            .map_err(of)?;
        let named = |text: &String| entry.names.get(text).unwrap_or(text).clone();
        let mut rows: Vec<String> = Vec::new();
        for (key, _) in lines.iter().flat_map(|(_, points)| points) {
            if !rows.contains(key) {
                rows.push(key.clone());
            }
        }
        let value = |row: &String, points: &[(String, f64)]| {
            points.iter().find(|(key, _)| key == row).map(|(_, value)| *value)
        };
        let mut filled: Vec<(String, Vec<Option<f64>>)> = rows
            .iter()
            .map(|row| (named(row), lines.iter().map(|(_, points)| value(row, points)).collect()))
            .collect();
        if entry.mean {
            let mean = |points: &[(String, f64)]| {
                (!points.is_empty())
                    .then(|| points.iter().map(|(_, value)| value).sum::<f64>() / points.len() as f64)
            };
            filled.push(("mean".to_owned(), lines.iter().map(|(_, points)| mean(points)).collect()));
        }
        let columns = std::iter::once(named(&entry.rows)).chain(lines.iter().map(|(name, _)| named(name)));
        Ok(Table {
            name: entry.name.clone(),
            title: entry.title.clone(),
            columns: columns.collect(),
            rows: filled,
            digits: entry.digits,
        })
    }
}
