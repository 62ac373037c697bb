//! Turns of threads that command a kernel: one thread at a time, until the kernel has obeyed.

use crate::deadline::{Deadline, Patience, lock_until, wait};
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard};
use std::convert::Infallible;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long a thread whose turn is over lets another thread take its own first, if one waits. A thread that waits looks all the
/// while, so it takes as long only if the processors are busy.
const HANDED_OVER: Duration = Duration::from_millis(20);

/// The turns of a kernel.
#[derive(Debug)]
pub(crate) struct Turns {
    held: Mutex<()>,
    /// Threads that wait for their turn.
    waiting: AtomicU32,
    /// Turns that have begun.
    begun: AtomicU64,
}

/// The right to command a kernel.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    held: Option<MutexGuard<'a, ()>>,
}

impl Turns {
    pub fn new() -> Turns {
        Turns { held: Mutex::new(()), waiting: AtomicU32::new(0), begun: AtomicU64::new(0) }
    }

    /// Waits for a turn; none when the deadline has passed.
    pub fn take(&self, deadline: Deadline) -> Option<Turn<'_>> {
        self.waiting.fetch_add(1, Relaxed);
        let held = lock_until(&self.held, deadline);
        if held.is_some() {
            self.begun.fetch_add(1, Relaxed);
        }
        self.waiting.fetch_sub(1, Relaxed);
        held.map(|held| Turn { turns: self, held: Some(held) })
    }
}

impl Drop for Turn<'_> {
    /// A thread that takes one turn after the other would else keep out those that look only when they have a processor.
    fn drop(&mut self) {
        let Turns { waiting, begun, .. } = self.turns;
        let own = begun.load(Relaxed);
        self.held = None;
        let look = || {
            let is_over = waiting.load(Relaxed) == 0 || begun.load(Relaxed) != own;
            Ok::<_, Infallible>(is_over.then_some(()))
        };
        let Ok(_) = wait(HANDED_OVER.into(), Patience::Yield, look, || Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::scope;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    /// A turn that ends does not begin again before that of a thread that waits, unless that thread had no processor for so long.
    #[test]
    fn a_turn_is_handed_over() {
        let turns = Turns::new();
        for _ in 0..20 {
            scope(|scope| {
                let held = turns.take(LONG.into());
                scope.spawn(|| drop(turns.take(LONG.into()).expect("a turn")));
                while turns.waiting.load(Relaxed) == 0 {
                    std::thread::yield_now();
                }
                let (own, begun) = (turns.begun.load(Relaxed), Instant::now());
                drop(held);
                let is_handed_over = turns.begun.load(Relaxed) == own + 1;
                assert!(is_handed_over || begun.elapsed() >= HANDED_OVER);
            });
        }
    }

    #[test]
    fn who_waits_in_vain_is_told_and_delays_nobody() {
        let turns = Turns::new();
        let held = turns.take(LONG.into());
        scope(|scope| {
            let late = scope.spawn(|| turns.take(Duration::from_millis(5).into()).is_none());
            assert!(late.join().expect("no panic"));
        });
        assert_eq!(turns.waiting.load(Relaxed), 0);
        drop(held);
        assert!(turns.take(Duration::ZERO.into()).is_some());
    }
}
