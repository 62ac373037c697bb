//! Tells threads of a test to stop, also where the test panics: a scope that waits for them would else never end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Makes the word true when it is dropped.
#[derive(Debug)]
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}
