//! Names of the files of a study.

use planewise_study::Outcome;

/// The name of its page.
pub(super) fn page(id: &str) -> String {
    format!("{}.html", id_stem(id))
}

/// Names of the files of its figures and then of its tables, without their endings; no two are the same.
pub(super) fn stems(outcome: &Outcome) -> Vec<String> {
    let parts = outcome
        .figures
        .iter()
        .map(|figure| &figure.name)
        .chain(outcome.tables.iter().map(|table| &table.name));
    let mut stems: Vec<String> = Vec::new();
    for part in parts {
        let stem = format!("{}-{}", id_stem(&outcome.id), plain(part));
        let numbered = (2..).map(|number| format!("{stem}-{number}"));
        let free = std::iter::once(stem.clone()).chain(numbered).find(|stem| !stems.contains(stem));
        stems.push(free.expect("there is always a further number"));
    }
    stems
}

fn id_stem(id: &str) -> String {
    match plain(id).as_str() {
        // The index has that name.
        "index" => "index-study".to_owned(),
        other => other.to_owned(),
    }
}

/// Fit for file systems and links alike.
fn plain(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    let plain = plain.trim_start_matches(['.', '-']);
    if plain.is_empty() { "unnamed".to_owned() } else { plain.chars().take(80).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::samples;

    #[test]
    fn names_stay_in_the_directory_and_apart() {
        let mut outcome = samples::outcomes().swap_remove(0);
        outcome.id = "../a b".to_owned();
        outcome.figures[0].name = "x/y".to_owned();
        outcome.figures[1].name = "x y".to_owned();
        outcome.tables[0].name = "x\\y".to_owned();
        assert_eq!(stems(&outcome), ["a-b-x-y", "a-b-x-y-2", "a-b-x-y-3"]);
        assert_eq!(
            [page("index"), page(""), page("piq-fig8")],
            ["index-study.html", "unnamed.html", "piq-fig8.html"]
        );
    }
}
