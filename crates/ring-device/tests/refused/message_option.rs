//! Messages and a state that are not plain bytes, though they are of numbers: an answer that may not be there,
//! a request that is true or false, an answer written by a warp, and what a channel keeps.

ring_device::ring_kernel! {
    /// Answers only some.
    pub struct SomeOf;

    fn handle(request: &u64) -> Option<u64> {
        request.checked_mul(*request)
    }
}

ring_device::ring_kernel! {
    /// Counts what is true.
    pub struct Truth;

    fn handle(request: &bool) -> u32 {
        u32::from(*request)
    }
}

ring_device::ring_kernel! {
    /// A warp answers only some.
    pub struct SomeOfWarp;

    fn handle(ctx: &WarpContext, request: &u64, response: &Output<Option<u64>>) {
        let _ = (ctx, request, response);
    }
}

ring_device::ring_kernel! {
    /// Keeps the last, if there was one.
    pub struct Last;

    fn handle(state: &mut Option<u64>, request: &u64) -> u64 {
        state.replace(*request).unwrap_or(0)
    }
}

fn main() {}
