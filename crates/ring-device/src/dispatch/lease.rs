//! The lease: a channel leaves by itself when the host has not renewed it for long, so that a host that
//! died or was stopped keeps no part of the device.
//!
//! A lease is over after so many fruitless looks that lie a part of it apart, not after so much time:
//! a clock that jumps costs one look, and a channel that was itself stopped looks again before it goes.

use super::Channel;
use crate::kernel::Kernel;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::UNLIMITED;

/// Looks in the time of a lease.
const LOOKS: u64 = 10;

/// Fruitless looks one after the other after which it is over. The first may come almost a tenth of the
/// lease after it was renewed, so that the last comes within it.
const MOST_MISSED: u64 = LOOKS - 1;

impl<K: Kernel> Channel<'_, K> {
    /// Thread 0, when the heart beats, `now`: whether the lease is over.
    #[inline(always)]
    pub(super) fn is_orphaned(&self, now: u64) -> bool {
        let s = self.shared();
        let since = now.wrapping_sub(s.lease_at.load(Relaxed));
        if since < s.lease_apart.load(Relaxed) {
            return false;
        }
        s.lease_at.store(now, Relaxed);
        if since > u64::MAX / 2 {
            return false; // the clock went back
        }
        let lease = self.control().config.lease.load(Relaxed);
        let apart = if lease == UNLIMITED { UNLIMITED } else { lease / LOOKS };
        s.lease_apart.store(apart, Relaxed);
        let renewed = self.host().renewed.load(Relaxed);
        let same = renewed == s.lease_renewed.load(Relaxed);
        let missed = if same { s.lease_missed.load(Relaxed) + 1 } else { 0 };
        s.lease_renewed.store(renewed, Relaxed);
        s.lease_missed.store(missed, Relaxed);
        missed >= MOST_MISSED && lease != UNLIMITED
    }
}
