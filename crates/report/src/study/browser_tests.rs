//! Pages in a real browser, where the machine has one: offline, without complaint, with their plots drawn.

use super::{Reproduction, samples, write};
use resvg::tiny_skia::Pixmap;
use std::path::Path;
use std::process::Command;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A picture of the page, and what the browser said about it. None when it cannot be started or gives no picture.
fn look(browser: &str, page: &Path, directory: &Path) -> Option<(Pixmap, String)> {
    let picture = directory.join("picture.png");
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,900"])
        .args(["--enable-logging=stderr", "--disable-background-networking", "--no-first-run"])
        .arg(format!("--user-data-dir={}", directory.join("profile").display()))
        .arg(format!("--screenshot={}", picture.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .ok()?;
    let pixels = Pixmap::decode_png(&std::fs::read(&picture).ok()?).ok()?;
    std::fs::remove_file(&picture).ok()?;
    Some((pixels, String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn index_and_study_show_their_plots_in_a_browser_without_complaint() {
    let installed =
        |browser: &&&str| Command::new(browser).arg("--version").output().is_ok_and(|o| o.status.success());
    let Some(browser) = BROWSERS.iter().find(installed) else {
        eprintln!("skipped: no browser ({})", BROWSERS.join(", "));
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("pages");
    let outcomes = samples::outcomes();
    write(
        &pages,
        &Reproduction { unasked: 0, outcomes: &outcomes, missing: &[], command: "", divergence: &[] },
    )
    .unwrap();
    for page in ["index.html", "piq-fig8.html", "gc-fig13.html"] {
        let Some((pixels, said)) = look(browser, &pages.join(page), directory.path()) else {
            eprintln!("skipped: {browser} gives no picture here");
            return;
        };
        assert!(!said.contains("CONSOLE"), "{page}: {said}");
        // Colours of the first series, which nothing else on a page has.
        let drawn = pixels
            .pixels()
            .iter()
            .filter(|at| (at.red(), at.green(), at.blue()) == (0x00, 0x72, 0xb2))
            .count();
        assert!(drawn > 300, "{page}: {drawn} pixels of the first series");
    }
}
