//! Functions of formulas.

use super::parse::Labels;
use super::value::{Group, Vector, label_number};
use std::ops::RangeInclusive;

/// What a function does.
#[derive(Clone, Copy)]
enum Kind {
    /// Makes one number of many.
    Reduce(fn(&[f64]) -> Option<f64>),
    /// The number of the label at which something is so.
    Label(fn(&[f64]) -> Option<usize>),
    /// A truth about numbers in the order of one label.
    Order(fn(f64, f64) -> bool),
    /// Changes each number.
    Each(fn(f64) -> f64),
    /// The number that a label stands for.
    Coordinate,
    /// The second where the first is not 0, else the third.
    If,
    /// The lesser or greater of two, by labels.
    Pair(fn(f64, f64) -> f64),
}

/// Every function.
const FUNCTIONS: [(&str, Kind); 27] = [
    ("mean", Kind::Reduce(mean)),
    ("median", Kind::Reduce(median)),
    ("geomean", Kind::Reduce(geometric_mean)),
    ("min", Kind::Reduce(|values| values.iter().copied().reduce(f64::min))),
    ("max", Kind::Reduce(|values| values.iter().copied().reduce(f64::max))),
    ("sum", Kind::Reduce(|values| Some(values.iter().sum()))),
    ("count", Kind::Reduce(|values| Some(values.len() as f64))),
    ("share", Kind::Reduce(|values| mean(&truths(values)))),
    ("all", Kind::Reduce(|values| truth(values, |share| share == 1.0))),
    ("any", Kind::Reduce(|values| truth(values, |share| share > 0.0))),
    ("most", Kind::Reduce(|values| truth(values, |share| share > 0.5))),
    ("argmin", Kind::Label(|values| best(values, |a, b| a < b))),
    ("argmax", Kind::Label(|values| best(values, |a, b| a > b))),
    ("rises", Kind::Order(|a, b| a <= b)),
    ("falls", Kind::Order(|a, b| a >= b)),
    ("abs", Kind::Each(f64::abs)),
    ("ln", Kind::Each(f64::ln)),
    ("log2", Kind::Each(f64::log2)),
    ("exp", Kind::Each(f64::exp)),
    ("sqrt", Kind::Each(f64::sqrt)),
    ("round", Kind::Each(f64::round)),
    ("floor", Kind::Each(f64::floor)),
    ("ceil", Kind::Each(f64::ceil)),
    ("coordinate", Kind::Coordinate),
    ("if", Kind::If),
    ("lesser", Kind::Pair(f64::min)),
    ("greater", Kind::Pair(f64::max)),
];

/// Names of all functions.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    FUNCTIONS.iter().map(|(name, _)| *name).chain(["is"])
}

fn find(name: &str) -> Option<Kind> {
    FUNCTIONS.iter().find(|(own, _)| *own == name).map(|(_, kind)| *kind)
}

/// How many arguments a function takes; none when there is no such function.
pub(super) fn arity(name: &str) -> Option<RangeInclusive<usize>> {
    Some(match find(name)? {
        Kind::If => 3..=3,
        Kind::Pair(_) => 2..=2,
        _ => 1..=1,
    })
}

/// Calls a function.
///
/// # Errors
/// Labels that are not there, or that it needs.
pub(super) fn call(name: &str, arguments: &[Vector], labels: Option<&Labels>) -> Result<Vector, String> {
    let kind = find(name).ok_or_else(|| format!("unknown function '{name}'"))?;
    let value = &arguments[0];
    let gone = match labels {
        None => (0..value.labels.len()).collect(),
        Some(Labels::Over(labels)) => {
            labels.iter().map(|label| value.place(label)).collect::<Result<Vec<_>, _>>()?
        }
        Some(Labels::By(labels)) => {
            let stays = labels.iter().map(|label| value.place(label)).collect::<Result<Vec<_>, _>>()?;
            (0..value.labels.len()).filter(|place| !stays.contains(place)).collect()
        }
    };
    let one = || match gone.as_slice() {
        [place] => Ok(*place),
        _ => Err(format!(
            "{name}: found {} labels to go over; allowed: one ({name}(… over LABEL))",
            gone.len()
        )),
    };
    match kind {
        Kind::Reduce(reduce) => {
            let reduced = |group: &Group<'_>| reduce(&numbers(group));
            // Nothing is 0 things, but has no mean.
            if value.cells.is_empty() && labels.is_none() {
                let cells = reduce(&[]).map(|value| (Vec::new(), value)).into_iter().collect();
                return Ok(Vector { labels: Vec::new(), cells });
            }
            Ok(each_group(value, &gone, reduced))
        }
        Kind::Label(best) => {
            let place = one()?;
            Ok(each_group(value, &gone, |group| label_number(&group.cells[best(&numbers(group))?].0[place])))
        }
        Kind::Order(in_order) => {
            let place = one()?;
            Ok(each_group(value, &gone, |group| {
                let mut points: Vec<(f64, f64)> = group
                    .cells
                    .iter()
                    .filter_map(|(key, value)| Some((label_number(&key[place])?, *value)))
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                Some(f64::from(u8::from(points.windows(2).all(|pair| in_order(pair[0].1, pair[1].1)))))
            }))
        }
        Kind::Each(change) => Ok(value.clone().map(change)),
        Kind::Coordinate => {
            let place = one()?;
            let cells = value.cells.iter();
            let cells = cells.filter_map(|(key, _)| Some((key.clone(), label_number(&key[place])?)));
            Ok(Vector { labels: value.labels.clone(), cells: cells.collect() })
        }
        Kind::If => {
            // Where the other branch has no number, this one still counts.
            let truth = |wanted: bool| {
                move |test: f64, value: f64| if (test != 0.0) == wanted { value } else { f64::NAN }
            };
            let (yes, no) =
                (value.combine(&arguments[1], truth(true))?, value.combine(&arguments[2], truth(false))?);
            if yes.labels != no.labels {
                return Err("if: found branches with other labels; allowed: the same labels".to_owned());
            }
            Ok(Vector { labels: yes.labels, cells: yes.cells.into_iter().chain(no.cells).collect() })
        }
        Kind::Pair(choose) => value.combine(&arguments[1], choose),
    }
}

fn each_group(value: &Vector, gone: &[usize], of: impl Fn(&Group<'_>) -> Option<f64>) -> Vector {
    let (labels, groups) = value.groups(gone);
    let cells = groups
        .iter()
        .filter_map(|group| Some((group.key.clone(), of(group).filter(|value| value.is_finite())?)));
    Vector { labels, cells: cells.collect() }
}

fn numbers(group: &Group<'_>) -> Vec<f64> {
    group.cells.iter().map(|(_, value)| *value).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).map(f64::exp)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        count if count % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

fn truths(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| f64::from(u8::from(*value != 0.0))).collect()
}

/// Whether the share of truths is as it should be; of nothing, nothing is said.
fn truth(values: &[f64], holds: fn(f64) -> bool) -> Option<f64> {
    mean(&truths(values)).map(|share| f64::from(u8::from(holds(share))))
}

/// The first of the best.
fn best(values: &[f64], better: fn(f64, f64) -> bool) -> Option<usize> {
    let mut found = None;
    for (place, value) in values.iter().enumerate() {
        if found.is_none_or(|best: usize| better(*value, values[best])) {
            found = Some(place);
        }
    }
    found
}
