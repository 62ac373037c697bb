//! How much block-shared memory a kernel is launched with.

use ring_device::{Echo, Kernel, VectorAdd, ring_kernel, shared_bytes};

ring_kernel! {
    /// The largest messages, by a warp.
    struct Largest;

    fn handle(_ctx: &WarpContext, _request: &[u32; 2048], _response: &Output<[u32; 2048]>) {}
}

ring_kernel! {
    /// Messages of 256 bytes, by a warp.
    struct Middle;

    fn handle(_ctx: &WarpContext, _request: &[u32; 64], _response: &Output<[u32; 64]>) {}
}

const KIB: u32 = 1024;

fn of_all_threads<K: Kernel>() -> Vec<u32> {
    (1..=32).map(|warps| shared_bytes::<K>(32 * warps)).collect()
}

#[test]
fn every_gpu_has_the_least_and_two_of_the_most_fit_a_multiprocessor() {
    let all = [
        of_all_threads::<Echo>(),
        of_all_threads::<VectorAdd>(),
        of_all_threads::<Middle>(),
        of_all_threads::<Largest>(),
    ];
    for bytes in all {
        assert!(bytes.is_sorted(), "{bytes:?}");
        assert!(bytes.iter().all(|bytes| bytes % 16 == 0), "{bytes:?}");
        assert!(bytes[0] <= 48 * KIB, "{bytes:?}");
        // Compute capability 9.0 has 228 KiB, of which the driver keeps 1 KiB a block.
        assert!(bytes[31] + KIB <= 114 * KIB, "{bytes:?}");
    }
}

#[test]
fn a_kernel_of_the_block_needs_no_stages() {
    assert_eq!(shared_bytes::<VectorAdd>(32), shared_bytes::<VectorAdd>(1024));
}

#[test]
fn each_worker_has_room_for_two_kib_of_requests_and_their_responses() {
    let head = shared_bytes::<VectorAdd>(512) - 40 * KIB;
    // The first two of sixteen warps have other things to do.
    assert_eq!(shared_bytes::<Middle>(512), head + 14 * 4 * KIB);
    // One message is larger; six workers' fit in 108 KiB.
    assert_eq!(shared_bytes::<Largest>(512), head + 6 * 16 * KIB);
}
