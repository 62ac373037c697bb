//! Idle polls of a loop: they yield, and they end.

use crate::bench::context::wrong;
use crate::bench::report::Found;
use crate::bench::settings::TIMEOUT;
use crate::interrupt::Interrupt;
use std::thread;
use std::time::Instant;

/// Idle polls between two looks at the deadline.
const POLLS: u32 = 1024;

/// Counts polls that found nothing to do.
#[derive(Debug)]
pub struct Watch {
    polls: u32,
    /// Idle polls after which the thread gives its processor to others.
    yield_after: u32,
    /// When it was first found to be idle.
    since: Option<Instant>,
    interrupt: Interrupt,
}

impl Watch {
    /// For a host thread that yields after so many idle polls.
    pub fn new(yield_after: u32, interrupt: Interrupt) -> Watch {
        Watch { polls: 0, yield_after, since: None, interrupt }
    }

    /// Something moved.
    #[inline]
    pub fn moved(&mut self) {
        self.polls = 0;
    }

    /// Nothing did. An error if that has been so for [`TIMEOUT`].
    #[inline]
    pub fn idle(&mut self) -> Found<()> {
        self.polls = self.polls.saturating_add(1);
        if self.polls > self.yield_after {
            thread::yield_now();
        }
        if self.polls.is_multiple_of(POLLS) || self.polls == u32::MAX {
            self.look()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn look(&mut self) -> Found<()> {
        if self.polls == POLLS {
            self.since = None; // something moved since the last look
        }
        match self.since.get_or_insert_with(Instant::now).elapsed() > TIMEOUT {
            true => Err(wrong(format!("nothing was sent and no answer came for {TIMEOUT:?}"))),
            false => Ok(()),
        }
    }

    /// Whether Ctrl-C was pressed.
    #[inline]
    pub fn interrupted(&self) -> bool {
        self.interrupt.requested()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Idle polls until the next look at the deadline, that one included.
    fn until_a_look(watch: &mut Watch) -> Found<()> {
        (0..POLLS).try_for_each(|_| watch.idle())
    }

    #[test]
    fn an_idle_loop_ends_after_the_timeout_and_not_sooner() {
        let mut watch = Watch::new(u32::MAX, Interrupt::never());
        until_a_look(&mut watch).unwrap();
        until_a_look(&mut watch).unwrap();
        watch.since = watch.since.and_then(|since| since.checked_sub(2 * TIMEOUT));
        until_a_look(&mut watch).unwrap_err();
    }

    #[test]
    fn what_moves_begins_the_timeout_again() {
        let mut watch = Watch::new(u32::MAX, Interrupt::never());
        until_a_look(&mut watch).unwrap();
        watch.since = watch.since.and_then(|since| since.checked_sub(2 * TIMEOUT));
        watch.moved();
        until_a_look(&mut watch).unwrap();
        until_a_look(&mut watch).unwrap();
    }
}
