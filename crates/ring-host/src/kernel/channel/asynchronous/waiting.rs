//! How a half waits: its task wakes itself at first, later a watch wakes it.

use super::watch::{OFTEN, Place, RARELY};
use crate::deadline::Patience;
use crate::kernel::channel::idle_polls::IdlePolls;
use std::task::Context;
use std::time::{Duration, Instant};

/// For how long a task that waits wakes itself, before it leaves that to a watch.
pub const EAGER: Duration = Duration::from_micros(100);

/// After how long a task that waits is looked after rarely.
pub const LONG: Duration = Duration::from_millis(10);

/// Messages in a row after which other tasks get their turn.
pub const RUN: u32 = 256;

/// The waits of one half.
#[derive(Debug)]
pub(crate) struct Waiting {
    patience: Patience,
    /// When a poll first found nothing, of those since one found something.
    since: Option<Instant>,
    /// How far the channel's other half was then.
    other: u64,
    /// Polls in a row that found something.
    found: u32,
    often: Place,
    rarely: Place,
}

impl Waiting {
    pub fn new(patience: Patience) -> Waiting {
        let (often, rarely) = Default::default();
        Waiting { patience, since: None, other: 0, found: 0, often, rarely }
    }

    /// Whether it is other tasks' turn: the caller is pending, and will be polled again at once. Else the
    /// caller looks; if its looks have become rare, one that finds nothing looks at the clock.
    #[inline]
    pub fn is_others_turn(&mut self, context: &Context<'_>, idle_polls: &mut IdlePolls) -> bool {
        let others = self.found >= RUN;
        if others {
            self.found = 0;
            context.waker().wake_by_ref();
        } else if self.is_watched() {
            idle_polls.force_check();
        }
        others
    }

    /// After a poll that found something.
    #[inline]
    pub fn found(&mut self) {
        self.found += 1;
        self.since = None;
    }

    /// After a poll that found nothing: there will be another. The newest waker counts. `other` is how
    /// far the channel's other half is: if that has moved something is about to come, and the wait begins
    /// anew.
    pub fn found_nothing(&mut self, context: &Context<'_>, other: u64) {
        self.found = 0;
        if std::mem::replace(&mut self.other, other) != other {
            self.since = None;
        }
        let (waited, waker) = (self.waited(), context.waker());
        self.since.get_or_insert_with(Instant::now);
        let is_watched = match waited {
            Some(waited) if waited >= LONG => RARELY.wake_soon(&mut self.rarely, waker),
            Some(waited) if waited >= EAGER => OFTEN.wake_soon(&mut self.often, waker),
            _ => false,
        };
        if !is_watched {
            waker.wake_by_ref();
            if let Patience::Yield = self.patience {
                std::thread::yield_now(); // who is to answer may want this very processor
            }
        }
    }

    /// Whether it waits, and looks have become rare.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.waited() >= Some(EAGER)
    }

    /// For how long, if it waits.
    #[inline]
    fn waited(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }
}
