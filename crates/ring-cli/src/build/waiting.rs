//! A line that moves while something takes its time.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::Duration;

/// Shows on stderr, if that is a terminal, what is waited for and for how long.
#[derive(Debug)]
pub struct Waiting(ProgressBar);

impl Waiting {
    /// Shows it from now on.
    pub fn new(what: String) -> Waiting {
        let terminal = stderr().is_terminal();
        let target =
            if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::with_draw_target(None, target).with_style(style).with_message(what);
        if terminal {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Waiting(bar)
    }
}

/// Takes the line off the screen.
impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
