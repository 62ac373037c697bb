//! The lease: a host that lives changes a word of the control block, often. A channel looks there ten times
//! in the time of the lease; when it has not changed in nine looks the host has died or was stopped, and
//! the channel leaves. Looks are counted, not time alone: a device that was itself stopped looks again
//! before it leaves.

use crate::block::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::{ControlBlock, UNLIMITED};

/// Looks in the time of a lease.
const LOOKS: u64 = 10;

/// Looks in a row that find the lease not renewed, after which it has expired. The first may come almost a
/// tenth of the lease after it was renewed, so that the last comes within it.
const MOST_MISSED: u64 = LOOKS - 1;

/// What a channel knows of its lease. Set by thread 0.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Lease {
    /// When it was last looked at.
    at: Cell<u64>,
    /// Nanoseconds between two looks.
    apart: Cell<u64>,
    /// What the host had written at the last look.
    renewed: Cell<u64>,
    /// Looks since `renewed` changed.
    missed: Cell<u64>,
    /// The lease has expired.
    expired: Cell<bool>,
}

impl Lease {
    /// Begins a launch, at whose beginning the host's word was `renewed`.
    #[inline(always)]
    pub fn begin(&self, began: u64, renewed: u64) {
        self.at.set(began);
        self.apart.set(0); // the first heartbeat learns it
        self.renewed.set(!renewed); // so that the first look counts as renewed
        self.missed.set(0);
        self.expired.set(false);
    }

    /// Whether it was over at the last heartbeat.
    #[inline(always)]
    pub fn has_expired(&self) -> bool {
        self.expired.get()
    }

    /// When the heart beats, `now`: looks whether the lease is over, if it is time.
    #[inline(always)]
    pub fn look(&self, now: u64, control: &ControlBlock) {
        let since = now.wrapping_sub(self.at.get());
        if since < self.apart.get() {
            return;
        }
        self.at.set(now);
        if since > u64::MAX / 2 {
            return; // the clock went back
        }
        let lease = control.config.lease.load(Relaxed);
        self.apart.set(if lease == UNLIMITED { UNLIMITED } else { lease / LOOKS });
        let renewed = control.host.renewed.load(Relaxed);
        let missed = if renewed == self.renewed.get() { self.missed.get() + 1 } else { 0 };
        self.renewed.set(renewed);
        self.missed.set(missed);
        if missed >= MOST_MISSED && lease != UNLIMITED {
            self.expired.set(true);
        }
    }
}
