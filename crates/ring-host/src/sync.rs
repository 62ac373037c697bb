//! Atomics and locks between threads of the host: std's, and loom's under the model checker, which must know
//! of each. What host and device share is [`ring_shared::atomics`]' business.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, fence},
};

#[cfg(not(loom))]
pub(crate) use std::thread::{Thread, current};

#[cfg(loom)]
pub(crate) use loom::thread::{Thread, current};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, fence},
};

/// What a lock gives, also one that a panic has poisoned.
pub(crate) fn unpoisoned<T>(locked: LockResult<T>) -> T {
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// The same of a lock of std's.
pub(crate) fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    unpoisoned(mutex.lock())
}

/// The same, unless another thread has it.
pub(crate) fn unless_locked<T>(locked: TryLockResult<T>) -> Option<T> {
    match locked {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// How often a lock that others have briefly is tried before the thread is parked for it. Behind try `n` it pauses for 2^n spins.
const TRIES: u32 = if cfg!(loom) { 0 } else { 7 };

/// Locks what all lock for no more than the time that sending a message takes, so that it is seldom worth while to be parked for it.
pub(crate) fn lock_briefly<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    for n in 0..TRIES {
        if let Some(locked) = unless_locked(mutex.try_lock()) {
            return locked;
        }
        (0..1 << n).for_each(|_| std::hint::spin_loop());
    }
    unpoisoned(mutex.lock())
}

/// As std's, which loom does not have: whoever finds a value has acquired what was there when it was set.
#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    value: std::sync::OnceLock<T>,
    set: AtomicBool,
}

#[cfg(loom)]
impl<T> OnceLock<T> {
    pub fn new() -> OnceLock<T> {
        OnceLock { value: std::sync::OnceLock::new(), set: AtomicBool::new(false) }
    }

    pub fn get(&self) -> Option<&T> {
        // SYNC: acquires `get_or_init`.
        self.set.load(std::sync::atomic::Ordering::Acquire).then(|| self.value.get())?
    }

    pub fn get_or_init(&self, value: impl FnOnce() -> T) -> &T {
        let value = self.value.get_or_init(value);
        // SYNC: released to `get`.
        self.set.store(true, std::sync::atomic::Ordering::Release);
        value
    }
}
