//! What a PTX module that Rust-CUDA makes exports beside its kernels: as `module` and `entries`, by cuda_std's
//! `#[kernel]`. The panic handler is cuda_std's; it traps.

#[cfg(target_arch = "nvptx64")]
use cuda_std::kernel;

/// [`ring_shared::ABI_VERSION`], to be read from the PTX before it is loaded.
#[unsafe(no_mangle)]
pub static RING_ABI_VERSION: u32 = ring_shared::ABI_VERSION;

/// Writes [`RING_ABI_VERSION`], and ends. Rust-CUDA's compiler drops every static that no kernel reads.
///
/// # Safety
/// `out` has room for a number.
#[cfg(target_arch = "nvptx64")]
#[kernel]
pub unsafe fn ring_abi_version(out: *mut u32) {
    // What the compiler does not know it has to read, and to keep.
    let version = crate::block::intrinsics::opaque64(&raw const RING_ABI_VERSION);
    // SAFETY: our own static; the caller's room.
    unsafe { out.write(version.read()) }
}

/// Writes [`table`](ring_shared::layout::table) as this compiler sees the layouts, and ends.
///
/// # Safety
/// `out` has room for [`ring_shared::layout::TABLE_LEN`] numbers.
#[cfg(all(target_arch = "nvptx64", feature = "entries"))]
#[kernel]
pub unsafe fn ring_layout_probe(out: *mut u64) {
    for (i, number) in ring_shared::layout::table().into_iter().enumerate() {
        // SAFETY: the caller's room.
        unsafe { out.add(i).write(number) };
    }
}
