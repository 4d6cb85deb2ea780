//! A study: its file, checked.

use crate::cells::{self, Cell, FILE, Places};
use crate::claims::Claims;
use crate::expression::{self, Expression};
use crate::file::{Item, Scalar, StudyFile, Variable};
use crate::outcome::{Paper, RunSet, Size, place_in_paper};
use crate::{StudyError, evaluate};
use std::collections::BTreeMap;

/// The studies in the program: name and text of each file of `studies/`, by name.
const EMBEDDED: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/studies.rs"));

/// A published figure or table as data.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its name: the stem of its file.
    pub id: String,
    pub(crate) file: StudyFile,
    pub(crate) formulas: BTreeMap<String, Expression>,
}

impl Study {
    /// The studies in the program, by document and name.
    pub fn embedded(claims: &Claims) -> Vec<Study> {
        let read = |(id, text): &(&str, &str)| {
            let study = Study::parse(id, text, &format!("studies/{id}.toml"), claims);
            study.unwrap_or_else(|error| panic!("the studies in the program are tested: {error}"))
        };
        let mut studies: Vec<Study> = EMBEDDED.iter().map(read).collect();
        studies.sort_by_key(|study| (study.paper(), place_in_paper(&study.id)));
        studies
    }

    /// Reads a study; `name` is its file's, for errors, `id` what to call it.
    ///
    /// # Errors
    /// Text that is no study, a claim or a number that is not in the table, a formula that cannot be read.
    pub fn parse(id: &str, text: &str, name: &str, claims: &Claims) -> Result<Study, StudyError> {
        let wrong = |problem: String| StudyError::File { file: name.to_owned(), problem };
        let file: StudyFile =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim().to_owned()))?;
        let mut study = Study { id: id.to_owned(), file, formulas: BTreeMap::new() };
        study.check(claims).map_err(wrong)?;
        Ok(study)
    }

    /// What it shows, in a line.
    pub fn title(&self) -> &str {
        &self.file.title
    }

    /// Its document.
    pub fn paper(&self) -> Paper {
        self.file.paper
    }

    /// What it stands for in the document.
    pub fn figure(&self) -> &str {
        &self.file.figure
    }

    /// The claims that it answers.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        self.file.checks.iter().filter_map(|check| check.claim.as_deref())
    }

    /// Families and volumes that it reads, where real ones can take the place of look-alikes.
    pub fn volumes(&self, size: Size) -> Vec<(String, Vec<String>)> {
        let variables = self.variables(size);
        let volumes = match variables.get("volume") {
            Some(Variable::List(items)) => {
                items.iter().filter_map(|item| cells::name_of(item).ok()).collect()
            }
            Some(Variable::One(one)) => vec![one.text()],
            None => Vec::new(),
        };
        let mut families: Vec<(String, Vec<String>)> = Vec::new();
        for family in self.file.runs.iter().filter_map(|entry| entry.volumes.as_ref()) {
            if !families.iter().any(|(own, _)| own == family) {
                families.push((family.clone(), volumes.clone()));
            }
        }
        families
    }

    /// Files that its commands read, by name.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.file.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The commands that it needs.
    ///
    /// # Errors
    /// Braces that cannot be filled in.
    pub fn cells(&self, size: Size, places: &dyn Places) -> Result<Vec<Cell>, StudyError> {
        let variables = self.variables(size);
        let mut all = Vec::new();
        for (set, entry) in self.file.runs.iter().enumerate() {
            if entry.only.is_none_or(|only| only == size) {
                let cells = cells::expand((&self.id, &self.file), set, &variables, places);
                all.extend(cells.map_err(|problem| self.wrong(problem))?);
            }
        }
        Ok(all)
    }

    /// Its sets of runs, for people.
    pub(crate) fn run_sets(&self, size: Size, cells: &[Cell]) -> Vec<RunSet> {
        let variables = self.variables(size);
        let set_of = |(set, entry): (usize, &crate::file::RunsEntry)| {
            let axes = cells::axes(entry, &variables).unwrap_or_default();
            let values = |axis: &String, between: &str| match &variables[axis] {
                Variable::List(items) => items
                    .iter()
                    .filter_map(|item| cells::name_of(item).ok())
                    .collect::<Vec<_>>()
                    .join(between),
                Variable::One(one) => one.text(),
            };
            let over = axes.iter().map(|axis| (axis.clone(), described(&variables[axis]))).collect();
            let count = cells.iter().filter(|cell| cell.set == set).count();
            // What does not vary is filled in, so that the line can be copied.
            let mut command = entry.command.split_whitespace().collect::<Vec<_>>().join(" ");
            for (name, variable) in &variables {
                match variable {
                    Variable::One(one) => command = command.replace(&format!("{{{name}}}"), &one.text()),
                    Variable::List(_) => {
                        command = command.replace(&format!("{{*{name}}}"), &values(name, ","))
                    }
                }
            }
            for name in self.file.files.keys() {
                command = command.replace(&format!("{{{FILE}{name}}}"), &format!("{}-{name}", self.id));
            }
            if let Some(family) = &entry.volumes {
                command = command.replace("{trace}", &format!("{family}-{{volume}}"));
            }
            RunSet { name: entry.name.clone(), command: format!("planewise {command}"), over, cells: count }
        };
        let entries = self.file.runs.iter().enumerate();
        entries.map(set_of).filter(|set| set.cells > 0).collect()
    }

    /// Names of the sets of runs.
    pub fn sets(&self) -> impl Iterator<Item = &str> {
        self.file.runs.iter().map(|entry| entry.name.as_str())
    }

    /// The variables that a set goes over.
    pub fn axes(&self, set: usize, size: Size) -> Vec<String> {
        cells::axes(&self.file.runs[set], &self.variables(size)).unwrap_or_default()
    }

    pub(crate) fn variables(&self, size: Size) -> BTreeMap<String, Variable> {
        let mut variables = self.file.variables.clone();
        let own = match size {
            Size::Quick => &self.file.quick,
            Size::Full => &self.file.full,
        };
        variables.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        variables
    }

    pub(crate) fn wrong(&self, problem: String) -> StudyError {
        StudyError::File { file: format!("study {}", self.id), problem }
    }

    fn check(&mut self, claims: &Claims) -> Result<(), String> {
        let mut names: Vec<&str> = Vec::new();
        for entry in &self.file.runs {
            if names.contains(&entry.name.as_str()) || self.file.named.contains_key(&entry.name) {
                return Err(format!("runs {}: found twice; allowed: each name once", entry.name));
            }
            names.push(&entry.name);
        }
        let mut texts: Vec<&String> = Vec::new();
        for check in &self.file.checks {
            let of = |problem: String| format!("check '{}': {problem}", check.what);
            if let Some(id) = &check.claim {
                let claim = claims.find(id).map_err(|error| of(error.to_string()))?;
                if let Some(key) = &check.key {
                    claim.number(key).map_err(|error| of(error.to_string()))?;
                }
            } else if check.key.is_some() {
                return Err(of("found 'key' without 'claim'; allowed: both, or 'published'".to_owned()));
            }
            let published = [check.key.is_some(), check.published.is_some(), check.expected.is_some()];
            if published.iter().filter(|given| **given).count() > 1 {
                return Err(of("found more than one of key, published, expected; allowed: one".to_owned()));
            }
            if check.in_linux.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(of(
                    "found an empty 'in_linux'; allowed: what was measured, or no such key".to_owned()
                ));
            }
            if check.measured.is_none() && check.shown.is_empty() {
                return Err(of("found neither 'measured' nor 'shown'; allowed: one of them".to_owned()));
            }
            texts.extend(
                [&check.measured, &check.holds, &check.direction, &check.expected]
                    .into_iter()
                    .flatten()
                    .chain(&check.shown),
            );
        }
        for figure in &self.file.figures {
            if figure.value.is_none() == figure.values.is_empty() {
                return Err(format!(
                    "plot {}: found both or neither of 'value' and 'values'; allowed: one",
                    figure.name
                ));
            }
            texts.extend(figure.value.iter().chain(figure.values.iter().map(|named| &named.value)));
        }
        for table in &self.file.tables {
            if table.value.is_none() == table.values.is_empty() {
                return Err(format!(
                    "table {}: found both or neither of 'value' and 'values'; allowed: one",
                    table.name
                ));
            }
            texts.extend(table.value.iter().chain(table.values.iter().map(|named| &named.value)));
        }
        texts.extend(self.file.named.values());
        for text in texts {
            let parsed = expression::parse(text)?;
            self.formulas.insert(text.clone(), parsed);
        }
        for size in [Size::Quick, Size::Full] {
            let variables = self.variables(size);
            for set in 0..self.file.runs.len() {
                cells::expand((&self.id, &self.file), set, &variables, &())?;
            }
        }
        evaluate::check_names(self)
    }
}

