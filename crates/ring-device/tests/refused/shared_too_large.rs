//! More memory for the threads of a block than there can be.

ring_device::ring_kernel! {
    struct Table {
        shared: { TABLE: [f32; 50_000] },
    }

    fn handle(request: &u32) -> u32 {
        *request
    }
}

fn main() {}
