//! One scheduler, one page (`docs/schedulers`), each tunable on it, and the count that the README gives.

use planewise_sim::host_sched::SCHEDULERS;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The page of a scheduler: its name, with `+` spelled out.
fn page(scheduler: &str) -> String {
    format!("{}.md", scheduler.replace('+', "-plus"))
}

#[test]
fn each_scheduler_has_its_page_and_each_page_its_scheduler() {
    let expected: BTreeSet<String> = SCHEDULERS.iter().map(|entry| page(entry.name)).collect();
    let found: BTreeSet<String> = fs::read_dir(root().join("docs/schedulers"))
        .expect("the folder is there")
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        // Linux's schedulers beside ours, and PASS's paper in a real Linux, with its picture.
        .filter(|name| name.ends_with(".md") && !["kernel.md", "pass-in-linux.md"].contains(&name.as_str()))
        .collect();
    assert_eq!(found, expected);
    for entry in SCHEDULERS {
        let text = fs::read_to_string(root().join("docs/schedulers").join(page(entry.name))).unwrap();
        assert_eq!(text.lines().next(), Some(&*format!("# {}", entry.name)), "its title is its name");
    }
}

#[test]
fn each_tunable_is_named_on_the_page_of_its_scheduler() {
    for entry in SCHEDULERS {
        let text = fs::read_to_string(root().join("docs/schedulers").join(page(entry.name))).unwrap();
        for tunable in entry.tunables {
            assert!(
                text.contains(&format!("`{}`", tunable.name)),
                "{}: {} is not on its page",
                entry.name,
                tunable.name
            );
        }
    }
}

#[test]
fn no_page_names_a_tunable_that_its_scheduler_does_not_have() {
    for entry in SCHEDULERS {
        let text = fs::read_to_string(root().join("docs/schedulers").join(page(entry.name))).unwrap();
        let table = text.lines().skip_while(|line| !line.starts_with("| tunable |")).skip(2);
        for row in table.take_while(|line| line.starts_with('|')) {
            let cell = row.split('|').nth(1).unwrap();
            for name in cell.split('`').skip(1).step_by(2) {
                let known = entry.tunables.iter().any(|tunable| tunable.name == name);
                assert!(known, "{}: it has no tunable '{name}'", entry.name);
            }
        }
    }
}

#[test]
fn links_of_the_pages_lead_to_files() {
    for entry in SCHEDULERS {
        let folder = root().join("docs/schedulers");
        let text = fs::read_to_string(folder.join(page(entry.name))).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            assert!(
                file.is_empty() || file.starts_with("http") || folder.join(file).exists(),
                "{}: {target}",
                entry.name
            );
        }
    }
}

/// Numbers below a hundred in words.
fn in_words(number: usize) -> String {
    const ONES: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 10] =
        ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    match (number / 10, number % 10) {
        (0 | 1, _) => ONES[number].into(),
        (tens, 0) => TENS[tens].into(),
        (tens, ones) => format!("{}-{}", TENS[tens], ONES[ones]),
    }
}

#[test]
fn the_readme_counts_the_schedulers() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let words = in_words(SCHEDULERS.len());
    let capital = words[..1].to_uppercase() + &words[1..];
    assert!(
        readme.contains(&format!("{capital} host schedulers")),
        "README does not say '{capital} host schedulers'"
    );
}
