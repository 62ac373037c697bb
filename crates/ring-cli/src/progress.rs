//! Progress bars and spinners on stderr. indicatif draws them only on a terminal.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// A bar on the screen. It is removed when this is dropped, also when the work ended early.
#[derive(Debug)]
struct Shown(ProgressBar);

impl Shown {
    fn new(total: Option<u64>, template: &str) -> Shown {
        let style = ProgressStyle::with_template(template).expect("the template is valid");
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        Shown(bar.with_style(style.progress_chars("=> ")))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Shows what is waited for and for how long, until it is dropped.
#[derive(Debug)]
pub struct Waiting {
    _shown: Shown,
}

impl Waiting {
    /// Shows it from now on.
    pub fn new(what: String) -> Waiting {
        let shown = Shown::new(None, "{spinner} {msg} ({elapsed})");
        shown.0.set_message(what);
        if !shown.0.is_hidden() {
            shown.0.enable_steady_tick(Duration::from_millis(100));
        }
        Waiting { _shown: shown }
    }
}

/// Shows what is being measured, and how much of all is done.
#[derive(Debug)]
pub struct Steps {
    shown: Shown,
    interrupt: Interrupt,
}

impl Steps {
    /// A bar of so many steps. It stops at an interrupt.
    pub fn new(steps: u64, interrupt: Interrupt) -> Steps {
        Steps { shown: Shown::new(Some(steps), "[{bar:30}] {percent:>3} % {wide_msg}"), interrupt }
    }

    /// Shows the next step. It is drawn at once: nothing is measured at this moment.
    pub fn next(&self, what: &str) {
        if self.interrupt.requested() {
            return; // no further step is taken
        }
        let bar = &self.shown.0;
        bar.set_message(what.to_owned());
        bar.inc(1);
        bar.tick();
    }

    /// The current step.
    pub fn now(&self) -> String {
        self.shown.0.message()
    }
}

/// Messages between two looks at the clock, so that none is paid for by a message.
const STRIDE: u64 = 1 << 16;

/// Time between two redraws, at least.
const REFRESH: Duration = Duration::from_millis(100);

/// Counts messages.
#[derive(Debug)]
pub struct Progress {
    done: u64,
    next_look: u64,
    drawn: Instant,
    shown: Shown,
}

impl Progress {
    /// A bar from 0 to `total` messages.
    pub fn new(total: u64) -> Progress {
        let shown = Shown::new(Some(total), "[{bar:40}] {human_pos} of {human_len}");
        Progress { done: 0, next_look: STRIDE, drawn: Instant::now(), shown }
    }

    /// Counts `messages` more.
    #[inline]
    pub fn add(&mut self, messages: u64) {
        self.done += messages;
        if self.done >= self.next_look {
            self.look();
        }
    }

    #[cold]
    fn look(&mut self) {
        self.next_look = self.done + STRIDE;
        let now = Instant::now();
        if now - self.drawn >= REFRESH {
            self.drawn = now;
            self.shown.0.set_position(self.done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_touched_only_between_strides_and_when_it_is_time() {
        let mut progress = Progress::new(10 * STRIDE);
        progress.add(STRIDE);
        assert_eq!(progress.shown.0.position(), 0, "not yet time");
        progress.drawn -= REFRESH;
        progress.add(STRIDE - 1);
        assert_eq!(progress.shown.0.position(), 0, "inside a stride");
        progress.add(1);
        assert_eq!(progress.shown.0.position(), 2 * STRIDE);
        assert_eq!(progress.done, 2 * STRIDE);
    }
}
