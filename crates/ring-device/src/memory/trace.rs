//! The trace ring of a channel, as a block knows it: where it notes the messages that it has handled.

use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use core::ptr::NonNull;
use ring_shared::atomics::{AtomicU64, Ordering::Relaxed};
use ring_shared::layout::LINE;
use ring_shared::trace::{OfEnd, Record, TraceRing, bytes_of};

/// What a block knows of its channel's trace ring. Set by thread 0 at the beginning of a launch.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Trace {
    /// Its device address; 0 if there is none.
    pub at: Cell<u64>,
    /// How many records it has.
    records: Cell<u64>,
    /// Records so far. Any thread that notes something takes the next.
    next: AtomicU64,
}

/// When messages were handled, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How long the handler took.
    pub took: u64,
    /// How long they had waited before, at most.
    pub waited: u64,
    /// When the handler ended.
    ended: u64,
}

impl Times {
    /// Of a handler that began and ended at so many ticks, for messages that the look at `unseen` did not show.
    #[inline(always)]
    pub fn new((began, ended): (u64, u64), unseen: u64) -> Times {
        Times { took: ended.wrapping_sub(began), waited: began.wrapping_sub(unseen), ended }
    }
}

/// Messages that a warp or the block has handled together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handled {
    /// Index of the first.
    pub index: u64,
    /// How many.
    pub n: u32,
    /// When.
    pub times: Times,
}

impl Trace {
    /// Begins a launch without a trace ring.
    #[inline(always)]
    pub fn begin_without(&self) {
        self.at.set(0);
    }

    /// Begins a launch of a channel, where the kernel's trace rings are at `rings`, as
    /// [`ConfigLine::trace`](ring_shared::layout::ConfigLine::trace) says it, behind so many records.
    #[inline(always)]
    pub fn begin(&self, rings: u64, channel: u32, traced: u64) {
        let records = 1u32 << (rings % LINE as u64 % 32);
        let at = rings - rings % LINE as u64;
        self.at.set(at + u64::from(channel) * bytes_of(records) as u64);
        self.records.set(records.into());
        self.next.store(traced, Relaxed);
    }

    /// Whether there is a trace ring.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.at.get() != 0
    }

    /// Records so far.
    #[inline(always)]
    pub fn traced(&self) -> u64 {
        self.next.load(Relaxed)
    }

    /// The trace ring, if there is one.
    #[inline(always)]
    fn ring(&self) -> Option<TraceRing> {
        let at = NonNull::new(self.at.get() as usize as *mut u8)?;
        // SAFETY: the host has laid the ring out there, and it stays as long as the kernel; the words are atomics.
        Some(unsafe { TraceRing::from_raw(at, self.records.get() as u32) })
    }

    /// One thread: takes so many places for records, one behind the other; the position of the first.
    #[inline(always)]
    fn take(&self, threads: Threads, records: u32) -> u32 {
        let mut position = self.next.load(Relaxed);
        while !threads.compare_and_swap(&self.next, position, position + u64::from(records)) {
            position = self.next.load(Relaxed);
        }
        position as u32
    }

    /// One thread, if there is a trace ring: notes what was handled.
    #[inline(always)]
    pub fn note(&self, threads: Threads, handled: Handled) {
        self.note_with(threads, handled, 0);
    }

    /// The same, with places for so many records behind it; the position of the first of these.
    #[inline(always)]
    pub fn note_with(&self, threads: Threads, handled: Handled, following: u32) -> u32 {
        let Some(ring) = self.ring() else { return 0 };
        let Handled { index, n, times: Times { took, waited, ended } } = handled;
        let position = self.take(threads, 1 + following);
        let (at, ticks) = threads.now_and_ticks();
        let ago = (ticks as u32).wrapping_sub(ended as u32);
        let most = |ticks: u64| u32::try_from(ticks).unwrap_or(u32::MAX); // a record has 32 bits for each
        let (took, waited) = (most(took), most(waited));
        ring.write(position, Record { index, n, at, ago, took, waited });
        position.wrapping_add(1)
    }

    /// One thread, which has that place: notes what was emitted to an output.
    #[inline(always)]
    pub fn note_emitted(&self, position: u32, of: OfEnd, n: u32) {
        if let Some(ring) = self.ring() {
            ring.write(position, Record { index: of.to_word(), n, ..Record::default() });
        }
    }
}
