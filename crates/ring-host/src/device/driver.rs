//! What the runtime asks of a device, as sealed traits: what they promise keeps memory safe.
//!
//! Two implementations: [`cpu`](super::cpu), threads that run the handlers compiled for the host, and
//! `cuda`; and `quirks`, which wraps either and takes things away.

use super::peers::NoPeer;
use super::{DeviceInfo, Health, Occupancy, Resources, pages};
use crate::device::image::{Image, ImageError, Loaded};
use crate::device::probe::{NoQuickPages, Probed, QuickPages};
use crate::error::{DriverError, OpenError};
use ring_device::{BlockMemory, Hooks};
use std::fmt::Debug;
use std::ptr::NonNull;
use std::sync::Arc;

/// Pinned memory.
#[derive(Clone, Copy, Debug)]
pub struct Mapped {
    /// Where the host sees it, aligned to 128 bytes at least.
    pub host: NonNull<u8>,
    /// Where the device's kernels see it; 0 if they do not.
    pub device: u64,
    /// Its size, less [`quick`](Self::quick).
    pub bytes: usize,
    /// Bytes behind it, from the next page on, that the device reads sooner than other pages; mostly none.
    pub quick: usize,
    /// Pages of the process's own; else the driver's.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub registered: bool,
}

impl Mapped {
    /// Where the quick bytes begin.
    pub(crate) fn quick_at(&self) -> usize {
        if self.quick == 0 { self.bytes } else { pages::whole(self.bytes) }
    }

    /// Its bytes with the quick ones.
    pub(crate) fn all(&self) -> usize {
        self.quick_at() + self.quick
    }
}

// SAFETY: an address range; who may touch it is the owner's business.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

/// A kernel as the CPU runs it: address of its parameter, the block and how many there are, memory of the block, hooks.
pub type CpuEntry = unsafe fn(u64, (u32, u32), &mut BlockMemory, Hooks);

/// A kernel's code, for either kind of device.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Name of the entry in the image.
    pub entry: &'static str,
    /// PTX, for a GPU.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub image: &'a Image,
    /// Bytes of dynamic block-shared memory that a GPU's block of so many threads wants.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub shared_bytes: fn(u32) -> u32,
    /// Whether a GPU's multiprocessor that has a block leaves its L1 cache what the block does not want of block-shared memory.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub prefers_l1: bool,
    /// The same code compiled for the host.
    pub cpu: CpuEntry,
}

/// What a loaded kernel may be launched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most threads a block, for this kernel on this device.
    pub threads: u32,
    /// Most blocks of this size that are resident at once on an otherwise idle device.
    pub blocks: u32,
    /// What a block of this size takes of a multiprocessor.
    pub block: Resources,
}

/// How a kernel is put on the device.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Blocks: one for each channel, or those of a kernel of scope `Grid`.
    pub blocks: u32,
    /// Threads a block.
    pub threads: u32,
    /// All blocks at once or none.
    #[cfg_attr(not(any(feature = "cuda", feature = "quirks")), allow(dead_code))]
    pub cooperative: bool,
}

/// Whether work that was given to the device is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunState {
    /// It may still touch its memory.
    Running,
    /// It is over.
    Ended,
    /// The device stopped with an error.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    Faulted(DriverError),
}

impl RunState {
    /// Whether it is over; or the error that the device stopped with.
    pub(crate) fn ended(self) -> Result<bool, DriverError> {
        match self {
            RunState::Running => Ok(false),
            RunState::Ended => Ok(true),
            RunState::Faulted(error) => Err(error),
        }
    }
}

/// What both sides may use at the same time as it is copied: the unit that is copied as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cells {
    /// Lines and slots: 16 bytes, as [`Atom`](ring_shared::atomics::Atom).
    Atoms,
    /// Payload and buffers: 4 bytes.
    Words,
}

/// Which way a copy goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyKind {
    /// To the device.
    HostToDevice,
    /// From the device.
    DeviceToHost,
}

/// A copy between host memory and device memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryCopy {
    /// Which way.
    pub kind: CopyKind,
    /// Where in host memory.
    pub host: NonNull<u8>,
    /// Where in device memory.
    pub device: u64,
    /// How many bytes.
    pub bytes: usize,
    /// What is copied as one.
    pub cells: Cells,
}

impl MemoryCopy {
    /// Destination and source, where the host sees device memory at the device's addresses.
    pub(crate) fn ends(&self) -> (*mut u8, *const u8) {
        let (host, device) =
            (self.host.as_ptr(), std::ptr::with_exposed_provenance_mut(self.device as usize));
        match self.kind {
            CopyKind::HostToDevice => (device, host),
            CopyKind::DeviceToHost => (host, device),
        }
    }
}

/// Whether a kernel was launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Launched {
    /// It is on the device, or stands behind what is.
    Yes,
    /// No: the driver does something, such as loading code, that would wait for the kernel to end. Try
    /// again.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    NotYet,
}

/// Copies that follow each other, beside whatever runs on the device.
pub trait CopyLane: Sealed + Send + Sync + Debug {
    /// Whether a copy is under way. Never blocks.
    fn copies(&self) -> RunState;

