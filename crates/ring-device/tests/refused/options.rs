//! An option that there is not.

ring_device::ring_kernel! {
    /// Wants a colour.
    pub struct Coloured {
        colour: "red",
    }

    fn handle(request: &u64) -> u64 {
        *request
    }
}

fn main() {}
