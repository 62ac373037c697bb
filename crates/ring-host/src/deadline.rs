//! The end of a wait.

use crate::sync::{Mutex, MutexGuard, unless_locked};
use std::convert::Infallible;
use std::time::{Duration, Instant};

/// When to give up. Made from a [`Duration`] (from now on) or an [`Instant`].
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    begun: Instant,
    end: Option<Instant>,
}

impl From<Duration> for Deadline {
    /// A duration too long for the clock never ends.
    fn from(duration: Duration) -> Deadline {
        let begun = Instant::now();
        Deadline { begun, end: begun.checked_add(duration) }
    }
}

impl From<Instant> for Deadline {
    fn from(end: Instant) -> Deadline {
        Deadline { begun: Instant::now(), end: Some(end) }
    }
}

impl Deadline {
    /// How long has been waited.
    pub fn waited(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How long until it comes; none if it never does.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether it has come.
    pub fn passed(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Whether it had come then.
    pub(crate) fn passed_at(&self, now: Instant) -> bool {
        self.end.is_some_and(|end| now >= end)
    }
}

/// A yield that takes so long let another thread run: two switches take longer, and a yield to nobody is over sooner.
pub(crate) const ANOTHER_RAN: Duration = Duration::from_nanos(900);

/// Yields, now that it is `begun`; whether another thread ran meanwhile, which wants the same processor.
pub fn yields_to_another(begun: Instant) -> bool {
    std::thread::yield_now();
    begun.elapsed() >= ANOTHER_RAN
}

/// Parks the thread until it is unparked or the deadline has passed; or returns at once, as std's.
#[cfg(not(loom))]
pub(crate) fn park(deadline: Deadline) {
    match deadline.left() {
        Some(left) => std::thread::park_timeout(left),
        None => std::thread::park(),
    }
}

/// The same under the model checker, which knows no time.
#[cfg(loom)]
pub(crate) fn park(_: Deadline) {
    loom::thread::park();
}

/// Locks what another thread may have for long; none when the deadline has passed.
pub(crate) fn lock_until<T>(mutex: &Mutex<T>, deadline: Deadline) -> Option<MutexGuard<'_, T>> {
    let look = || Ok::<_, Infallible>(unless_locked(mutex.try_lock()));
    let Ok(locked) = wait(deadline, Patience::Yield, look, || Ok(()));
    locked
}

/// How a waiting thread passes the time between looks.
#[derive(Clone, Copy, Debug)]
pub enum Patience {
    /// The other side has a processor of its own (a GPU): spin for some 50 us, then yield.
    Spin,
    /// The other side may want this very processor (a CPU thread): yield soon.
    Yield,
}

#[cfg_attr(loom, allow(dead_code))]
impl Patience {
    fn spins(self) -> u32 {
        match self {
            Patience::Spin => 2000,
            Patience::Yield => 200,
        }
    }

    /// How often a wait looks whether the kernel still runs.
    pub(crate) fn check_every(self) -> Duration {
        match self {
            Patience::Spin => CHECK_EVERY,
            Patience::Yield => CHECK_EVERY / 4, // no driver is asked
        }
    }
}

/// Looks between two readings of the clock while spinning.
#[cfg_attr(loom, allow(dead_code))]
const LOOKS_PER_CLOCK: u32 = 64;

/// How often a wait for a GPU asks the driver whether the kernel still runs.
pub(crate) const CHECK_EVERY: Duration = Duration::from_millis(1);

/// Looks until `look` gives something. None when the deadline has passed. `check` is called now and then, about
/// as often as [`Patience::check_every`] says, and may end the wait with an error.
#[cfg(not(loom))]
#[inline]
pub(crate) fn wait<T, E>(
    deadline: Deadline,
    patience: Patience,
    mut look: impl FnMut() -> Result<Option<T>, E>,
    mut check: impl FnMut() -> Result<(), E>,
) -> Result<Option<T>, E> {
    let mut looks = 0u32;
    let mut checked = deadline.begun;
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        looks = looks.saturating_add(1);
        if looks < patience.spins() {
            std::hint::spin_loop();
            if !looks.is_multiple_of(LOOKS_PER_CLOCK) {
                continue;
            }
        } else {
            std::thread::yield_now();
        }
        let now = Instant::now();
        if deadline.end.is_some_and(|end| now >= end) {
            return look();
        }
        if now - checked >= patience.check_every() {
            checked = now;
            check()?;
        }
    }
}

/// The same under the model checker, which knows no time: it lets the others go on, and no deadline passes.
#[cfg(loom)]
pub(crate) fn wait<T, E>(
    _: Deadline,
    _: Patience,
    mut look: impl FnMut() -> Result<Option<T>, E>,
    _: impl FnMut() -> Result<(), E>,
) -> Result<Option<T>, E> {
    loop {
        if let Some(found) = look()? {
            return Ok(Some(found));
        }
        loom::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_end() {
        let d = Deadline::from(Duration::from_millis(20));
        let none = wait::<(), ()>(d, Patience::Spin, || Ok(None), || Ok(()));
        assert_eq!(none, Ok(None));
        assert!(d.passed() && d.waited() >= Duration::from_millis(20));
        assert_eq!(
            wait(d, Patience::Yield, || Ok::<_, ()>(Some(1)), || Ok(())),
            Ok(Some(1)),
            "one last look"
        );
        assert_eq!(
            wait::<(), _>(Duration::MAX.into(), Patience::Yield, || Ok(None), || Err(7)),
            Err(7)
        );
    }

    /// Checks go on for as long as the wait does: a machine that stops a thread for longer than a short
    /// wait lasts would let it make none.
    #[test]
    fn waits_check_now_and_then() {
        let checks = std::cell::Cell::new(0);
        let begun = Instant::now();
        let found = wait::<_, ()>(
            Duration::from_secs(20).into(),
            Patience::Spin,
            || Ok((checks.get() == 3).then_some(())),
            || {
                checks.set(checks.get() + 1);
                Ok(())
            },
        );
        assert_eq!((found, checks.get()), (Ok(Some(())), 3));
        assert!(begun.elapsed() >= 3 * CHECK_EVERY);
    }
}
