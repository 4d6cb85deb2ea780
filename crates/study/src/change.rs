//! Other values for a study's variables: one's own traces in a league, fewer requests.

use crate::file::{Item, Scalar, Variable};
use crate::{Study, StudyError};
use planewise_model::names;
use serde::Deserialize;

impl Study {
    /// Gives a variable another value, at both sizes.
    ///
    /// `change` is `NAME=VALUE`. The value is written as in a study's file; a bare word is a text. Where the variable has several
    /// values, one is a list of one, and records need the fields that the others have.
    ///
    /// # Errors
    /// No `=`, a variable that the study does not have, a value that cannot be read or is of another kind.
    pub fn change(&mut self, change: &str) -> Result<(), StudyError> {
        self.apply(change).map_err(|problem| StudyError::Change(format!("{change}: {problem}")))
    }

    fn apply(&mut self, change: &str) -> Result<(), String> {
        let Some((name, value)) = change.split_once('=') else {
            return Err("found no '='; allowed: NAME=VALUE".to_owned());
        };
        let (name, value) = (name.trim(), value.trim());
        let file = &self.file;
        let Some(old) = [&file.full, &file.quick, &file.variables].iter().find_map(|of| of.get(name)) else {
            let known = [&file.variables, &file.quick, &file.full];
            let mut known: Vec<&str> = known.iter().flat_map(|of| of.keys()).map(String::as_str).collect();
            known.sort_unstable();
            known.dedup();
            return Err(format!("study {}: {}", self.id, names::unknown("variable", name, known)));
        };
        let new = read(value)?;
        let new = match (old, new) {
            (Variable::List(old), new) => {
                let new = match new {
                    Variable::List(items) => items,
                    Variable::One(one) => vec![Item::One(one)],
                };
                fits(old, &new)?;
                Variable::List(new)
            }
            (Variable::One(_), Variable::List(_)) => {
                return Err(format!("found a list; allowed: one value, as the study says of {name}"));
            }
            (Variable::One(_), new) => new,
        };
        self.file.quick.remove(name);
        self.file.full.remove(name);
        self.file.variables.insert(name.to_owned(), new);
        Ok(())
    }
}

/// A value as TOML, or a bare word.
fn read(value: &str) -> Result<Variable, String> {
    let is_bare = !value.is_empty() && !value.starts_with(['[', '{', '"', '\'']);
    let parsed = value.parse::<toml::Value>();
    let value = match parsed {
        Ok(value) => value,
        Err(_) if is_bare => toml::Value::String(value.to_owned()),
        Err(error) => return Err(format!("found no TOML value: {}", error.message())),
    };
    // A record alone is a list of one.
    let value = if value.is_table() { toml::Value::Array(vec![value]) } else { value };
    Variable::deserialize(value).map_err(|_| {
        "found a value of no known kind; allowed: a text, a number, or a list of them or of records { name = \"…\", … }".to_owned()
    })
}

/// Whether new items can take the place of old ones: there are some, each has the fields that the others had, and a name of its own.
fn fits(old: &[Item], new: &[Item]) -> Result<(), String> {
    if new.is_empty() {
        return Err("found an empty list; allowed: at least one value".to_owned());
    }
    let mut seen: Vec<String> = Vec::new();
    for item in new {
        match (old.first(), item) {
            (Some(Item::Record(old)), Item::Record(new)) => {
                if let Some(missing) = old.keys().find(|field| !new.contains_key(*field)) {
                    return Err(format!(
                        "found a record without '{missing}'; allowed: all of {}",
                        fields(old)
                    ));
                }
                if let Some(unknown) = new.keys().find(|field| !old.contains_key(*field)) {
                    let known = old.keys().map(String::as_str);
                    return Err(names::unknown("field", unknown, known).to_string());
                }
            }
            (Some(Item::Record(old)), Item::One(found)) => {
                return Err(format!("found '{}'; allowed: records with {}", found.text(), fields(old)));
            }
            (_, Item::Record(_)) => {
                return Err("found a record; allowed: texts or numbers, as in the study".to_owned());
            }
            (_, Item::One(_)) => {}
        }
        let name = crate::cells::name_of(item)?;
        if seen.contains(&name) {
            return Err(format!("found '{name}' twice; allowed: each value once"));
        }
        seen.push(name);
    }
    Ok(())
}

fn fields(record: &std::collections::BTreeMap<String, Scalar>) -> String {
    record.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::outcome::Size;
    use crate::{Claims, Study};

    fn study() -> Study {
        let text = "title = ''\npaper = 'analysis'\nfigure = ''\nabout = ''
            [variables]\nn = 5\nscheduler = ['noop', 'rws']
            [quick]\ntrace = [{ name = 'a', options = '--trace a' }]
            [full]\ntrace = [{ name = 'a', options = '--trace a' }, { name = 'b', options = '--trace b' }]
            [[runs]]\nname = 'r'\ncommand = 'compare {trace.options} --requests {n} --schedulers {*scheduler}'";
        Study::parse("s", text, "s.toml", &Claims::embedded()).unwrap()
    }

    fn words(study: &Study, size: Size) -> Vec<String> {
        study.cells(size, &()).unwrap().iter().map(|cell| cell.words.join(" ")).collect()
    }

    #[test]
    fn a_change_holds_at_both_sizes() {
        let mut study = study();
        study.change("n=7").unwrap();
        study.change("scheduler = piq").unwrap();
        study.change("trace=[{ name = 'c', options = '--trace c.csv --format spc' }]").unwrap();
        for size in [Size::Quick, Size::Full] {
            let expected = "compare --trace c.csv --format spc --requests 7 --schedulers piq";
            assert_eq!(words(&study, size), [expected]);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name_and_changes_nothing() {
        for (change, said) in [
            ("n", "no '='"),
            ("rates=1", "unknown variable 'rates'"),
            ("scheduler=[", "no TOML value"),
            ("scheduler=[]", "empty list"),
            ("scheduler=['a', 'a']", "'a' twice"),
            ("n=[1, 2]", "a list"),
            ("trace=pgbench", "records with name, options"),
            ("trace=[{ name = 'c' }]", "without 'options'"),
            ("trace=[{ name = 'c', option = 'x', options = 'y' }]", "did you mean 'options'"),
            ("n=[[1]]", "no known kind"),
            ("scheduler=[{ name = 'a' }]", "a record"),
        ] {
            let mut changed = study();
            let error = changed.change(change).unwrap_err().to_string();
            assert!(error.contains(said) && error.starts_with("--set"), "{change}: {error}");
            assert_eq!(words(&changed, Size::Full), words(&study(), Size::Full), "{change}");
        }
    }
}
