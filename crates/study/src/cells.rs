//! From the commands of a study, with variables in braces, to the commands that are run.

use crate::file::{Item, RunsEntry, StudyFile, Variable};
use std::collections::BTreeMap;

/// The placeholder of a volume's trace.
pub const TRACE: &str = "trace";

/// What stands in front of the name of a file in braces.
pub const FILE: &str = "file:";

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Place of its set in the study.
    pub set: usize,
    /// The values of the variables that its set goes over.
    pub values: Vec<String>,
    /// The words behind `planewise`.
    pub words: Vec<String>,
}

/// Where what commands read is.
pub trait Places {
    /// What stands for a volume of a family (`piq`, `hm_0`): the look-alike's name, or the path of the real one and whether it is one.
    fn trace(&self, family: &str, volume: &str) -> (String, bool);

    /// The path of a file of a study.
    fn file(&self, study: &str, name: &str) -> String;
}

/// Every volume by its look-alike, every file by its own name.
impl Places for () {
    fn trace(&self, family: &str, volume: &str) -> (String, bool) {
        (format!("{family}-{volume}"), false)
    }

    fn file(&self, _study: &str, name: &str) -> String {
        name.to_owned()
    }
}

/// The variables that a set goes over: those in its command's braces that have several values, in the order of the command.
pub fn axes(entry: &RunsEntry, variables: &BTreeMap<String, Variable>) -> Result<Vec<String>, String> {
    let mut axes: Vec<String> = Vec::new();
    for name in placeholders(&entry.command)? {
        if name.starts_with('*') || name.starts_with(FILE) {
            continue;
        }
        let base = name.split('.').next().unwrap_or(name);
        let base = if base == TRACE && entry.volumes.is_some() { "volume" } else { base };
        let variable = variables.get(base).ok_or_else(|| {
            let known = variables.keys().map(String::as_str);
            format!("runs {}: {}", entry.name, planewise_model::names::unknown("variable", base, known))
        })?;
        if matches!(variable, Variable::List(_)) && !axes.iter().any(|axis| axis == base) {
            axes.push(base.to_owned());
        }
    }
    Ok(axes)
}

/// The commands of a set: each value of each variable with each, the last fastest.
pub fn expand(
    (study, file): (&str, &StudyFile),
    set: usize,
    variables: &BTreeMap<String, Variable>,
    places: &dyn Places,
) -> Result<Vec<Cell>, String> {
    let entry = &file.runs[set];
    let axes = axes(entry, variables)?;
    let lists: Vec<&[Item]> = axes
        .iter()
        .map(|axis| match &variables[axis] {
            Variable::List(items) => items.as_slice(),
            Variable::One(_) => &[],
        })
        .collect();
    let mut chosen: Vec<Vec<&Item>> = vec![Vec::new()];
    for list in lists {
        chosen = chosen
            .iter()
            .flat_map(|begun| list.iter().map(|item| begun.iter().copied().chain([item]).collect()))
            .collect();
    }
    let with = |items: Vec<&Item>| {
        let values = items.iter().map(|item| name_of(item)).collect::<Result<Vec<String>, String>>()?;
        let mut real = false;
        let mut fill = |name: &str| -> Result<String, String> {
            if name == TRACE
                && let Some(family) = &entry.volumes
            {
                let place = axes.iter().position(|axis| axis == "volume");
                let volume = match (place, variables.get("volume")) {
                    (Some(place), _) => values[place].clone(),
                    (None, Some(Variable::One(volume))) => volume.text(),
                    _ => return Err("found no variable 'volume'; allowed: one that names volumes".to_owned()),
                };
                let (trace, is_real) = places.trace(family, &volume);
                real |= is_real;
                return Ok(trace);
            }
            if let Some(name) = name.strip_prefix(FILE) {
                let known = file.files.keys().map(String::as_str);
                return match file.files.contains_key(name) {
                    true => Ok(places.file(study, name)),
                    false => {
                        Err(planewise_model::names::unknown("file of the study", name, known).to_string())
                    }
                };
            }
            if let Some(name) = name.strip_prefix('*') {
                return match variables.get(name) {
                    Some(Variable::List(items)) => {
                        Ok(items.iter().map(name_of).collect::<Result<Vec<_>, _>>()?.join(","))
                    }
                    _ => Err(format!("found {{*{name}}}; allowed: a variable with a list")),
                };
            }
            let (base, field) =
                name.split_once('.').map_or((name, None), |(base, field)| (base, Some(field)));
            let item = axes.iter().position(|axis| axis == base).map(|place| items[place]);
            match (item, field) {
                (Some(Item::Record(record)), Some(field)) => {
                    let known = record.keys().map(String::as_str);
                    let found = record.get(field).map(crate::file::Scalar::text);
                    found.ok_or_else(|| planewise_model::names::unknown("field", field, known).to_string())
                }
                (Some(item), None) => name_of(item),
                (None, None) => match &variables[base] {
                    Variable::One(scalar) => Ok(scalar.text()),
                    Variable::List(_) => Err(format!("found {{{name}}}; allowed: a single value")),
                },
                _ => Err(format!("found {{{name}}}; allowed: a variable of records")),
            }
        };
        let mut words = Vec::new();
        for word in words_of(&entry.command)? {
            let filled = substitute(&word, &mut fill)?;
            // A word that is all variable may stand for several words, or none.
            if word.starts_with('{')
                && word.ends_with('}')
                && word != "{trace}"
                && !word[1..].starts_with(FILE)
                && word.matches('{').count() == 1
            {
                words.extend(filled.split_whitespace().map(str::to_owned));
            } else {
                words.push(filled);
            }
        }
        if real {
            // Real volumes are larger than the devices of the papers.
            words.push("--wrap".to_owned());
        }
        Ok(Cell { set, values, words })
    };
    chosen
        .into_iter()
        .map(with)
        .collect::<Result<_, String>>()
        .map_err(|error| format!("runs {}: {error}", entry.name))
}

