//! Handlers that different threads would run.

ring_device::ring_kernel! {
    pub struct Two;

    fn one(request: &u64) -> u64 {
        *request
    }

    fn other(ctx: &WarpContext, request: &u64, response: &Output<u64>) {
        response.set(0, 0, *request as u32);
    }
}

ring_device::ring_kernel! {
    pub struct States;

    fn one(state: &mut u64, request: &u64) -> u64 {
        *state + *request
    }

    fn other(state: &mut u32, request: &u64) -> u64 {
        *request
    }
}

fn main() {}
