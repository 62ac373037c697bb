//! A kernel that a request is too much for.

ring_device::ring_kernel! {
    /// Answers with the square, but cannot bear 13: it panics.
    pub struct Fragile { name: "fragile", }

    fn handle(request: &u64) -> u64 {
        assert_ne!(*request, 13, "a request that the handler cannot bear");
        request.wrapping_mul(*request)
    }
}
