//! A progress bar, where somebody can see it.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

/// Messages between two looks at the clock, so that none is paid for by a message.
const STRIDE: u64 = 1 << 16;

/// Time between two redraws, at least.
const REFRESH: Duration = Duration::from_millis(100);

/// Counts messages, and shows the count on stderr if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    done: u64,
    next_look: u64,
    drawn: Instant,
    bar: ProgressBar,
}

impl Progress {
    /// A bar from 0 to `total` messages.
    pub fn new(total: u64) -> Progress {
        let target = if stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template("[{bar:40}] {human_pos} of {human_len}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(total), target).with_style(style);
        Progress { done: 0, next_look: STRIDE, drawn: Instant::now(), bar }
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
            self.bar.set_position(self.done);
        }
    }
}

/// Takes the bar off the screen, also when the work ended early.
impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_touched_only_between_strides_and_when_it_is_time() {
        let mut progress = Progress::new(10 * STRIDE);
        progress.add(STRIDE);
        assert_eq!(progress.bar.position(), 0, "not yet time");
        progress.drawn -= REFRESH;
        progress.add(STRIDE - 1);
        assert_eq!(progress.bar.position(), 0, "inside a stride");
        progress.add(1);
        assert_eq!(progress.bar.position(), 2 * STRIDE);
        assert_eq!(progress.done, 2 * STRIDE);
    }
}
