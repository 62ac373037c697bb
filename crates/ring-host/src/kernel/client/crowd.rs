//! Whether threads that wait keep processors from each other.
//!
//! A thread that waits for microseconds does best to spin while it has its processor for itself, and to yield to the others when there are
//! more threads than processors: its answer may be there when its turn comes again. Which of both it is shows how long yielding
//! takes: each thread tries it now and then, and as long as another ran meanwhile it goes on to yield.

use crate::deadline::Patience;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// A yield that takes so long let another thread run: two switches take longer, and a yield to nobody is over sooner.
const ANOTHER_RAN: Duration = Duration::from_nanos(900);

/// Waits after which a thread that spins tries whether another wants its processor.
const TRY_EVERY: u32 = 64;

thread_local! {
    /// Waits until the next try; none if the last one let another thread run.
    static UNTIL_TRY: Cell<u32> = const { Cell::new(0) };
}

/// A wait of the calling thread.
pub(super) struct Crowd {
    patience: Patience,
    yields: bool,
}

impl Crowd {
    /// A wait begins, with that patience for the other side.
    #[inline]
    pub fn of_thread(patience: Patience) -> Crowd {
        let yields = match patience {
            Patience::Yield => true,
            Patience::Spin => UNTIL_TRY.replace(UNTIL_TRY.get().saturating_sub(1)) == 0,
        };
        Crowd { patience, yields }
    }

    /// Whether [`pause`](Self::pause) yields.
    #[inline]
    pub fn yields(&self) -> bool {
        self.yields
    }

    /// Passes the time between looks; reads the clock behind it.
    #[inline]
    pub fn pause(&mut self) -> Instant {
        match self.patience {
            Patience::Yield => std::thread::yield_now(),
            Patience::Spin if self.yields => return self.yield_and_see(Instant::now()),
            Patience::Spin => std::hint::spin_loop(),
        }
        Instant::now()
    }

    fn yield_and_see(&mut self, begun: Instant) -> Instant {
        std::thread::yield_now();
        let now = Instant::now();
        self.yields = now.saturating_duration_since(begun) >= ANOTHER_RAN;
        UNTIL_TRY.set(if self.yields { 0 } else { TRY_EVERY });
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_on_to_yield_while_others_run() {
        let long_ago = Instant::now().checked_sub(ANOTHER_RAN).unwrap();
        let mut crowd = Crowd::of_thread(Patience::Spin);
        assert!(crowd.yields(), "the first wait tries it");
        crowd.yield_and_see(long_ago);
        assert!(crowd.yields() && Crowd::of_thread(Patience::Spin).yields());
        // As if nobody had run meanwhile: the yield was over before it began.
        crowd.yield_and_see(Instant::now() + Duration::from_secs(60));
        assert!(!crowd.yields());
        let spinning = (0..).take_while(|_| !Crowd::of_thread(Patience::Spin).yields()).count();
        assert_eq!(spinning, TRY_EVERY as usize);
    }
}
