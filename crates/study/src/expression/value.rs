//! Numbers by labels.

use super::parse::{Operator, Selector};
use planewise_model::names;

/// Numbers by the values of labels, in the order of the runs they come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vector {
    /// Names of the labels.
    pub labels: Vec<String>,
    /// A value of each label, and the number.
    pub cells: Vec<(Vec<String>, f64)>,
}

impl Vector {
    /// A number without labels.
    pub fn number(value: f64) -> Vector {
        Vector { labels: Vec::new(), cells: vec![(Vec::new(), value)] }
    }

    /// The one number of a vector without labels; none when it is empty.
    ///
    /// # Errors
    /// It has labels left.
    pub fn single(&self) -> Result<Option<f64>, String> {
        if !self.labels.is_empty() {
            return Err(format!(
                "found a number for each {}; allowed: one number (a function such as mean makes one of many, [{}=…] chooses one)",
                self.labels.join(" and "),
                self.labels[0]
            ));
        }
        Ok(self.cells.first().map(|(_, value)| *value))
    }

    /// The place of a label.
    ///
    /// # Errors
    /// It has none of that name.
    pub fn place(&self, label: &str) -> Result<usize, String> {
        let known = || self.labels.iter().map(String::as_str);
        let found = self.labels.iter().position(|own| own == label);
        found.ok_or_else(|| names::unknown("label of the numbers", label, known()).to_string())
    }

    /// The values of a label in the order in which they come.
    pub fn values(&self, place: usize) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for (key, _) in &self.cells {
            if !values.contains(&key[place]) {
                values.push(key[place].clone());
            }
        }
        values
    }

    /// Each number changed; those that are no number any more are left out.
    pub fn map(mut self, change: impl Fn(f64) -> f64) -> Vector {
        self.cells.iter_mut().for_each(|(_, value)| *value = change(*value));
        self.cells.retain(|(_, value)| value.is_finite());
        self
    }

    /// Keeps what a selector says. A label of which one value is chosen goes.
    ///
    /// # Errors
    /// No such label, or a value that no run has.
    pub fn select(&self, selector: &Selector) -> Result<Vector, String> {
        let place = self.place(&selector.label)?;
        let present = self.values(place);
        if matches!(selector.comparison, Operator::Equal) && !present.is_empty() {
            for value in &selector.values {
                if !present.iter().any(|own| same(own, value)) {
                    let kind = "value of the label";
                    let known = present.iter().map(String::as_str);
                    return Err(format!("{}: {}", selector.label, names::unknown(kind, value, known)));
                }
            }
        }
        let keeps = |own: &str| match selector.comparison {
            Operator::Equal => selector.values.iter().any(|value| same(own, value)),
            Operator::Differs => !selector.values.iter().any(|value| same(own, value)),
            comparison => {
                let (own, value) = (label_number(own), label_number(&selector.values[0]));
                own.zip(value).is_some_and(|(own, value)| comparison.apply(own, value) != 0.0)
            }
        };
        let drops = selector.comparison == Operator::Equal && selector.values.len() == 1;
        let kept = self.cells.iter().filter(|(key, _)| keeps(&key[place])).cloned();
        let mut vector = Vector { labels: self.labels.clone(), cells: kept.collect() };
        if drops {
            vector.labels.remove(place);
            vector.cells.iter_mut().for_each(|(key, _)| drop(key.remove(place)));
        }
        Ok(vector)
    }

    /// Two vectors, number by number where the labels that both have are equal. What only one of them has is left out.
    ///
    /// # Errors
    /// Each has a label that the other lacks: then a slip is likelier than a wish for all pairs.
    pub fn combine(&self, other: &Vector, with: impl Fn(f64, f64) -> f64) -> Result<Vector, String> {
        let lacks =
            |one: &Vector, of: &Vector| of.labels.iter().find(|label| !one.labels.contains(label)).cloned();
        let (wide, narrow, turned) = match (lacks(self, other), lacks(other, self)) {
            (Some(more), Some(less)) => {
                return Err(format!(
                    "found numbers by '{less}' beside numbers by '{more}'; allowed: labels of one side that the other has too \
                     (a function such as mean takes one away)"
                ));
            }
            (Some(_), None) => (other, self, true),
            _ => (self, other, false),
        };
        let places: Vec<usize> =
            narrow.labels.iter().map(|label| wide.place(label)).collect::<Result<_, _>>()?;
        let mut cells = Vec::with_capacity(wide.cells.len());
        for (key, value) in &wide.cells {
            let matches = |own: &[String]| own.iter().zip(&places).all(|(own, place)| *own == key[*place]);
            for (_, beside) in narrow.cells.iter().filter(|(own, _)| matches(own)) {
                let result = if turned { with(*beside, *value) } else { with(*value, *beside) };
                if result.is_finite() {
                    cells.push((key.clone(), result));
                }
            }
        }
        Ok(Vector { labels: wide.labels.clone(), cells })
    }

    /// The cells in groups of equal labels other than those at `gone`, in the order in which they come.
    pub fn groups(&self, gone: &[usize]) -> (Vec<String>, Vec<Group<'_>>) {
        let stays: Vec<usize> = (0..self.labels.len()).filter(|place| !gone.contains(place)).collect();
        let labels = stays.iter().map(|place| self.labels[*place].clone()).collect();
        let mut groups: Vec<Group<'_>> = Vec::new();
        for cell in &self.cells {
            let key: Vec<String> = stays.iter().map(|place| cell.0[*place].clone()).collect();
            match groups.iter_mut().find(|group| group.key == key) {
                Some(group) => group.cells.push(cell),
                None => groups.push(Group { key, cells: vec![cell] }),
            }
        }
        (labels, groups)
    }
}

