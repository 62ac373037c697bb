//! What the threads of one block keep in common: in block-shared memory on the GPU, in memory of the
//! channel's own on the CPU. Each part is a struct beside the code that uses it.

pub(crate) mod boot;
pub(crate) mod budget;
pub(crate) mod claims;
#[cfg(test)]
mod claims_model;
pub(crate) mod end;
pub(crate) mod inbox;
pub(crate) mod lease;
#[cfg(not(target_arch = "nvptx64"))]
mod offsets;
pub(crate) mod outbox;
pub(crate) mod progress;
pub(crate) mod signals;
pub(crate) mod span;
pub(crate) mod telemetry;

use core::cell::UnsafeCell;
use ring_shared::MAX_MESSAGE_BYTES;

/// Bytes of the scratch memory, through which messages pass on their way from ring to ring. With what
/// else a block has in block-shared memory it stays below the 48 KiB that every GPU gives a block.
pub(crate) const SCRATCH_BYTES: usize = 40960;
const _: () = assert!(SCRATCH_BYTES >= 4 * MAX_MESSAGE_BYTES);
const _: () = assert!(size_of::<BlockMemory>() <= 48 * 1024);

/// Room for messages on their way through the block.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Scratch(UnsafeCell<[[u64; 2]; SCRATCH_BYTES / 16]>);

impl Scratch {
    /// The room from `at` bytes on, a multiple of 16 inside it.
    #[inline(always)]
    pub fn bytes(&self, at: usize) -> *mut u8 {
        debug_assert!(at < SCRATCH_BYTES, "{at} is beyond the scratch memory");
        self.0.get().cast::<u8>().wrapping_add(at)
    }
}

/// Memory of one block.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct BlockMemory {
    pub(crate) inbox: inbox::Inbox,
    pub(crate) outbox: outbox::Outbox,
    pub(crate) signals: signals::Signals,
    pub(crate) life: signals::Life,
    pub(crate) progress: progress::Progress,
    pub(crate) budget: budget::Budget,
    pub(crate) lease: lease::Lease,
    pub(crate) telemetry: telemetry::Telemetry,
    pub(crate) boot: boot::Words,
    pub(crate) scratch: Scratch,
}

#[cfg(not(target_arch = "nvptx64"))]
impl BlockMemory {
    /// Zeroed memory.
    #[allow(clippy::new_without_default)] // 43 KiB are not made by accident
    pub const fn new() -> BlockMemory {
        // SAFETY: integers, atomics of integers and cells of integers; zero is valid for each.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }
}
