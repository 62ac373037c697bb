//! Messages that fill their slots, but not the atoms of a doorbell line.

ring_device::ring_kernel! {
    /// Adds one to each word of 16 bytes.
    pub struct Two;

    fn handle(request: &[u64; 2]) -> [u64; 2] {
        request.map(|word| word.wrapping_add(1))
    }
}

ring_device::ring_kernel! {
    /// Adds one to each word of 80 bytes.
    pub struct Ten;

    fn handle(request: &[u64; 10]) -> [u64; 10] {
        request.map(|word| word.wrapping_add(1))
    }
}
