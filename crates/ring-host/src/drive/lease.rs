//! Leases: a thread of the process tells every kernel now and then that its host is alive. A kernel that
//! hears nothing for the time of its lease leaves the device by itself, so that a host that died, or was
//! stopped, keeps no part of it; nor does a kernel that was dropped and sees no command.

use crate::error::DriverError;
use crate::sync::{lock, unpoisoned};
use ring_shared::atomics::AtomicU64;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How often a lease is renewed in its time.
const RENEWALS: u32 = 10;

/// The kernels of this process that have a lease.
static LEASE_THREAD: LeaseThread = LeaseThread {
    leases: Mutex::new(Leases { process: None, entries: Vec::new() }),
    changed: Condvar::new(),
};

struct LeaseThread {
    leases: Mutex<Leases>,
    changed: Condvar,
}

struct Leases {
    /// The process in which the thread runs, for its life; a fork has none.
    process: Option<u32>,
    entries: Vec<Entry>,
}

/// A word to change, and how often.
struct Entry {
    word: NonNull<AtomicU64>,
    every: Duration,
}

// SAFETY: an atomic that lives until it is taken out, under the lock under which it is used.
unsafe impl Send for Entry {}

/// A lease that is renewed while this lives.
#[derive(Debug)]
pub(crate) struct Lease {
    word: NonNull<AtomicU64>,
}

// SAFETY: an address only; see `Entry`.
unsafe impl Send for Lease {}
// SAFETY: as above.
unsafe impl Sync for Lease {}

impl Lease {
    /// Begins to renew a lease of that time by changing `word`.
    ///
    /// # Safety
    /// `word` lives until the lease is dropped.
    pub unsafe fn keep(word: &AtomicU64, time: Duration) -> Result<Lease, DriverError> {
        let word = NonNull::from(word);
        let mut leases = lock(&LEASE_THREAD.leases);
        if leases.process != Some(std::process::id()) {
            let thread = std::thread::Builder::new().name("ring-lease".to_owned());
            thread
                .spawn(|| LEASE_THREAD.run())
                .map_err(|error| DriverError::of_system("spawn", &error))?;
            // What it needs memory for is done when it runs.
            while leases.process != Some(std::process::id()) {
                leases = unpoisoned(LEASE_THREAD.changed.wait(leases));
            }
        }
        leases.entries.push(Entry { word, every: time / RENEWALS });
        LEASE_THREAD.changed.notify_all();
        Ok(Lease { word })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        lock(&LEASE_THREAD.leases).entries.retain(|entry| entry.word != self.word);
    }
}

impl LeaseThread {
    /// Renews all leases as often as the shortest one needs.
    fn run(&self) {
        let mut leases = lock(&self.leases);
        leases.process = Some(std::process::id());
        self.changed.notify_all();
        loop {
            for entry in &leases.entries {
                // SAFETY: `Lease::keep`'s caller promised that it lives until it is taken out, under
                // the lock that we hold.
                let word = unsafe { entry.word.as_ref() };
                // The host's line has this one writer of the word; the channel reads it.
                word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            }
            let every =
                leases.entries.iter().map(|entry| entry.every).min().unwrap_or(Duration::MAX);
            let waited = self.changed.wait_timeout(leases, every.min(Duration::from_secs(3600)));
            leases = unpoisoned(waited).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_lease_is_renewed_while_it_is_kept() {
        let word = AtomicU64::new(u64::MAX);
        // SAFETY: the word outlives the lease.
        let lease = unsafe { Lease::keep(&word, Duration::from_millis(50)) }.unwrap();
        let begun = Instant::now();
        // From the last number of all: 0 is the first renewal. None is to be caught at its time.
        while word.load(Ordering::Relaxed).wrapping_add(1) < 4 {
            assert!(begun.elapsed() < Duration::from_secs(20), "not renewed");
            std::thread::yield_now();
        }
        drop(lease);
        let last = word.load(Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(word.load(Ordering::Relaxed), last, "renewed after it was given up");
    }
}
