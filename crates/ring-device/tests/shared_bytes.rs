//! How much block-shared memory a kernel is launched with.

use ring_device::{
    Echo, Kernel, MAX_SHARED_BYTES, VectorAdd, least_shared_bytes, ring_kernel, shared_bytes,
};

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

ring_kernel! {
    /// Has memory for its handlers, in parts whose ends are no multiples of 16.
    struct Parts {
        shared: {
            A: [u32; 3],
            B: [u64; 1],
            C: [f32; 9],
        },
    }

    fn handle(_ctx: &WarpContext, _request: &[u32; 64], _response: &Output<[u32; 64]>) {}
}

ring_kernel! {
    /// Has as much as there can be.
    struct All {
        shared: { ALL: [u32; MAX_SHARED_BYTES / 4] },
    }

    fn handle(_request: &u32) -> u32 {
        0
    }
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

#[test]
fn what_a_kernel_declares_for_its_handlers_comes_behind_the_least_of_stages() {
    let own = shared_bytes::<VectorAdd>(512);
    assert_eq!((Parts::A.len(), Parts::B.len(), Parts::C.len()), (3, 1, 9));
    assert_eq!((Parts::A.end(), Parts::B.end(), Parts::C.end()), (16, 32, 80));
    for threads in [32, 512, 1024] {
        assert_eq!(shared_bytes::<Parts>(threads), own + 80);
        // Compute capability 9.0 gives a block 227 KiB.
        assert_eq!(shared_bytes::<All>(threads), 227 * KIB);
    }
    assert_eq!((least_shared_bytes::<Parts>(), least_shared_bytes::<All>()), (own + 80, 227 * KIB));
}
