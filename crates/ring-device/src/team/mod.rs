//! The threads that run one channel together: a block on the GPU, a single thread on the CPU. The
//! dispatch loop is written once against these operations.

use core::cell::UnsafeCell;
use ring_shared::MAX_MESSAGE_BYTES;
use ring_shared::atomics::{AtomicU32, AtomicU64, Ordering::Relaxed};
use ring_shared::layout::BUCKETS;
use ring_shared::ring::Control;

pub(crate) mod boot;

#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
#[cfg(target_arch = "nvptx64")]
mod gpu;
#[cfg(any(target_arch = "nvptx64", feature = "rust-cuda"))]
pub(crate) mod intrinsics;
#[cfg(not(target_arch = "nvptx64"))]
mod offsets;

#[cfg(not(target_arch = "nvptx64"))]
pub use cpu::{Hooks, Team};
#[cfg(target_arch = "nvptx64")]
pub use gpu::Team;

/// Bytes of the team's pool, through which messages pass on their way from ring to ring. With what
/// else a team has in block-shared memory it stays below the 48 KiB that every GPU gives a block.
pub(crate) const POOL_BYTES: usize = 40960;
const _: () = assert!(POOL_BYTES >= 4 * MAX_MESSAGE_BYTES);
const _: () = assert!(size_of::<TeamMemory>() <= 48 * 1024);

/// Bytes of the pool that one warp takes, if its messages are not larger; how many messages that may
/// be at most.
#[cfg(target_arch = "nvptx64")]
pub(crate) const STAGE: (usize, usize) = (2560, 128);
/// One thread is all the team, and what it looks at besides its messages costs as much as some of
/// them.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) const STAGE: (usize, usize) = (POOL_BYTES / 2, 256);

/// Chunks that a worker may be told of before the first is answered: what hides the time that telling
/// takes, and what a command waits for.
pub(crate) const AHEAD: usize = if cfg!(target_arch = "nvptx64") { 4 } else { 1 };

/// Most warps of a block.
pub(crate) const MOST_WARPS: usize = 32;

/// Half `lo`, half `hi` of an atom, in memory of the team alone.
pub(crate) type Words = [u64; 2];

/// Room for messages on their way through the team.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Pool(UnsafeCell<[Words; POOL_BYTES / 16]>);

