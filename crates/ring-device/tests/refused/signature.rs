//! A handler that takes its request by value, and one that answers nothing.

ring_device::ring_kernel! {
    /// By value.
    pub struct ByValue;

    fn handle(request: u64) -> u64 {
        request
    }
}

ring_device::ring_kernel! {
    /// No answer.
    pub struct Silent;

    fn handle(request: &u64) {
        let _ = request;
    }
}

fn main() {}
