//! What the source documents published, as `studies/claims.toml` lists it.

use crate::StudyError;
use planewise_model::names;
use std::collections::BTreeMap;

/// The table of claims in the program.
const EMBEDDED: &str = include_str!("../../../studies/claims.toml");

/// All claims, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Claims(Vec<Claim>);

/// A published figure, table or statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// `piq.fig8.piq_r`: document, figure, part.
    pub id: String,
    /// What was published.
    pub what: String,
    /// Its numbers by name; several where the document gives a row.
    pub numbers: BTreeMap<String, Vec<f64>>,
}

impl Claims {
    /// The claims of the five documents.
    pub fn embedded() -> Claims {
        Claims::parse(EMBEDDED, "studies/claims.toml").expect("the table in the program is tested")
    }

    /// Reads a table of claims.
    ///
    /// # Errors
    /// Text that is no TOML, a claim without id or text, an id twice.
    pub fn parse(text: &str, name: &str) -> Result<Claims, StudyError> {
        let wrong = |problem: String| StudyError::File { file: name.to_owned(), problem };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let list = table.get("claim").and_then(toml::Value::as_array);
        let list = list.ok_or_else(|| wrong("found no [[claim]]; allowed: one or more".to_owned()))?;
        let mut claims: Vec<Claim> = Vec::with_capacity(list.len());
        for (place, entry) in list.iter().enumerate() {
            let text = |key: &str| {
                let found = entry.get(key).and_then(toml::Value::as_str).map(str::to_owned);
                found.ok_or_else(|| {
                    wrong(format!("claim {}: found no text '{key}'; allowed: id and what", place + 1))
                })
            };
            let (id, what) = (text("id")?, text("what")?);
            if claims.iter().any(|claim| claim.id == id) {
                return Err(wrong(format!("claim {id}: found twice; allowed: each claim once")));
            }
            let fields = entry.as_table().into_iter().flatten();
            let numbers = fields.filter_map(|(key, value)| Some((key.clone(), numbers(value)?))).collect();
            claims.push(Claim { id, what, numbers });
        }
        Ok(Claims(claims))
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Claim> {
        self.0.iter()
    }

    /// One of them.
    ///
    /// # Errors
    /// None of that name: the error offers the nearest.
    pub fn find(&self, id: &str) -> Result<&Claim, names::UnknownName> {
        let known = || self.0.iter().map(|claim| claim.id.as_str());
        self.0.iter().find(|claim| claim.id == id).ok_or_else(|| names::unknown("claim", id, known()))
    }
}

impl Claim {
    /// A published number: `read_latency`, or `over.1` for the second of a row.
    ///
    /// # Errors
    /// None of that name: the error offers the nearest.
    pub fn number(&self, key: &str) -> Result<f64, names::UnknownName> {
        let (name, place) = match key.rsplit_once('.') {
            Some((name, place)) => (name, place.parse().unwrap_or(usize::MAX)),
            None => (key, 0),
        };
        let known = || self.numbers.keys().map(String::as_str);
        let found = self.numbers.get(name).and_then(|numbers| numbers.get(place)).copied();
        found.ok_or_else(|| names::unknown("number of the claim", key, known()))
    }
}

/// A number, or a row of them.
fn numbers(value: &toml::Value) -> Option<Vec<f64>> {
    let number =
        |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
    match value {
        toml::Value::Array(row) => row.iter().map(number).collect(),
        single => Some(vec![number(single)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_table_is_whole() {
        let claims = Claims::embedded();
        assert!(claims.iter().count() > 50);
        let claim = claims.find("piq.fig8.piq_r").unwrap();
        assert_eq!(claim.number("read_latency"), Ok(0.583));
        assert_eq!(claims.find("gc.fig19.bandwidth").unwrap().number("write.2"), Ok(1.06));
        assert!(claim.number("read_latencie").unwrap_err().to_string().contains("read_latency"));
        assert!(claims.find("piq.fig8.piqr").unwrap_err().to_string().contains("piq.fig8.piq_r"));
    }

    #[test]
    fn wrong_tables_are_named() {
        for (text, word) in [("x", "wrong.toml"), ("a = 1", "[[claim]]"), ("[[claim]]\nid = 'a'", "what")] {
            let error = Claims::parse(text, "wrong.toml").unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
