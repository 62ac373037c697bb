//! What was found out about a device, for all of the process who open it.

use super::Probe;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What was found out about a device. What a busy moment kept from being found out is not kept.
#[derive(Debug, Default)]
pub struct Probed {
    certain: OnceLock<Probe>,
    /// Probes that were begun.
    begun: AtomicU64,
    /// Probes that are under way.
    under_way: AtomicU32,
}

impl Probed {
    /// What was found out for certain before, or else by a probe now.
    pub(crate) fn find<E>(&self, probe: impl FnOnce() -> Result<Probe, E>) -> Result<Probe, E> {
        if let Some(probe) = self.certain.get() {
            return Ok(probe.clone());
        }
        self.under_way.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        let found = probe(); // two may do it at once, for the same
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        let found = found?;
        match found.is_certain() {
            true => Ok(self.certain.get_or_init(|| found).clone()),
            false => Ok(found),
        }
    }

    /// Probes that were begun so far.
    #[cfg(feature = "quirks")]
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Whether a probe is under way.
    #[cfg(feature = "quirks")]
    pub(crate) fn is_under_way(&self) -> bool {
        self.under_way.load(Ordering::Relaxed) > 0
    }
}
