//! A handler that keeps its state when the call is over: the host may read it then.

use std::cell::Cell;

thread_local! {
    static KEPT: Cell<Option<&'static mut u64>> = const { Cell::new(None) };
}

ring_device::ring_kernel! {
    /// Keeps its state.
    pub struct Keeps;

    fn handle(state: &mut u64, request: &u64) -> u64 {
        KEPT.set(Some(state));
        *request
    }
}

fn main() {}
