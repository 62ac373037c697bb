//! A message larger than the slot that was declared.

ring_device::ring_kernel! {
    /// Promises small messages.
    pub struct Small {
        slot_bytes: 16,
    }

    fn handle(request: &[u64; 4]) -> u64 {
        request[0]
    }
}

fn main() {}
