//! An entry point whose name PTX does not take.

ring_device::ring_kernel! {
    /// Named with a dash.
    pub struct Dashed {
        entry: "my-kernel",
    }

    fn handle(request: &u64) -> u64 {
        *request
    }
}

fn main() {}
