//! The scratch memory of a block, through which messages pass on their way from ring to ring.

use core::cell::UnsafeCell;
use ring_shared::MAX_MESSAGE_BYTES;

/// Least bytes of scratch memory. With what else a block has in block-shared memory it stays below the 48 KiB that every
/// GPU gives a block that asks for nothing.
pub(crate) const SCRATCH_BYTES: usize = 40960;
const _: () = assert!(SCRATCH_BYTES >= 4 * MAX_MESSAGE_BYTES);

/// Room for messages on their way through the block. A GPU's block may have more behind it.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Scratch(UnsafeCell<[[u64; 2]; SCRATCH_BYTES / 16]>);

impl Scratch {
    /// The room from `at` bytes on, a multiple of 16 inside it.
    #[inline(always)]
    pub fn bytes(&self, at: usize) -> *mut u8 {
        let has_more = cfg!(target_arch = "nvptx64");
        debug_assert!(has_more || at < SCRATCH_BYTES, "{at} is beyond the scratch memory");
        self.0.get().cast::<u8>().wrapping_add(at)
    }
}
