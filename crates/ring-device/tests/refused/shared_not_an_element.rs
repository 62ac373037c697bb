//! Memory of elements that there are none of.

ring_device::ring_kernel! {
    struct Flags {
        shared: { FLAGS: [bool; 32] },
    }

    fn handle(request: &u32) -> u32 {
        *request
    }
}

fn main() {}
