//! Progress on standard error: only on a terminal, and only when the work takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Work that will take longer than this is announced.
const LONG: Duration = Duration::from_secs(60);

/// Progress of one command over requests; shared by its threads.
pub struct Progress {
    bar: ProgressBar,
    requests: Option<u64>,
    started: Instant,
    quiet: bool,
    shown: AtomicBool,
}

impl Progress {
    /// Progress over a number of requests, or an unknown number.
    pub fn new(requests: Option<u64>, quiet: bool) -> Progress {
        let bar = ProgressBar::with_draw_target(requests, ProgressDrawTarget::hidden());
        let template = match requests {
            Some(_) => "{elapsed_precise} {wide_bar} {human_pos} of {human_len} requests, {eta} left {msg}",
            None => "{elapsed_precise} {spinner} {human_pos} requests {msg}",
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Progress { bar, requests, started: Instant::now(), quiet, shown: AtomicBool::new(false) }
    }

    /// So many more requests are done.
    pub fn add(&self, requests: u64) {
        if self.quiet {
            return;
        }
        self.bar.inc(requests);
        if !self.shown.load(Ordering::Relaxed)
            && self.started.elapsed() >= PATIENCE
            && !self.shown.swap(true, Ordering::Relaxed)
        {
            if let Some(note) = self.announcement() {
                eprintln!("note: {note}");
            }
            // Draws nothing when standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// How much work it is and how long it will take, where that is long: whoever gave no limit may not have meant the whole drive.
    fn announcement(&self) -> Option<String> {
        let requests = self.requests?;
        let done = self.bar.position().clamp(1, requests);
        let left = self.started.elapsed().mul_f64(requests as f64 / done as f64 - 1.0);
        (left >= LONG).then(|| {
            format!(
                "{requests} requests, about {} minutes; fewer: --requests of traces, --number_ios, --io_size or --runtime of jobs; Ctrl-C keeps what is done",
                (left.as_secs() + 30) / 60
            )
        })
    }

    /// What else to say beside the bar.
    pub fn say(&self, message: String) {
        self.bar.set_message(message);
    }
}

impl Progress {
    /// Takes the bar off the terminal.
    pub fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
