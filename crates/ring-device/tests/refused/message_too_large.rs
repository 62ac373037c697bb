//! A message larger than what a slot can be.

ring_device::ring_kernel! {
    /// Takes too much at once.
    pub struct Large;

    fn handle(request: &[u64; 2000]) -> u64 {
        request[0]
    }
}

fn main() {}
