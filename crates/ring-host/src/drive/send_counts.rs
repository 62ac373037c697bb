//! What is counted of the requests that the host sends. It orders nothing, so it is no business of the model checker's.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is counted of a channel's requests, on a line of its own: written by its sender only, and read by anybody who wants to
/// know.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SendCounts {
    /// Requests.
    pub sent: Count,
    /// Requests that went through slots; the others were inline.
    pub in_slots: Count,
    /// How often there was no room; those until something is sent count as one.
    pub stalls: Count,
}

/// A count with one writer.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// By its writer.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.get().wrapping_add(n), Relaxed);
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
