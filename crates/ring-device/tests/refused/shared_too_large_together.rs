//! Several parts that are more together than there can be.

ring_device::ring_kernel! {
    struct Tables {
        shared: {
            ONE: [f32; 30_000],
            TWO: [u64; 10_000],
        },
    }

    fn handle(request: &u32) -> u32 {
        *request
    }
}

fn main() {}
