//! How often a tick comes that there is not.

ring_device::ring_kernel! {
    struct Wrong { tick_every: core::time::Duration::from_millis(1), }

    fn handle(sum: &mut u64, n: &u64) -> u64 {
        *sum ^ *n
    }
}

fn main() {}
