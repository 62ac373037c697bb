//! Telemetry: how long messages waited and took, counted in the block's memory and written to the
//! channel's block now and then.

use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use ring_shared::atomics::{AtomicU32, Ordering::Relaxed};
use ring_shared::layout::{BUCKETS, Times, bucket};

/// Most warps that poll, in pairs. A read across the bus takes about a microsecond; two, half of that apart, see
/// a message 0.5 us sooner than one. More than two reads of a line in flight queue up, so each pair has lines of
/// its own.
pub(crate) const POLLERS: usize = 16;

/// What a block counts, and when it looked at what. Set by thread 0 where nothing else is said.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// Messages and commands refused since the first launch; any thread adds to it.
    pub refused: Cell<u64>,
    /// When the last heartbeat was; at first, when the launch began.
    pub beat: Cell<u64>,
    /// When a warp of each pair last looked, in ticks; on the CPU, how many looks there were. Set by the warp that
    /// looks.
    looked: [Cell<u64>; POLLERS / 2],
    /// When the look began that showed requests up to the inbox's tail, in ticks.
    pub seen: Cell<u64>,
    /// When the last look began that did not show the requests of the next window.
    pub unseen: Cell<u64>,
    /// Of a stream: requests below this index were not shown by the look at `unseen`, those behind it not by
    /// the look at `unseen_next`.
    pub split: Cell<u64>,
    /// See `split`.
    pub unseen_next: Cell<u64>,
    /// As [`Times::handler`], in ticks.
    handler: [Cell<u64>; BUCKETS],
    /// As [`Times::queueing`], in ticks.
    queueing: [Cell<u64>; BUCKETS],
    /// Messages counted in this launch.
    messages: Cell<u64>,
    /// How long the handler took of the message that was answered before the launch began, how long that waited, and when the handler
    /// ended.
    pub first: [Cell<u64>; 3],
    /// What earlier launches counted is part of the histograms.
    added: Cell<bool>,
    /// Messages in the histograms when they were last written to the channel's block.
    flushed: Cell<u64>,
    tallies: [Tally; POLLERS],
    recent: Recent,
}

/// When one polling warp looked, in ticks. Set by its lane 0.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tally {
    /// When the warp's last look began.
    pub at: Cell<u64>,
    /// When the look before that began, whichever warp's of its pair it was.
    pub before: Cell<u64>,
}

/// What warps that answer by themselves have counted since warp 0 last took it over, many times in what 32 bits
/// hold: block-shared memory has no addition of 64.
#[repr(C)]
#[derive(Debug)]
struct Recent {
    handler: [AtomicU32; BUCKETS],
    queueing: [AtomicU32; BUCKETS],
}

impl Telemetry {
    /// What polling warp `poller` keeps.
    #[inline(always)]
    pub fn tally(&self, poller: u32) -> &Tally {
        &self.tallies[poller as usize % POLLERS]
    }

    /// When the look before the last one of polling warp `poller` began, whichever warp's of its pair it was.
    #[inline(always)]
    pub fn before(&self, poller: u32) -> u64 {
        self.tally(poller).before.get()
    }

    /// When a warp of the pair of polling warp `poller` last looked.
    #[inline(always)]
    pub fn looked(&self, poller: u32) -> &Cell<u64> {
        &self.looked[poller as usize / 2 % (POLLERS / 2)]
    }

    /// All threads of the block: begins with empty histograms.
    #[inline(always)]
    pub fn clear(&self, threads: Threads) {
        let mut k = threads.thread() as usize;
        while k < BUCKETS {
            self.handler[k].set(0);
            self.queueing[k].set(0);
            self.recent.handler[k].store(0, Relaxed);
            self.recent.queueing[k].store(0, Relaxed);
            k += threads.threads() as usize;
        }
        self.messages.set(0);
        self.flushed.set(0);
    }

    /// Thread 0: begins a launch, in which nothing was looked at before `ticks`.
    #[inline(always)]
    pub fn begin(&self, began: u64, ticks: u64, refused: u64) {
        self.added.set(false);
        self.beat.set(began);
        for looked in &self.looked {
            looked.set(ticks);
        }
        self.refused.set(refused);
        for tally in &self.tallies {
            tally.at.set(ticks);
            tally.before.set(ticks);
        }
    }

    /// Thread 0: counts `n` messages that were handled one after the other, or side by side.
    #[inline(always)]
    pub fn count(&self, n: u64, handler: u64, queueing: u64) {
        self.handler[bucket(handler)].count(n);
        self.queueing[bucket(queueing)].count(n);
        self.messages.count(n);
    }

    /// Lane 0 of a warp that answers by itself: counts `n` messages that were handled side by side.
    #[inline(always)]
    pub fn count_some(&self, threads: Threads, n: u32, handler: u64, queueing: u64) {
        threads.add32(&self.recent.handler[bucket(handler)], n);
        threads.add32(&self.recent.queueing[bucket(queueing)], n);
    }

    /// Warp 0: takes what warps have counted by themselves into the histograms.
    #[inline(always)]
    fn take_recent(&self, threads: Threads) {
        let recent = &self.recent;
        let (mut k, mut messages) = (threads.lane() as usize, 0);
        while k < BUCKETS {
            let n = u64::from(threads.take32(&recent.handler[k]));
            self.handler[k].count(n);
            self.queueing[k].count(u64::from(threads.take32(&recent.queueing[k])));
            messages += n;
            k += Threads::WARP as usize;
        }
        let messages = threads.warp_sum(messages);
        if threads.is_lane_0() {
            self.messages.count(messages);
        }
        threads.warp_sync();
    }

    /// Warp 0: whether what earlier launches counted is added.
    #[inline(always)]
    pub fn has_earlier(&self, threads: Threads) -> bool {
        threads.broadcast(u64::from(self.added.get())) != 0
    }

    /// Warp 0: reads what earlier launches counted, once in a launch.
    #[inline(always)]
    pub fn add_earlier(&self, threads: Threads, times: &Times) {
        let mut k = threads.lane() as usize;
        while k < BUCKETS {
            let (a, b) = (times.handler[k].load(Relaxed), times.queueing[k].load(Relaxed));
            self.handler[k].count(a);
            self.queueing[k].count(b);
            k += Threads::WARP as usize;
        }
        if threads.is_lane_0() {
            self.added.set(true);
        }
        threads.warp_sync(); // before its lane 0 adds to them
    }

    /// Warp 0: writes the histograms to the channel's block if anything was counted since the last
    /// time; `by_warps`: warps, or one of them, may have counted by themselves.
    #[inline(always)]
    pub fn flush(&self, threads: Threads, times: &Times, by_warps: bool) {
        if by_warps {
            self.take_recent(threads);
        }
        let messages = threads.broadcast(self.messages.get());
        let before = threads.broadcast(self.flushed.get());
        if messages == before {
            return;
        }
        if !self.has_earlier(threads) {
            self.add_earlier(threads, times);
        }
        let mut k = threads.lane() as usize;
        while k < BUCKETS {
            times.handler[k].store(self.handler[k].get(), Relaxed);
            times.queueing[k].store(self.queueing[k].get(), Relaxed);
            k += Threads::WARP as usize;
        }
        threads.warp_sync();
        if threads.is_lane_0() {
            self.flushed.set(messages);
        }
        threads.warp_sync();
    }
}
