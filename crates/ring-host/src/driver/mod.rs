//! What the runtime asks of a device. Nothing here is on a message's path.
//!
//! Two implementations: [`cpu`], threads that run the handlers compiled for the host, and `cuda`.

pub mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
mod residency;

pub use residency::{Residency, Share};

use crate::deadline::Deadline;
use crate::device::DeviceInfo;
use crate::error::{DriverError, PayloadError};
use crate::image::{Image, ImageError};
use ring_device::{Hooks, TeamMemory};
use std::fmt::Debug;
use std::ptr::NonNull;
use std::sync::Arc;

/// Memory that host and device both see.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Where the host sees it, aligned to 128 bytes at least.
    pub host: NonNull<u8>,
    /// Where the device sees it.
    pub device: u64,
    /// Its size.
    pub bytes: usize,
}

// SAFETY: an address range; who may touch it is the owner's business.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// A kernel as the CPU runs it: address of its parameter, lane, memory of the lane's team, hooks.
pub type CpuEntry = unsafe fn(u64, u32, &mut TeamMemory, Hooks);

/// A kernel's code, for either kind of device.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Name of the entry in the image.
    pub entry: &'static str,
    /// PTX, for a GPU.
    pub image: &'a Image,
    /// The same code compiled for the host.
    pub cpu: CpuEntry,
}

/// What a loaded kernel may be launched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most threads a block, for this kernel on this device.
    pub threads: u32,
    /// Most lanes of this block size that are resident at once on an otherwise idle device.
    pub lanes: u32,
}

/// How a kernel is put on the device.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Blocks.
    pub lanes: u32,
    /// Threads a block.
    pub threads: u32,
    /// All blocks at once or none.
    pub cooperative: bool,
}

/// Whether a launched kernel still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It may still touch its memory.
    Running,
    /// It has left the device.
    Ended,
    /// The device stopped with an error; nothing runs on it any more.
    Faulted(DriverError),
}

/// A launched kernel.
pub trait Running: Send + Sync + Debug {
    /// Whether it runs, or a copy for it. Never blocks.
    fn state(&self) -> RunState;

    /// Waits until no copy is under way: one whose wait ended early may still be.
    fn settle(&self, end: Deadline) -> Result<(), PayloadError>;

    /// Copies mapped memory to device memory, beside the running kernel, and waits.
    ///
    /// # Safety
    /// Both ranges are `bytes` long, whole words at multiples of 4, and stay until [`state`](Self::state) is no longer `Running`;
    /// nobody else touches them meanwhile.
    unsafe fn copy_in(
        &self,
        to: u64,
        from: Mapped,
        bytes: usize,
        end: Deadline,
    ) -> Result<(), PayloadError>;

    /// Copies device memory to mapped memory, beside the running kernel, and waits.
    ///
    /// # Safety
    /// As for `copy_in`.
    unsafe fn copy_out(
        &self,
        to: Mapped,
        from: u64,
        bytes: usize,
        end: Deadline,
    ) -> Result<(), PayloadError>;
}

/// A kernel that was loaded.
pub trait Function: Send + Sync + Debug {
    /// What it may be launched with in blocks of `threads` threads.
    fn limits(&self, threads: u32) -> Result<Limits, DriverError>;

    /// Puts it on the device, with one parameter, and returns at once.
    ///
    /// # Safety
    /// `parameter` is what the entry needs, valid until the kernel has ended or faulted.
    unsafe fn launch(&self, grid: Grid, parameter: u64) -> Result<Arc<dyn Running>, DriverError>;
}

/// A device. No call blocks while a kernel is resident, whoever launched it.
pub trait Driver: Send + Sync + Debug {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// How much of it is occupied.
    fn residency(&self) -> &Residency;

    /// Takes memory that both sides see, zeroed.
    fn take_mapped(&self, bytes: usize) -> Result<Mapped, DriverError>;

    /// Gives it back; it may be kept for the next `take_mapped` of that size.
    ///
    /// # Safety
    /// From `take_mapped` of this driver, and nothing uses it any more.
    unsafe fn give_mapped(&self, memory: Mapped);

    /// Takes device memory; its address there.
    fn take_device(&self, bytes: usize) -> Result<u64, DriverError>;

    /// Gives it back; it may be kept for the next `take_device` of that size.
    ///
    /// # Safety
    /// From `take_device` of this driver with that size, and nothing uses it any more.
    unsafe fn give_device(&self, address: u64, bytes: usize);

    /// Makes a kernel ready. Slow the first time an image is seen.
    fn load(&self, program: Program<'_>) -> Result<Arc<dyn Function>, ImageError>;
}
