//! A block that is no whole number of warps.

ring_device::ring_kernel! {
    /// Wants 100 threads.
    pub struct Odd {
        threads: 100,
    }

    fn handle(request: &u64) -> u64 {
        *request
    }
}

fn main() {}
