//! The threads that run one lane together: a block on the GPU, a single thread on the CPU. The
//! dispatch loop is written once against these operations.

use core::cell::UnsafeCell;
use core::sync::atomic::AtomicU64;
use ring_shared::MAX_MESSAGE_BYTES;
use ring_shared::ring::Control;

#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(target_arch = "nvptx64")]
mod gpu;
#[cfg(target_arch = "nvptx64")]
pub(crate) mod intrinsics;

#[cfg(not(target_arch = "nvptx64"))]
pub use cpu::{Hooks, Team};
#[cfg(target_arch = "nvptx64")]
pub use gpu::Team;

/// Bytes of a staging window. Whole batches pass through it, and the largest message fits twice.
pub(crate) const WINDOW_BYTES: usize = 16384;
const _: () = assert!(WINDOW_BYTES >= 2 * MAX_MESSAGE_BYTES);

/// Half `lo`, half `hi` of an atom, in memory of the team alone.
pub(crate) type Words = [u64; 2];

/// Messages of a batch on their way through the team.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Window(UnsafeCell<[Words; WINDOW_BYTES / 16]>);

impl Window {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> *mut u8 {
        self.0.get().cast()
    }

    #[inline(always)]
    pub(crate) fn words(&self) -> *mut Words {
        self.0.get().cast()
    }
}

/// What the threads of a team tell each other. Written by one thread, read by the others after a
/// barrier, except `head` and `event`, which the polling warps watch.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Shared {
    /// Index of the next request.
    pub head: AtomicU64,
    /// Index of the last answer that travelled express.
    pub last_express: AtomicU64,
    /// Index after the last request known to be in a slot.
    pub tail: AtomicU64,
    /// Index of the request that `Event::Express` is about.
    pub staged: AtomicU64,
    /// Responses that the host has consumed, as an index.
    pub credit: AtomicU64,
    /// The command word that `Event::Command` is about.
    pub command: AtomicU64,
    /// When a polling warp last looked, in cycles.
    pub looked: AtomicU64,
    /// An [`Event`](crate::dispatch::Event).
    pub event: AtomicU64,
    /// Not 0: the batch is to end, because the host commanded something.
    pub stop: AtomicU64,
    /// Answer of the thread that looked, for all others.
    pub verdict: AtomicU64,
}

/// Memory of one team: block-shared memory on the GPU, the lane's own on the CPU.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct TeamMemory {
    pub(crate) shared: Shared,
    pub(crate) input: Window,
    pub(crate) output: Window,
}

/// One look at a doorbell line.
pub(crate) struct Look {
    /// The control atom.
    pub control: Control,
    /// The host's command word, if it was asked for.
    pub command: u64,
    /// The payload atoms: all of them on the CPU, this thread's own on the GPU.
    pub(crate) atoms: LookAtoms,
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) type LookAtoms = [Words; ring_shared::ring::CONTROL];
#[cfg(target_arch = "nvptx64")]
pub(crate) type LookAtoms = Words;