/// What an item is called: itself, or the `name` of a record.
pub fn name_of(item: &Item) -> Result<String, String> {
    match item {
        Item::One(scalar) => Ok(scalar.text()),
        Item::Record(record) => match record.get("name") {
            Some(name) => Ok(name.text()),
            None => {
                Err("found a value with fields without 'name'; allowed: a name beside the fields".to_owned())
            }
        },
    }
}

/// The words of a command: separated by blanks, held together by double or single quotes.
fn words_of(command: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None::<char>);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(c),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, _) if c.is_whitespace() => words.extend(word.take()),
            (None, _) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("found a quote that is not closed; allowed: pairs of quotes".to_owned());
    }
    words.extend(word);
    Ok(words)
}

/// What stands in braces, those inside others too: a file's name may have variables in it.
fn placeholders(text: &str) -> Result<Vec<&str>, String> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((_, inner, behind)) = braces(rest)? {
        match inner.contains('{') {
            true => found.extend(placeholders(inner)?),
            false => found.push(inner),
        }
        rest = behind;
    }
    Ok(found)
}

fn substitute(text: &str, fill: &mut dyn FnMut(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut result, mut rest) = (String::new(), text);
    while let Some((before, inner, behind)) = braces(rest)? {
        result += before;
        let name = if inner.contains('{') { substitute(inner, fill)? } else { inner.to_owned() };
        result += &fill(&name)?;
        rest = behind;
    }
    Ok(result + rest)
}

/// What is before, in and behind the first braces.
fn braces(text: &str) -> Result<Option<(&str, &str, &str)>, String> {
    let Some(start) = text.find('{') else { return Ok(None) };
    let mut depth = 0;
    for (place, c) in text[start..].char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 {
            let end = start + place;
            return Ok(Some((&text[..start], &text[start + 1..end], &text[end + 1..])));
        }
    }
    Err("found '{' without '}'; allowed: {VARIABLE}".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(command: &str, volumes: Option<&str>, variables: &str) -> Result<Vec<Cell>, String> {
        let variables: BTreeMap<String, Variable> = toml::from_str(variables).unwrap();
        let head = "title = ''\npaper = 'piq'\nfigure = ''\nabout = ''\n[files]\nj = 'x'\n";
        let runs = "[[runs]]\nname = 'r'\ncommand = ''\n";
        let mut file: StudyFile = toml::from_str(&format!("{head}{runs}")).unwrap();
        (file.runs[0].command, file.runs[0].volumes) = (command.into(), volumes.map(str::to_owned));
        expand(("s", &file), 0, &variables, &())
    }

    #[test]
    fn lists_make_commands_and_the_rest_is_filled_in() {
        let found = cells(
            "compare --trace {trace} --schedulers {*schemes} --requests {n} --gc {gc}",
            Some("gc"),
            "n = 5\nvolume = ['a', 'b']\nschemes = ['x', 'y']\ngc = ['p', 'q']",
        )
        .unwrap();
        let words: Vec<String> = found.iter().map(|cell| cell.words.join(" ")).collect();
        assert_eq!(words[1], "compare --trace gc-a --schedulers x,y --requests 5 --gc q");
        assert_eq!(found.len(), 4);
        assert_eq!(found[2].values, ["b", "p"]);
    }

    #[test]
    fn records_go_together_and_a_variable_may_be_several_words_or_none() {
        let found = cells(
            "run --device d:c={chips.c} {more}",
            None,
            "more = ''\nchips = [{ name = '4', c = 4 }, { name = '8', c = 8 }]",
        )
        .unwrap();
        assert_eq!(found[1].values, ["8"]);
        assert_eq!(found[1].words, ["run", "--device", "d:c=8"]);
        let found = cells("run '{a} b' \"\"", None, "a = 'x y'").unwrap();
        assert_eq!(found[0].words, ["run", "x y b", ""]);
    }

    #[test]
    fn files_may_have_variables_in_their_names() {
        let found = cells("bench {file:{a}-{b}.toml}", None, "a = ['x', 'y']\nb = 'z'");
        assert!(found.unwrap_err().contains("x-z.toml"));
        let found = cells("bench {file:{a}}", None, "a = ['j']").unwrap();
        assert_eq!((found[0].words[1].as_str(), found[0].values.len()), ("j", 1));
    }

    #[test]
    fn slips_are_errors() {
        for (command, variables, word) in [
            ("run {requets}", "requests = 5", "requests"),
            ("run {a", "a = 1", "without '}'"),
            ("run 'a", "", "not closed"),
            ("run {a.x}", "a = [{ name = '1', y = 2 }]", "field"),
            ("run {a}", "a = [{ y = 2 }]", "name"),
            ("run {*a}", "a = 1", "list"),
            ("run {file:k}", "", "file of the study"),
        ] {
            let error = cells(command, None, variables).unwrap_err();
            assert!(error.contains(word), "{command}: {error}");
        }
    }
}