impl Pool {
    /// The room from `at` bytes on, a multiple of 16 inside the pool.
    #[inline(always)]
    pub(crate) fn bytes(&self, at: usize) -> *mut u8 {
        debug_assert!(at < POOL_BYTES, "{at} is beyond the pool");
        self.0.get().cast::<u8>().wrapping_add(at)
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
/// barrier, except `head` and `event`, which the polling warps watch, what the polling warps
/// note when each answers by itself (`last_inline`, `quiet`, `allowed`, `limit`, `refused`), and
/// what is said between the warps of a [stream](crate::dispatch).
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Shared {
    /// Index of the next request.
    pub head: AtomicU64,
    /// Index after the last answer that was inline; those from it on are in slots.
    pub run_start: AtomicU64,
    /// Answers below this index are out. A polling warp that answers by itself says so to the other one.
    pub answered: AtomicU64,
    /// Index after the last request known to be in a slot.
    pub tail: AtomicU64,
    /// Index of the request that `event::INLINE` is about.
    pub staged: AtomicU64,
    /// Of a stream, by its conductor: requests below this index may be handled.
    pub go: AtomicU64,
    /// Of a stream, by its conductor: requests below this index are answered.
    pub done: AtomicU64,
    /// Of a stream, by its conductor: a [`verdict`](crate::dispatch::verdict) that ends it.
    pub over: AtomicU64,
    /// Of a stream, by its scout: what was done when the last look began.
    pub covered: AtomicU64,
    /// Of a stream, by its scout: looks so far.
    pub looks: AtomicU64,
    /// Of a stream, by its scout: the launch that channel 0 has called to leave.
    pub called: AtomicU64,
    /// Of a stream, by its scout: an index could not be.
    pub corrupt: AtomicU64,
    /// Of a stream, by its scout: requests below this index were not shown by the look at `unseen`,
    /// those behind it not by the look at `unseen_next`.
    pub split: AtomicU64,
    /// See `split`.
    pub unseen_next: AtomicU64,
    /// Of a stream, by each of its workers: the request that it handles next.
    pub places: [AtomicU64; MOST_WARPS],
    /// Requests that a warp takes at a time, a power of two.
    pub chunk: AtomicU64,
    /// The last command word obeyed.
    pub obeyed: AtomicU64,
    /// 1 while messages are taken.
    pub active: AtomicU64,
    /// Nothing was looked at since the launch began.
    pub fresh: AtomicU64,
    /// The launch began with an answer, which is not counted yet.
    pub first: AtomicU64,
    /// What earlier launches counted of times is part of warp 0's tally.
    pub added: AtomicU64,
    /// Responses that the host has consumed, as an index.
    pub credit: AtomicU64,
    /// The command word that `event::COMMAND` is about.
    pub command: AtomicU64,
    /// When a polling warp last looked, in cycles; on the CPU, how many looks there were.
    pub looked: AtomicU64,
    /// An [event](crate::dispatch::event).
    pub event: AtomicU64,
    /// A [`verdict`](crate::dispatch::verdict) on going on after a window.
    pub stop: AtomicU64,
    /// A [`verdict`](crate::dispatch::verdict) of the thread that looked, for all others.
    pub verdict: AtomicU64,
    /// When this launch began, in nanoseconds.
    pub began: AtomicU64,
    /// How long it may run.
    pub time: AtomicU64,
    /// Looks and windows that it may still make.
    pub iterations: AtomicU64,
    /// The idle budget.
    pub idle: AtomicU64,
    /// Since when there was no message, as far as this channel knows.
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
    /// When the lease was last looked at.
    pub lease_at: AtomicU64,
    /// Nanoseconds between two looks at it.
    pub lease_apart: AtomicU64,
    /// What the host had written at the last look.
    pub lease_renewed: AtomicU64,
    /// Looks since that has changed.
    pub lease_missed: AtomicU64,
    /// 1 if the lease is over.
    pub orphaned: AtomicU64,
    /// Messages in the histograms when they were last written to the channel's block.
    pub flushed: AtomicU64,
    /// A handler has panicked: the block's threads end, one after the other.
    pub broken: AtomicU64,
    /// Address of the control block.
    pub control: AtomicU64,
    /// Address of the channel's block.
    pub block: AtomicU64,
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
    /// How long the handler of the last inline message took, which is not counted yet.
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

#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
pub(crate) use intrinsics::exit;

/// What a stream's workers have counted since warp 0 last took it over, many times in what 32 bits hold:
/// block-shared memory has no addition of 64.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Recent {
    /// As [`Times::handler`](ring_shared::layout::Times).
    pub handler: [AtomicU32; BUCKETS],
    /// As [`Times::queueing`](ring_shared::layout::Times).
    pub queueing: [AtomicU32; BUCKETS],
}

/// Adds to a counter that nobody else writes now.
#[inline(always)]
pub(crate) fn count(at: &AtomicU64, n: u64) {
    at.store(at.load(Relaxed).wrapping_add(n), Relaxed);
}

/// Memory of one team: block-shared memory on the GPU, the channel's own on the CPU.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct TeamMemory {
    pub(crate) shared: Shared,
    pub(crate) tallies: [Tally; POLLERS],
    pub(crate) recent: Recent,
    pub(crate) boot: boot::Words,
    pub(crate) pool: Pool,
}

/// What one look of a stream's scout shows.
#[derive(Clone, Copy)]
pub(crate) struct Glance {
    /// The control atom of the request doorbell.
    pub control: Control,
    /// The host's command word.
    pub command: u64,
    /// The launch that channel 0 has called to leave.
    pub call: u64,
    /// Responses consumed, by the host's credit line.
    pub credit: u64,
}

/// The atoms of a look at a doorbell line, [`boot::BELL`] to [`boot::CALL`]: all of them on the CPU, the
/// calling thread's own on the GPU.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) type Look = [Words; boot::CALL + 1];
/// See above.
#[cfg(target_arch = "nvptx64")]
pub(crate) type Look = Words;
