//! A handler that takes its request by value, one that answers nothing, and one of a warp that wants a state.

ring_device::ring_kernel! {
    /// By value.
    pub struct ByValue;

    fn handle(request: u64) -> u64 {
        request
    }
}

ring_device::ring_kernel! {
    /// No answer.
    pub struct Silent;

    fn handle(request: &u64) {
        let _ = request;
    }
}

ring_device::ring_kernel! {
    /// A warp with a state.
    pub struct Keeps;

    fn handle(ctx: &WarpContext, state: &mut u64, request: &u64, out: &mut Ports) {
        *state += request;
    }
}

fn main() {}
