//! A tick of a kernel that keeps no state.

ring_device::ring_kernel! {
    struct Wrong;

    fn handle(n: &u64) -> u64 {
        *n
    }

    fn tick(sum: &mut u64) {
        *sum = 1;
    }
}

fn main() {}
