//! What `ring_kernel!` makes of a kernel's options.

use ring_device::Kernel;

ring_device::ring_kernel! {
    /// Uses memory outside its messages.
    pub struct Plain { uses_payload: true }
    fn handle(_: &ThreadContext, request: &u64) -> u64 {
        *request
    }
}

ring_device::ring_kernel! {
    /// And wants it cached.
    pub struct Cached {
        uses_payload: true,
        prefers_l1: true,
    }
    fn handle(_: &ThreadContext, request: &u64) -> u64 {
        *request
    }
}

/// Whether a kernel uses memory outside its messages, and prefers the L1 cache.
fn declared<K: Kernel>() -> (bool, bool) {
    (K::USES_PAYLOAD, K::PREFERS_L1)
}

#[test]
fn a_kernel_prefers_the_l1_cache_where_it_says_so() {
    assert_eq!((declared::<Plain>(), declared::<Cached>()), ((true, false), (true, true)));
}
