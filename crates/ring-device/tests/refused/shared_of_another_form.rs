//! Memory for the threads of a block that is declared otherwise.

ring_device::ring_kernel! {
    struct Sums {
        shared: { SUMS: f32 },
    }

    fn handle(request: &u32) -> u32 {
        *request
    }
}

fn main() {}
