//! How far the bench is, where somebody can see it.

use crate::interrupt::Interrupt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};

/// Shows what is being measured, and how much of all is done, on stderr if that is a terminal.
#[derive(Debug)]
pub struct Steps {
    bar: ProgressBar,
    interrupt: Interrupt,
}

impl Steps {
    /// A bar of so many steps, which stands still from an interrupt on.
    pub fn new(steps: u64, interrupt: Interrupt) -> Steps {
        let target = match stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template("[{bar:30}] {percent:>3} % {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(steps), target).with_style(style);
        Steps { bar, interrupt }
    }

    /// Says what comes next. Draws at once: nothing is measured at this moment.
    pub fn next(&self, what: &str) {
        if self.interrupt.asked() {
            return; // nothing comes next
        }
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
        self.bar.tick();
    }

    /// What came last.
    pub fn now(&self) -> String {
        self.bar.message()
    }
}

/// Takes the bar off the screen, also when the work ended early.
impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
