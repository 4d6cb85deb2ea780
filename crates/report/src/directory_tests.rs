use super::*;
use crate::samples;

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_new_directory_holds_setup_results_report_and_extras_and_nothing_lies_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("deep/er/run");
    let results = samples::six_schedulers();
    write_run_directory(&dir, &results, &[("timeline.json", b"[]")], Overwrite::Never).unwrap();
    assert_eq!(names_in(&dir), ["config.toml", "report.html", "results.json", "timeline.json"]);
    assert_eq!(names_in(dir.parent().unwrap()), ["run"]);
    let json = fs::read_to_string(dir.join("results.json")).unwrap();
    assert_eq!(serde_json::from_str::<Results>(&json).unwrap(), results);
    let config: toml::Table = fs::read_to_string(dir.join("config.toml")).unwrap().parse().unwrap();
    assert_eq!(config["device"]["geometry"]["channels"].as_integer(), Some(8));
    assert_eq!(config["trace"]["name"].as_str(), Some("fin1"));
    assert_eq!(config["options"]["queue"].as_str(), Some("64"));
}

#[test]
fn an_earlier_run_is_kept_without_force_and_replaced_as_a_whole_with_it() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    let mut results = samples::six_schedulers();
    write_run_directory(&dir, &results, &[("old.txt", b"old")], Overwrite::Never).unwrap();
    results.setup.trace.name = "second".to_owned();
    let error = write_run_directory(&dir, &results, &[], Overwrite::Never).unwrap_err().to_string();
    assert!(error.contains("run: holds an earlier run") && error.contains("--force"), "{error}");
    assert!(dir.join("old.txt").exists());
    write_run_directory(&dir, &results, &[], Overwrite::EarlierRun).unwrap();
    assert_eq!(names_in(&dir), ["config.toml", "report.html", "results.json"]);
    assert_eq!(names_in(place.path()), ["run"]);
    assert!(fs::read_to_string(dir.join("results.json")).unwrap().contains("second"));
}

#[test]
fn what_is_not_a_run_is_never_replaced() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("precious");
    let results = samples::six_schedulers();
    for content in ["{\"generator\": \"fio 3.39\"}", "{\"generator\": \"planewise-like 1\"}", "not json", ""]
    {
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("results.json"), content).unwrap();
        for overwrite in [Overwrite::Never, Overwrite::EarlierRun] {
            let error = write_run_directory(&dir, &results, &[], overwrite).unwrap_err();
            assert!(matches!(error, ReportError::NotARunDirectory(_)), "{error}");
        }
        assert_eq!(fs::read_to_string(dir.join("results.json")).unwrap(), content);
    }
    assert_eq!(names_in(place.path()), ["precious"]);
}

#[test]
fn an_empty_directory_is_filled_and_a_stale_partial_one_is_cleared() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    fs::create_dir(&dir).unwrap();
    fs::create_dir(place.path().join(".run.partial")).unwrap();
    fs::write(place.path().join(".run.partial/stale"), "x").unwrap();
    write_run_directory(&dir, &samples::six_schedulers(), &[], Overwrite::Never).unwrap();
    assert_eq!(names_in(&dir), ["config.toml", "report.html", "results.json"]);
    assert_eq!(names_in(place.path()), ["run"]);
}

#[test]
fn a_file_in_the_way_is_named_in_one_line() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "mine").unwrap();
    for dir in [file.clone(), file.join("run"), file.join("deep/run")] {
        let error = write_run_directory(&dir, &samples::six_schedulers(), &[], Overwrite::EarlierRun)
            .unwrap_err()
            .to_string();
        assert!(error.contains(file.to_str().unwrap()) && !error.contains('\n'), "{error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    assert_eq!(names_in(place.path()), ["file"]);
}

#[test]
fn paths_without_a_name_of_their_own_are_refused() {
    for path in ["/", ".", "..", ""] {
        let error = write_run_directory(Path::new(path), &samples::six_schedulers(), &[], Overwrite::Never)
            .unwrap_err();
        assert!(matches!(error, ReportError::NoName(_)), "{path}: {error}");
    }
}

#[test]
fn a_full_disk_is_one_clear_line() {
    if !Path::new("/dev/full").exists() {
        eprintln!("skipped: no /dev/full here");
        return;
    }
    let error = write_file(Path::new("/dev/full"), b"results").unwrap_err().to_string();
    assert!(
        error.starts_with("/dev/full: cannot write: ") && error.contains("space") && !error.contains('\n'),
        "{error}"
    );
}

#[test]
fn a_failure_half_way_leaves_nothing_behind_and_keeps_the_earlier_run() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    let results = samples::six_schedulers();
    write_run_directory(&dir, &results, &[], Overwrite::Never).unwrap();
    let too_long = "x".repeat(300);
    let error = write_run_directory(&dir, &results, &[(&too_long, b"")], Overwrite::EarlierRun)
        .unwrap_err()
        .to_string();
    assert!(error.contains("cannot write"), "{error}");
    assert_eq!(names_in(place.path()), ["run"]);
    assert_eq!(names_in(&dir), ["config.toml", "report.html", "results.json"]);
}

#[test]
fn extra_files_cannot_leave_the_directory_or_replace_ours() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("run");
    for name in ["../escape", "a/b", "", ".", "..", "results.json"] {
        let error = write_run_directory(&dir, &samples::six_schedulers(), &[(name, b"")], Overwrite::Never)
            .unwrap_err();
        assert!(matches!(error, ReportError::ExtraName(_)), "{name}: {error}");
    }
    assert!(names_in(place.path()).is_empty());
}

#[test]
fn any_setup_becomes_toml_that_reads_back() {
    for results in samples::all() {
        let config: toml::Table = config_toml(&results.setup).parse().unwrap();
        assert_eq!(config["trace"]["name"].as_str(), Some(results.setup.trace.name.as_str()));
        assert_eq!(config["options"].as_table().unwrap().len(), results.setup.options.len());
    }
}