    /// Begins a copy, beside launches, behind the copies before it.
    ///
    /// # Safety
    /// Both ranges are as long as the copy says, whole cells at multiples of a cell, and stay until the
    /// copy is over; nobody else writes them meanwhile but in such cells, as atomics.
    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError>;
}

/// A place for one kernel's launches, one behind the other, and the copies of its memory.
pub trait LaunchSlot: CopyLane {
    /// Launches the kernel once more, behind its launches before. Returns at once, also if that cannot
    /// be now. `replay`: through
    /// the graph that the launch slot was made with. A device may hold it back until
    /// [`state`](Self::state) is asked.
    ///
    /// # Safety
    /// The parameter given to [`Function::launch_slot`] is what the entry needs, and stays so until
    /// [`is_over`](Self::is_over).
    unsafe fn launch(&self, replay: bool) -> Result<Launched, DriverError>;

    /// Whether a launch is on the device or waits for it. Never blocks.
    fn state(&self) -> RunState;

    /// Whether neither a launch nor a copy touches memory any more.
    fn is_over(&self) -> bool;

    /// Tells how many messages were handled: an emulated device may break after some.
    fn note_processed(&self, _processed: u64) {}
}

/// A kernel that was loaded.
pub trait Function: Sealed + Send + Sync + Debug {
    /// What it may be launched with in blocks of `threads` threads.
    fn limits(&self, threads: u32) -> Result<Limits, DriverError>;

    /// Makes ready to launch it, with one parameter; `replay`: also through a graph.
    fn launch_slot(
        &self,
        grid: Grid,
        parameter: u64,
        replay: bool,
    ) -> Result<Arc<dyn LaunchSlot>, DriverError>;
}

/// A device. No call blocks while a kernel is resident, whoever launched it.
pub trait Driver: Sealed + Send + Sync + Debug + 'static {
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// The kernels that there is room reserved for.
    fn occupancy(&self) -> &Occupancy;

    /// What was found out about it.
    fn probed(&self) -> &Probed;

    /// Whether the host renews its kernels' leases: a device can be emulated on which it seems dead.
    fn renews(&self) -> bool {
        true
    }

    /// Allocates pinned memory that copies reach and, if the device maps host memory, kernels too;
    /// zeroed.
    fn alloc_pinned(&self, bytes: usize) -> Result<Mapped, DriverError>;

    /// The same with quick pages behind it, if the device is found to read some sooner: it is probed with one of
    /// `kernels`. What was found.
    fn alloc_with_quick(
        &self,
        bytes: usize,
        _kernels: &Image,
    ) -> Result<(Mapped, QuickPages), DriverError> {
        Ok((self.alloc_pinned(bytes)?, QuickPages::Unused(NoQuickPages::NoGpu)))
    }

    /// Frees it; it may be kept for the next memory of that size.
    ///
    /// # Safety
    /// From `alloc_pinned` or `alloc_with_quick` of this driver, and nothing uses it any more.
    unsafe fn free_pinned(&self, memory: Mapped);

    /// Allocates device memory; its address there.
    fn alloc_device(&self, bytes: usize) -> Result<u64, DriverError>;

    /// Frees it; it may be kept for the next `alloc_device` of that size.
    ///
    /// # Safety
    /// From `alloc_device` of this driver with that size, and nothing uses it any more.
    unsafe fn free_device(&self, address: u64, bytes: usize);

    /// Makes a lane for copies that are no kernel's. It is dropped when none is under way.
    fn copy_lane(&self) -> Result<Arc<dyn CopyLane>, DriverError>;

    /// Where its kernels see pinned memory of another device of the process.
    fn sees(&self, host: NonNull<u8>) -> Result<u64, DriverError>;

    /// The index of a GPU; CPU threads have none.
    fn index(&self) -> Option<usize> {
        None
    }

    /// Lets its kernels reach the memory of another device, for the rest of the process. Why they cannot, if so.
    fn reach(&self, other: &dyn Driver) -> Result<(), NoPeer>;

    /// Whether that is the context of the driver's that its memory belongs to.
    #[cfg(feature = "cuda")]
    fn is_context(&self, _: cudarc::driver::sys::CUcontext) -> bool {
        false
    }

    /// Whether it serves. Asks the driver, and changes nothing.
    fn health(&self) -> Health {
        Health::Serving
    }

    /// The device that serves from now on, if this one was reset by another user of the process;
    /// `None` if this one serves.
    fn recovered(&self) -> Result<Option<Arc<dyn Driver>>, OpenError>;

    /// Loads every kernel of an image, unless it was before. CPU threads load nothing.
    fn load_all(&self, _: &Image) -> Result<Loaded, ImageError> {
        Ok(Loaded::Host)
    }

    /// Makes a kernel ready. Slow the first time an image is seen.
    fn load(&self, program: Program<'_>) -> Result<Arc<dyn Function>, ImageError>;
}

impl dyn Driver {
    /// The index of a GPU, and the device's name, as errors and the log have it.
    pub(crate) fn label(&self) -> String {
        let name = &self.info().name;
        self.index().map_or_else(|| name.clone(), |index| format!("cuda:{index}, {name}"))
    }
}

/// Nobody else implements the traits here: their promises keep memory safe.
mod sealed {
    pub trait Sealed {}
}
pub(crate) use sealed::Sealed;