/// The values of a variable for people; records with their fields.
fn described(variable: &Variable) -> String {
    let Variable::List(items) = variable else { return String::new() };
    let one = |item: &Item| match item {
        Item::One(scalar) => scalar.text(),
        Item::Record(fields) => {
            let name = fields.get("name").map(Scalar::text).unwrap_or_default();
            let others = fields.iter().filter(|(key, _)| *key != "name");
            let others: Vec<String> = others.map(|(key, value)| format!("{key} {}", value.text())).collect();
            format!("{name} ({})", others.join(", "))
        }
    };
    items.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer for each claim, and none that nobody asked for.
    #[test]
    fn every_claim_has_a_check() {
        let claims = Claims::embedded();
        let studies = Study::embedded(&claims);
        let answered: Vec<&str> = studies.iter().flat_map(|study| study.claims()).collect();
        let missing: Vec<&str> =
            claims.iter().map(|claim| claim.id.as_str()).filter(|id| !answered.contains(id)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // Every published number is used somewhere.
        for claim in claims.iter() {
            for (name, numbers) in &claim.numbers {
                for place in 0..numbers.len() {
                    let keys = [name.clone(), format!("{name}.{place}")];
                    let used = studies.iter().flat_map(|study| &study.file.checks).any(|check| {
                        check.claim.as_deref() == Some(&claim.id)
                            && check
                                .key
                                .as_ref()
                                .is_some_and(|key| *key == keys[1] || place == 0 && *key == keys[0])
                    });
                    assert!(used, "{}: {name}.{place} is in no check", claim.id);
                }
            }
        }
    }

    /// A study of one check that is known to be read, and the same with another key.
    #[test]
    fn what_was_measured_in_a_real_linux_is_words_in_a_key_of_its_own() {
        let claims = Claims::embedded();
        let read = |key: &str| {
            let text = format!(
                "title = 't'\npaper = 'pass'\nfigure = 'f'\nabout = ''\n[[runs]]\nname = 'main'\ncommand = 'bench --target sim:ssd1 file-benchmark'\n\
                 [[check]]\nwhat = 'w'\npublished = 1.5\nmeasured = 'main.all.iops'\n{key}\n"
            );
            Study::parse("mine", &text, "mine.toml", &claims).map_err(|error| error.to_string())
        };
        assert_eq!(read("").unwrap().file.checks[0].in_linux, None);
        let study = read("in_linux = '1.00, with a barrier 0.96'").unwrap();
        assert_eq!(study.file.checks[0].in_linux.as_deref(), Some("1.00, with a barrier 0.96"));
        let error = read("in_linux = ' '").err().unwrap();
        assert!(error.contains("check 'w'") && error.contains("empty 'in_linux'"), "{error}");
        let error = read("in_unix = '1.00'").err().unwrap();
        assert!(error.contains("in_unix") && error.contains("in_linux"), "{error}");
    }

    #[test]
    fn the_studies_in_the_program_are_read() {
        let claims = Claims::embedded();
        for (id, text) in EMBEDDED {
            Study::parse(id, text, &format!("studies/{id}.toml"), &claims)
                .unwrap_or_else(|error| panic!("{error}"));
        }
    }
}
