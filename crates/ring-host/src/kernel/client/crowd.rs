//! Whether threads that wait keep processors from each other.
//!
//! A thread that waits for microseconds does best to spin while it has its processor for itself, and to yield to the others when there are
//! more threads than processors: its answer may be there when its turn comes again. Which of both it is shows how long yielding
//! takes: each thread tries it now and then, and as long as another ran meanwhile it goes on to yield.

use crate::deadline::{Patience, yields_to_another};
use std::cell::Cell;
use std::time::Instant;

/// So many yields in a row to nobody show that no other thread wants the processor: the scheduler may pass over others once.
const TO_NOBODY: u32 = 2;

/// So many tries in a row in which another thread ran show that others want the processor for longer: one may have been an interrupt.
const BY_OTHERS: u32 = 4;

/// Waits after which a thread that spins tries whether another wants its processor.
const TRY_EVERY: u32 = 64;

/// The same of a thread that is in a crowd: two readings of the clock are a part of a short wait.
const TRY_EVERY_IN_CROWD: u32 = 8;

/// What a thread has seen of others that want its processor.
#[derive(Clone, Copy)]
struct Seen {
    /// Tries in which another thread ran, up to [`BY_OTHERS`], since it was last alone.
    by_others: u32,
    /// Tries since in which none ran, up to [`TO_NOBODY`]: then it is alone.
    to_nobody: u32,
    /// Waits until the next try.
    until_try: u32,
}

const ALONE: Seen = Seen { by_others: 0, to_nobody: TO_NOBODY, until_try: TRY_EVERY };

thread_local! {
    static SEEN: Cell<Seen> = const { Cell::new(Seen { until_try: 0, ..ALONE }) };
}

impl Seen {
    /// After another try.
    fn then(self, another_ran: bool) -> Seen {
        let Seen { by_others, to_nobody, .. } = self;
        if another_ran {
            let by_others = BY_OTHERS.min(by_others + 1);
            let until_try = if by_others == BY_OTHERS { TRY_EVERY_IN_CROWD } else { 0 };
            Seen { by_others, to_nobody: 0, until_try }
        } else if to_nobody + 1 < TO_NOBODY {
            Seen { by_others, to_nobody: to_nobody + 1, until_try: 0 }
        } else {
            ALONE
        }
    }
}

/// Whether the calling thread's last waits were short, and gave its processor to others again and again.
#[inline]
pub(super) fn is_crowded() -> bool {
    SEEN.get().by_others == BY_OTHERS
}

/// The calling thread is about to be parked: what it waits for takes long, so that others have the processor meanwhile.
pub(super) fn is_parked() {
    SEEN.set(Seen { until_try: SEEN.get().until_try, ..ALONE });
}

/// As if others had run while the calling thread yielded.
#[cfg(test)]
pub(super) fn appear() {
    SEEN.set(Seen { by_others: BY_OTHERS, to_nobody: 0, until_try: 0 });
}

/// A wait of the calling thread.
pub(super) struct Crowd {
    yields: bool,
    tries: bool,
}

impl Crowd {
    /// A wait begins, with that patience for the other side.
    #[inline]
    pub fn of_thread(patience: Patience) -> Crowd {
        if let Patience::Yield = patience {
            return Crowd { yields: true, tries: false };
        }
        let seen = SEEN.get();
        SEEN.set(Seen { until_try: seen.until_try.saturating_sub(1), ..seen });
        let tries = seen.until_try == 0;
        Crowd { yields: tries || seen.to_nobody < TO_NOBODY, tries }
    }

    /// Whether [`pause`](Self::pause) yields.
    #[inline]
    pub fn yields(&self) -> bool {
        self.yields
    }

    /// Passes the time between looks.
    #[inline]
    pub fn pause(&mut self) {
        if self.tries {
            self.yield_and_see(Instant::now());
        } else if self.yields {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    fn yield_and_see(&mut self, begun: Instant) {
        let seen = SEEN.get().then(yields_to_another(begun));
        SEEN.set(seen);
        (self.yields, self.tries) = (seen.to_nobody < TO_NOBODY, seen.until_try == 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deadline::ANOTHER_RAN;
    use std::time::Duration;

    #[test]
    fn a_thread_goes_on_to_yield_while_others_run() {
        let spinning = || Crowd::of_thread(Patience::Spin);
        let waits_until_try = || (0..).take_while(|_| !spinning().tries).count() as u32;
        // As if others had run meanwhile, or nobody: then the yield was over before it began.
        let others = Instant::now().checked_sub(ANOTHER_RAN).unwrap();
        let nobody = Instant::now() + Duration::from_secs(60);
        let mut crowd = spinning();
        assert!(crowd.tries && crowd.yields(), "the first wait tries it");
        for tries in 1..BY_OTHERS {
            crowd.yield_and_see(others);
            assert!(crowd.tries && crowd.yields() && !is_crowded(), "after {tries}");
        }
        crowd.yield_and_see(others);
        assert!(!crowd.tries && spinning().yields() && is_crowded());
        assert_eq!(waits_until_try(), TRY_EVERY_IN_CROWD - 1);
        crowd.yield_and_see(nobody);
        assert!(crowd.tries && crowd.yields() && is_crowded(), "they may have been passed over");
        crowd.yield_and_see(nobody);
        assert!(!crowd.tries && !spinning().yields() && !is_crowded());
        assert_eq!(waits_until_try(), TRY_EVERY - 1);
        crowd.yield_and_see(nobody);
        assert!(!crowd.yields(), "one try is enough for a thread that was alone");
        appear();
        is_parked();
        assert!(!is_crowded());
        assert!(Crowd::of_thread(Patience::Yield).yields());
    }
}
