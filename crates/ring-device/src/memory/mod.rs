//! What the threads of one block keep in common: in block-shared memory on the GPU, in memory of the
//! channel's own on the CPU. Each part is a struct beside the code that uses it.

pub(crate) mod boot;
pub(crate) mod budget;
pub(crate) mod calls;
pub(crate) mod claims;
#[cfg(test)]
mod claims_model;
pub(crate) mod devices;
#[cfg(test)]
mod devices_model;
pub(crate) mod end;
pub(crate) mod flow;
#[cfg(test)]
mod flow_model;
pub(crate) mod grid;
#[cfg(test)]
mod grid_model;
pub(crate) mod inbox;
pub(crate) mod lease;
pub(crate) mod links;
pub(crate) mod meeting;
#[cfg(test)]
mod model;
#[cfg(not(target_arch = "nvptx64"))]
mod offsets;
pub(crate) mod outbox;
pub(crate) mod progress;
#[cfg(test)]
mod progress_model;
pub(crate) mod scratch;
pub(crate) mod signals;
pub(crate) mod span;
pub(crate) mod telemetry;
pub(crate) mod ticks;
pub(crate) mod trace;

use ring_shared::layout::ConfigLine;
use scratch::Scratch;

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
    pub(crate) ticks: ticks::Ticks,
    pub(crate) calls: calls::Calls,
    pub(crate) trace: trace::Trace,
    pub(crate) grid: grid::GridCells,
    pub(crate) boot: boot::Words,
    /// The last: a GPU's block may have more of it behind this.
    pub(crate) scratch: Scratch,
}

impl BlockMemory {
    /// Most messages of an iteration, as the host has configured it.
    #[inline(always)]
    pub(crate) fn boot_max_messages(&self) -> u32 {
        self.boot.half(boot::CONFIG, core::mem::offset_of!(ConfigLine, max_messages))
    }
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
