//! A tick that gives something.

ring_device::ring_kernel! {
    struct Wrong;

    fn handle(sum: &mut u64, n: &u64) -> u64 {
        *sum ^ *n
    }

    fn tick(sum: &u64) -> u64 {
        *sum
    }
}

fn main() {}
