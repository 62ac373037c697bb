//! Why a kernel was not launched.

use super::obstacle::listed;
use super::{
    ArenaKind, BlockLimit, Budget, ChannelLimit, DeviceFault, DriverError, PayloadError, Refusal,
    ThreadLimit, WindowLimit,
};
use crate::device::Crowded;
use crate::device::image::ImageError;
use crate::mode::{Memory, Mode};
use ring_shared::ring::{MAX_CAPACITY, MAX_START};
use std::time::Duration;

/// Why a kernel was not launched. Nothing was left behind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// The capacity is 0, not a power of two, or too large.
    #[error("capacity {0} is not a power of two in 1..={MAX_CAPACITY}")]
    Capacity(u32),
    /// The window is 0, not a power of two, or too long.
    #[error(
        "a window of {lines} doorbell lines, but it must be a power of two in 1..={limit} ({why})"
    )]
    Window {
        /// Lines asked for.
        lines: u32,
        /// The most there can be.
        limit: u32,
        /// What sets the limit.
        why: WindowLimit,
    },
    /// The first index leaves too little room to count on.
    #[error("start index {0} is above {MAX_START}")]
    StartIndex(u64),
    /// The rings do not fit what is left of the arena.
    #[error(
        "kernel {kernel} needs {needed} bytes of {which} memory side by side, but of the arena's \
         {arena} bytes {free} are free; choose a smaller capacity, or a larger arena (RuntimeConfig)"
    )]
    Arena {
        /// The kernel.
        kernel: &'static str,
        /// Which memory.
        which: ArenaKind,
        /// Bytes needed.
        needed: usize,
        /// Bytes free, perhaps not side by side.
        free: usize,
        /// The whole arena, in bytes.
        arena: usize,
    },
    /// More channels than the device or the grid allows, or none.
    #[error("{channels} channels, but there must be 1..={limit} ({why})")]
    Channels {
        /// Channels asked for.
        channels: u32,
        /// The most there can be now.
        limit: u32,
        /// What sets the limit.
        why: ChannelLimit,
    },
    /// More blocks of a grid than there can be, or none.
    #[error("{blocks} blocks, but there must be 1..={limit} ({why})")]
    Blocks {
        /// Blocks asked for, or one for each multiprocessor if nobody chose.
        blocks: u32,
        /// The most there can be.
        limit: u32,
        /// What sets the limit.
        why: BlockLimit,
    },
    /// Blocks were chosen for a kernel that has one for each channel.
    #[error(
        "{blocks} blocks for kernel {kernel}, which is not of scope Grid and has a block for each channel; choose channels"
    )]
    NoGrid {
        /// The kernel.
        kernel: &'static str,
        /// Blocks asked for.
        blocks: u32,
    },
    /// A grid handles each message with all its blocks, so it has one channel.
    #[error(
        "{channels} channels for kernel {kernel}, which is of scope Grid: all its blocks handle each message of one channel; choose blocks"
    )]
    GridChannels {
        /// The kernel.
        kernel: &'static str,
        /// Channels asked for.
        channels: u32,
    },
    /// The channels may never all become resident beside the kernels that are launched, or would keep one
    /// of those from it.
    #[error(transparent)]
    Crowded(#[from] Crowded),
    /// The block is no whole number of warps, or too small for the kernel, or too large for it or the device.
    #[error(
        "{threads} threads a block, but it must be a multiple of 32 in {least}..={limit} ({why})"
    )]
    Threads {
        /// Threads asked for.
        threads: u32,
        /// The fewest there can be.
        least: u32,
        /// The most there can be.
        limit: u32,
        /// What sets the limit.
        why: ThreadLimit,
    },
    /// The device gives a block less block-shared memory than the kernel declares.
    #[error(
        "kernel {kernel} declares {declared} bytes of block-shared memory and needs {needed} with its own, but the device gives a block \
         {limit}; declare less (`shared` in ring_kernel!)"
    )]
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// Bytes that it declares.
        declared: usize,
        /// Bytes that a block needs.
        needed: u32,
        /// The most that the device gives one.
        limit: u32,
    },
    /// A message does not fit the slot.
    #[error("messages of {bytes} bytes do not fit slots of {slot} bytes; choose larger slots")]
    Slot {
        /// Bytes of the message.
        bytes: usize,
        /// Bytes of the slot asked for.
        slot: usize,
    },
    /// A budget is zero: the kernel would leave before it answered anything.
    #[error("the {0} budget is zero; choose more, or none (u64::MAX iterations)")]
    Budget(Budget),
    /// An iteration may take no message.
    #[error("max_messages is 0, but an iteration must take at least 1 message")]
    MaxMessages,
    /// The lease is too short to be renewed in time.
    #[error(
        "a lease of {lease:?} is too short: it must be {least:?} at least; Duration::MAX is for ever"
    )]
    Lease {
        /// The lease asked for.
        lease: Duration,
        /// The shortest.
        least: Duration,
    },
    /// The thread that renews leases cannot be started.
    #[error("no thread to renew leases: {0}; ask for none (a lease of Duration::MAX)")]
    LeaseThread(#[source] DriverError),
    /// The mode or the memory cannot be had.
    #[error(
        "kernel {kernel} cannot run as asked (mode {mode}, memory {memory}): {}; ask for others, or for auto",
        listed(refused)
    )]
    Unfit {
        /// The kernel.
        kernel: &'static str,
        /// The mode asked for.
        mode: Mode,
        /// The memory asked for.
        memory: Memory,
        /// Why not, for each that was considered.
        refused: Vec<Refusal>,
    },
    /// Cooperative launch was demanded, but the device has none.
    #[error("device '{0}' has no cooperative launch; use Cooperative::Auto or Never")]
    NotCooperative(String),
    /// The PTX cannot be used.
    #[error("kernel {kernel}: {source}")]
    Image {
        /// The kernel.
        kernel: &'static str,
        /// What is wrong with it.
        source: ImageError,
    },
    /// What the kernel keeps from message to message could not be cleared.
    #[error("kernel {kernel}: its state was not cleared: {source}")]
    State {
        /// The kernel.
        kernel: &'static str,
        /// Why not.
        source: PayloadError,
    },
    /// A kernel of a graph, or one with grids on several devices, would run otherwise than it can, because the environment asks for it.
    #[error(
        "kernel {kernel} meets others on its devices, and so runs persistent in mapped memory, but the environment asks for mode {mode} and memory {memory} (RING_MODE, RING_MEMORY)"
    )]
    NotResident {
        /// The kernel.
        kernel: &'static str,
        /// The mode asked for.
        mode: Mode,
        /// The memory asked for.
        memory: Memory,
    },
    /// A trace ring cannot have so many records.
    #[error(
        "a trace ring of {records} records: their number must be a power of two, up to {limit} (LaunchConfig::trace)"
    )]
    Trace {
        /// Records asked for.
        records: u32,
        /// The most that there may be.
        limit: u32,
    },
    /// A trace was asked for of a kernel that is not declared with one.
    #[error(
        "kernel {kernel} notes nothing of its messages: declare it with `traced: true` (ring_kernel!), or launch it without LaunchConfig::trace"
    )]
    NotTraced {
        /// The kernel.
        kernel: &'static str,
    },
    /// A kernel with ports was launched alone.
    #[error("kernel {kernel} emits messages to ports: launch it as one of a graph (GraphBuilder)")]
    Ports {
        /// The kernel.
        kernel: &'static str,
    },
    /// The device faulted before.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}
