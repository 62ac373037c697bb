//! A handler that keeps its request for the next call.

use std::cell::Cell;

thread_local! {
    static BEFORE: Cell<Option<&'static u64>> = const { Cell::new(None) };
}

ring_device::ring_kernel! {
    /// Keeps what it was shown.
    pub struct Keeps;

    fn handle(request: &u64) -> u64 {
        BEFORE.replace(Some(request)).map_or(0, |before| *before)
    }
}

fn main() {}
