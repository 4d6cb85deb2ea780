//! Progress on standard error: only on a terminal, and only when the work takes longer than a second.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Work shorter than this shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Progress of one command over requests; shared by its threads.
pub struct Progress {
    bar: ProgressBar,
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
        Progress { bar, started: Instant::now(), quiet, shown: AtomicBool::new(false) }
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
            // Draws nothing when standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
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
