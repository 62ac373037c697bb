//! A message larger than the slot that was declared, there and back.

ring_device::ring_kernel! {
    /// Promises small messages.
    pub struct Small {
        slot_bytes: 16,
    }

    fn handle(request: &[u64; 4]) -> u64 {
        request[0]
    }
}

ring_device::ring_kernel! {
    /// Promises small answers.
    pub struct SmallAnswers {
        slot_bytes: 16,
    }

    fn handle(request: &u64) -> [u64; 4] {
        [*request; 4]
    }
}

fn main() {}
