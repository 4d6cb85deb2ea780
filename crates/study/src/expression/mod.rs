//! Small formulas over the results of runs: `mean(main.read.latency_ns.mean[scheduler=piq] / main.read.latency_ns.mean[scheduler=noop])`.
//!
//! A value is a [`Vector`]: numbers by labels, such as one number for each volume and scheduler; a number without labels is one too.
//! The formulas of a study are written in `docs/studies.md`.

mod functions;
mod parse;
mod value;

pub use parse::{Expression, Selector, parse};
pub use value::{Vector, label_number};

use crate::records::RecordSet;
use std::collections::BTreeMap;

/// What formulas refer to.
pub struct Scope<'a> {
    /// Sets of runs by name.
    pub sets: &'a BTreeMap<String, RecordSet>,
    /// Names given to formulas.
    pub named: &'a BTreeMap<String, Vector>,
}

/// Evaluates a formula.
///
/// # Errors
/// A name that is unknown, labels that do not go together: in words, without the place.
pub fn evaluate(expression: &Expression, scope: &Scope<'_>) -> Result<Vector, String> {
    match expression {
        Expression::Number(value) => Ok(Vector::number(*value)),
        Expression::Path(path) => look_up(path, scope),
        Expression::Select(inner, selectors) => {
            let mut value = evaluate(inner, scope)?;
            for selector in selectors {
                value = value.select(selector)?;
            }
            Ok(value)
        }
        Expression::Negate(inner) => Ok(evaluate(inner, scope)?.map(|value| -value)),
        Expression::Not(inner) => Ok(evaluate(inner, scope)?.map(|value| f64::from(u8::from(value == 0.0)))),
        Expression::Binary(operator, left, right) => {
            let (left, right) = (evaluate(left, scope)?, evaluate(right, scope)?);
            left.combine(&right, |a, b| operator.apply(a, b))
        }
        Expression::Is(path, text) => {
            let (set, rest) = set_of(path, scope)?;
            Ok(set.vector(|record| record.text(rest).map(|found| f64::from(u8::from(found == *text)))))
        }
        Expression::Call { function, arguments, labels } => {
            let arguments: Result<Vec<Vector>, String> =
                arguments.iter().map(|argument| evaluate(argument, scope)).collect();
            functions::call(function, &arguments?, labels.as_ref())
        }
    }
}

fn look_up(path: &str, scope: &Scope<'_>) -> Result<Vector, String> {
    if let Some(value) = scope.named.get(path) {
        return Ok(value.clone());
    }
    let (set, rest) = set_of(path, scope)?;
    Ok(set.vector(|record| record.number(rest)))
}

/// The set of runs that a path begins with, and the rest of it.
pub fn set_of<'a, 'b>(path: &'b str, scope: &Scope<'a>) -> Result<(&'a RecordSet, &'b str), String> {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let known = scope.sets.keys().chain(scope.named.keys()).map(String::as_str);
    match scope.sets.get(name) {
        Some(_) if rest.is_empty() => Err(format!(
            "{name}: found no metric; allowed: {name}.METRIC, such as {name}.read.latency_ns.mean"
        )),
        Some(set) => Ok((set, rest)),
        None => Err(planewise_model::names::unknown("name in a formula", name, known).to_string()),
    }
}