/// Cells with some equal labels.
pub struct Group<'a> {
    /// The values of the labels that stay.
    pub key: Vec<String>,
    /// The cells.
    pub cells: Vec<&'a (Vec<String>, f64)>,
}

/// Whether a label is meant: the same text, or the same number in another notation.
fn same(own: &str, value: &str) -> bool {
    own == value || label_number(own).zip(label_number(value)).is_some_and(|(own, value)| own == value)
}

/// The number that a label stands for: `16`, `0.05`, `4k`, `10g`; with a prefix as in `ncq:32`.
pub fn label_number(label: &str) -> Option<f64> {
    let label = label.rsplit_once(':').map_or(label, |(_, number)| number);
    let units = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];
    let lower = label.to_ascii_lowercase();
    let unit = units.into_iter().find_map(|(unit, bits)| Some((lower.strip_suffix(unit)?, 1u64 << bits)));
    let (digits, factor) = unit.unwrap_or((&lower, 1));
    let plain = digits.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let number: f64 = digits.parse().ok().filter(|_| plain)?;
    Some(number * factor as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expression::parse;
    use crate::expression::{Scope, evaluate};
    use std::collections::BTreeMap;

    fn vector(labels: &[&str], cells: &[(&[&str], f64)]) -> Vector {
        let text = |list: &[&str]| list.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        Vector { labels: text(labels), cells: cells.iter().map(|(key, value)| (text(key), *value)).collect() }
    }

    fn value(text: &str) -> Result<Vector, String> {
        let latency = vector(
            &["volume", "scheduler"],
            &[
                (&["a", "noop"], 10.0),
                (&["a", "piq"], 5.0),
                (&["b", "noop"], 8.0),
                (&["b", "piq"], 6.0),
                (&["c", "noop"], 0.0),
                (&["c", "piq"], 6.0),
            ],
        );
        let depth = vector(&["depth"], &[(&["1"], 1.0), (&["4"], 3.0), (&["16"], 7.0), (&["32"], 6.0)]);
        let named = BTreeMap::from([("latency".to_owned(), latency), ("rate".to_owned(), depth)]);
        evaluate(&parse(text).unwrap(), &Scope { sets: &BTreeMap::new(), named: &named })
    }

    fn single(text: &str) -> f64 {
        value(text).unwrap().single().unwrap().unwrap()
    }

    #[test]
    fn ratios_go_by_equal_labels_and_what_cannot_be_divided_is_left_out() {
        assert_eq!(single("mean(latency[scheduler=piq] / latency[scheduler=noop])"), 0.625);
        assert_eq!(single("count(latency[scheduler=piq] / latency[scheduler=noop])"), 2.0);
        assert_eq!(single("mean((latency / latency[scheduler=noop])[scheduler=piq])"), 0.625);
        assert_eq!(single("2 + 3 * 4 - 6 / 2"), 11.0);
        assert_eq!(single("1 < 2 and not 2 < 1"), 1.0);
    }

    #[test]
    fn functions_reduce_labels() {
        assert_eq!(single("max(rate)"), 7.0);
        assert_eq!(single("argmax(rate over depth)"), 16.0);
        assert_eq!(single("argmin(rate over depth)"), 1.0);
        assert_eq!(single("rises(rate[depth<=16] over depth)"), 1.0);
        assert_eq!(single("rises(rate over depth)"), 0.0);
        assert_eq!(single("sum(latency[scheduler=noop] < 9)"), 2.0);
        assert_eq!(single("share(latency[scheduler=noop] < 9)"), 2.0 / 3.0);
        assert_eq!(
            value("mean(latency by scheduler)").unwrap(),
            vector(&["scheduler"], &[(&["noop"], 6.0), (&["piq"], 17.0 / 3.0)])
        );
        assert_eq!(value("mean(latency over volume)"), value("mean(latency by scheduler)"));
        assert_eq!(single("median(latency[scheduler=piq])"), 6.0);
    }

    #[test]
    fn slips_are_errors() {
        for (text, word) in [
            ("latency[schedular=piq]", "scheduler"),
            ("latency[scheduler=pig]", "piq"),
            ("rate / latency", "'depth'"),
            ("max(latency over volum)", "volume"),
            ("lateny", "latency"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        assert!(value("latency").unwrap().single().is_err());
    }

    #[test]
    fn labels_are_numbers_with_units() {
        assert_eq!(label_number("4k"), Some(4096.0));
        assert_eq!(label_number("ncq:32"), Some(32.0));
        assert_eq!(label_number("0.05"), Some(0.05));
        assert_eq!(label_number("hm_0"), None);
        assert_eq!(label_number("nan"), None);
        assert_eq!(label_number("inf"), None);
    }
}
