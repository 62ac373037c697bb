//! The kernels: what runs on the GPU, or on CPU threads.
#![no_std]

ring_device::ring_kernel! {
    /// Squares a number.
    pub struct Square;

    fn handle(request: &u64) -> u64 {
        request.wrapping_mul(*request)
    }
}
