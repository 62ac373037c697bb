//! The threads that run one lane together: a block on the GPU, a single thread on the CPU. The
//! dispatch loop is written once against these operations.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ring_shared::MAX_MESSAGE_BYTES;
use ring_shared::layout::BUCKETS;
use ring_shared::ring::Control;

pub(crate) mod boot;

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

/// Warps that poll. A read across the bus takes about a microsecond; two, half of that apart, see
/// a message 0.5 us sooner than one. More than two reads of a line in flight queue up.
pub(crate) const POLLERS: usize = 2;

/// What a launch is like, in bits of `Shared::flags`.
pub(crate) mod flag {
    /// One of the budgets is limited.
    pub const LIMITED: u64 = 1;
    /// Commands are looked at after every iteration.
    pub const EAGER: u64 = 2;
}

/// What the threads of a team tell each other. Written by one thread, read by the others after a
/// barrier, except `head` and `event`, which the polling warps watch, and what the polling warps
/// note when each answers by itself (`last_express`, `quiet`, `allowed`, `limit`, `refused`).
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Shared {
    /// Index of the next request.
    pub head: AtomicU64,
    /// Index of the last answer that travelled express.
    pub last_express: AtomicU64,
    /// Index after the last request known to be in a slot.
    pub tail: AtomicU64,
    /// Index of the request that `event::EXPRESS` is about.
    pub staged: AtomicU64,
    /// Responses that the host has consumed, as an index.
    pub credit: AtomicU64,
    /// The command word that `event::COMMAND` is about.
    pub command: AtomicU64,
    /// When a polling warp last looked, in cycles.
    pub looked: AtomicU64,
    /// An [event](crate::dispatch::event).
    pub event: AtomicU64,
    /// A [`verdict`](crate::dispatch::verdict) on going on after a window.
    pub stop: AtomicU64,
    /// A [`verdict`](crate::dispatch::verdict) of the thread that looked, for all others.
    pub verdict: AtomicU64,
    /// When this launch began, in nanoseconds.
    pub began: AtomicU64,
    /// When it is to end.
    pub deadline: AtomicU64,
    /// Looks and windows that it may still make.
    pub iterations: AtomicU64,
    /// The idle budget.
    pub idle: AtomicU64,
    /// Since when there was no message, as far as this lane knows.
    pub quiet: AtomicU64,
    /// How long that may be: less than `idle` before the first message.
    pub allowed: AtomicU64,
    /// Most messages of the next window.
    pub limit: AtomicU64,
    /// The least that `limit` can be.
    pub floor: AtomicU64,
    /// The most that `limit` can be.
    pub ceiling: AtomicU64,
    /// Messages and commands refused since the first launch.
    pub refused: AtomicU64,
    /// Tail of the requests as last seen in the doorbell.
    pub wire: AtomicU64,
    /// When the look began that showed requests up to `tail`, in ticks.
    pub seen: AtomicU64,
    /// When the last look began that did not show the requests of the next window.
    pub unseen: AtomicU64,
    /// [`flag`]s of the launch.
    pub flags: AtomicU64,
    /// Requests reported as consumed by batches, as an index.
    pub published: AtomicU64,
    /// Index at which the stamps of the response doorbell were last overwritten.
    pub scrubbed: AtomicU64,
    /// When the last heartbeat was; at first, when the launch began.
    pub beat: AtomicU64,
    /// Messages in the histograms when they were last written to the lane's block.
    pub flushed: AtomicU64,
}

/// What one polling warp keeps of times, in ticks. Written by its leader, and by warp 0 when it
/// adds what earlier launches counted.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tally {
    /// As [`Times::handler`](ring_shared::layout::Times).
    pub handler: [AtomicU64; BUCKETS],
    /// As [`Times::queueing`](ring_shared::layout::Times).
    pub queueing: [AtomicU64; BUCKETS],
    /// How long the handler of the last express message took, which is not counted yet.
    pub took: AtomicU64,
    /// How long that message waited.
    pub waited: AtomicU64,
    /// Messages counted in this launch.
    pub messages: AtomicU64,
    /// When the warp's last look began.
    pub at: AtomicU64,
    /// When the look before that began, whichever warp's it was.
    pub before: AtomicU64,
}

/// Adds to a counter that nobody else writes now.
#[inline(always)]
pub(crate) fn count(at: &AtomicU64, n: u64) {
    at.store(at.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Memory of one team: block-shared memory on the GPU, the lane's own on the CPU.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct TeamMemory {
    pub(crate) shared: Shared,
    pub(crate) tallies: [Tally; POLLERS],
    pub(crate) boot: boot::Words,
    pub(crate) input: Window,
    pub(crate) output: Window,
}

/// One look at a doorbell line.
pub(crate) struct Look {
    /// The control atom.
    pub control: Control,
    /// The atoms of a look, [`boot::BELL`] to [`boot::CALL`]: all of them on the CPU, this thread's
    /// own on the GPU.
    pub(crate) atoms: LookAtoms,
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) type LookAtoms = [Words; boot::CALL + 1];
#[cfg(target_arch = "nvptx64")]
pub(crate) type LookAtoms = Words;
