//! A place in a handler at which it waits until the test lets it go on.

use crate::until;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// For the CPU device, whose handlers are threads of this process.
#[derive(Debug)]
pub struct Latch {
    reached: AtomicU64,
    released: AtomicU64,
}

impl Latch {
    /// Nobody has reached it.
    #[expect(clippy::new_without_default, reason = "it is a static of a test's own")]
    pub const fn new() -> Latch {
        Latch { reached: AtomicU64::new(0), released: AtomicU64::new(0) }
    }

    /// The handler waits here until it is [released](Self::release).
    pub fn wait(&self) {
        let nth = self.reached.fetch_add(1, Relaxed) + 1;
        until("its release", || (self.released.load(Relaxed) >= nth).then_some(()));
    }

    /// Whether a handler waits.
    pub fn is_reached(&self) -> bool {
        self.reached.load(Relaxed) > self.released.load(Relaxed)
    }

    /// Lets the handler that waits go on.
    pub fn release(&self) {
        self.released.store(self.reached.load(Relaxed), Relaxed);
    }
}
