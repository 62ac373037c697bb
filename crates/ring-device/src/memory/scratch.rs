//! The scratch memory of a block, through which messages pass on their way from ring to ring, and what lies behind it: memory that a kernel
//! declares for its handlers.

use core::cell::UnsafeCell;
use ring_shared::MAX_MESSAGE_BYTES;

/// Least bytes of scratch memory. With what else a block has in block-shared memory it stays below the 48 KiB that every
/// GPU gives a block that asks for nothing.
pub(crate) const SCRATCH_BYTES: usize = 40960;
const _: () = assert!(SCRATCH_BYTES >= 4 * MAX_MESSAGE_BYTES);

/// Bytes of block-shared memory for all that is not scratch memory: what a GPU's block has there, rounded up.
pub(crate) const HEAD_BYTES: usize = 4096;

/// Bytes of block-shared memory in front of what a kernel declares for its handlers, if it does: such a kernel has the least of scratch
/// memory.
pub(crate) const OWN_BYTES: usize = HEAD_BYTES + SCRATCH_BYTES;

/// Most bytes of block-shared memory that a kernel may declare: what compute capability 9.0 gives a block, without what `ring` keeps there.
pub const MAX_SHARED_BYTES: usize = 227 * 1024 - OWN_BYTES;

/// Where the memory of a block is that a kernel declares, at a multiple of 16 on a GPU, and how many bytes there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub at: *mut u8,
    pub bytes: usize,
}

#[cfg(not(target_arch = "nvptx64"))]
impl Room {
    /// No memory at all.
    pub const NONE: Room = Room { at: core::ptr::null_mut(), bytes: 0 };
}

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
