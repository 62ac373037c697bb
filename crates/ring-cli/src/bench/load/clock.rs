//! The clock of the loops, which tests replace.

use std::time::Instant;

/// Tells the time.
pub trait Clock {
    /// Nanoseconds since a moment that stays.
    fn now(&self) -> u64;
}

/// The monotonic clock, from when this was made.
#[derive(Clone, Copy, Debug)]
pub struct Monotonic(Instant);

impl Monotonic {
    /// At 0 now.
    pub fn start() -> Monotonic {
        Monotonic(Instant::now())
    }
}

impl Clock for Monotonic {
    #[inline]
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }
}
