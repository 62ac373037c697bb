//! Atomics and locks between threads of the host: std's, and loom's under the model checker, which must know
//! of each. What host and device share is [`ring_shared::atomics`]' business.

#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64},
};

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64},
};

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
