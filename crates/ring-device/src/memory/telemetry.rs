//! Telemetry: how long messages waited and took, counted in the block's memory and written to the
//! channel's block now and then.

use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use ring_shared::atomics::{AtomicU32, Ordering::Relaxed};
use ring_shared::layout::{BUCKETS, Times, bucket};

/// Warps that poll. A read across the bus takes about a microsecond; two, half of that apart, see
/// a message 0.5 us sooner than one. More than two reads of a line in flight queue up.
pub(crate) const POLLERS: usize = 2;

/// What a block counts, and when it looked at what. Set by thread 0 where nothing else is said.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Telemetry {
    /// Messages and commands refused since the first launch; any thread adds to it.
    pub refused: Cell<u64>,
    /// When the last heartbeat was; at first, when the launch began.
    pub beat: Cell<u64>,
    /// When a polling warp last looked, in ticks; on the CPU, how many looks there were. Set by the warp that
    /// looks.
    pub looked: Cell<u64>,
    /// When the look began that showed requests up to the inbox's tail, in ticks.
    pub seen: Cell<u64>,
    /// When the last look began that did not show the requests of the next window.
    pub unseen: Cell<u64>,
    /// Of a stream: requests below this index were not shown by the look at `unseen`, those behind it not by
    /// the look at `unseen_next`.
    pub split: Cell<u64>,
    /// See `split`.
    pub unseen_next: Cell<u64>,
    /// What earlier launches counted is part of the first poller's histograms.
    added: Cell<bool>,
    /// Messages in the histograms when they were last written to the channel's block.
    flushed: Cell<u64>,
    tallies: [Tally; POLLERS],
    recent: Recent,
}

/// What one polling warp keeps of times, in ticks. Set by its lane 0, and by warp 0 when it adds what
/// earlier launches counted.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Tally {
    /// As [`Times::handler`].
    handler: [Cell<u64>; BUCKETS],
    /// As [`Times::queueing`].
    queueing: [Cell<u64>; BUCKETS],
    /// How long the handler of the last inline message took, which is not counted yet.
    pub took: Cell<u64>,
    /// How long that message waited.
    pub waited: Cell<u64>,
    /// Messages counted in this launch.
    messages: Cell<u64>,
    /// When the warp's last look began.
    pub at: Cell<u64>,
    /// When the look before that began, whichever warp's it was.
    pub before: Cell<u64>,
}

/// What a stream's workers have counted since warp 0 last took it over, many times in what 32 bits hold:
/// block-shared memory has no addition of 64.
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

    /// All threads of the block: begins with empty histograms.
    #[inline(always)]
    pub fn clear(&self, threads: Threads) {
        let mut k = threads.thread() as usize;
        while k < BUCKETS {
            for tally in &self.tallies {
                tally.handler[k].set(0);
                tally.queueing[k].set(0);
            }
            self.recent.handler[k].store(0, Relaxed);
            self.recent.queueing[k].store(0, Relaxed);
            k += threads.threads() as usize;
        }
        for tally in &self.tallies {
            tally.messages.set(0);
        }
        self.flushed.set(0);
    }

    /// Thread 0: begins a launch, in which nothing was looked at before `ticks`.
    #[inline(always)]
    pub fn begin(&self, began: u64, ticks: u64, refused: u64) {
        self.added.set(false);
        self.beat.set(began);
        self.looked.set(ticks);
        self.refused.set(refused);
        for tally in &self.tallies {
            tally.at.set(ticks);
            tally.before.set(ticks);
        }
    }

    /// Lane 0 of a polling warp: counts `n` messages that were handled side by side.
    #[inline(always)]
    pub fn count(&self, poller: u32, n: u64, handler: u64, queueing: u64) {
        let tally = self.tally(poller);
        tally.handler[bucket(handler)].count(n);
        tally.queueing[bucket(queueing)].count(n);
        tally.messages.count(n);
    }

    /// Lane 0 of a stream's worker: counts `n` messages that were handled side by side.
    #[inline(always)]
    pub fn count_some(&self, threads: Threads, n: u32, handler: u64, queueing: u64) {
        threads.add32(&self.recent.handler[bucket(handler)], n);
        threads.add32(&self.recent.queueing[bucket(queueing)], n);
    }

    /// Warp 0: takes what workers have counted into its own tally.
    #[inline(always)]
    fn take_recent(&self, threads: Threads) {
        let (recent, tally) = (&self.recent, self.tally(0));
        let (mut k, mut messages) = (threads.lane() as usize, 0);
        while k < BUCKETS {
            let n = u64::from(threads.take32(&recent.handler[k]));
            tally.handler[k].count(n);
            tally.queueing[k].count(u64::from(threads.take32(&recent.queueing[k])));
            messages += n;
            k += Threads::WARP as usize;
        }
        let messages = threads.warp_sum(messages);
        if threads.is_lane_0() {
            tally.messages.count(messages);
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
        let tally = self.tally(0);
        let mut k = threads.lane() as usize;
        while k < BUCKETS {
            let (a, b) = (times.handler[k].load(Relaxed), times.queueing[k].load(Relaxed));
            tally.handler[k].count(a);
            tally.queueing[k].count(b);
            k += Threads::WARP as usize;
        }
        if threads.is_lane_0() {
            self.added.set(true);
        }
        threads.warp_sync(); // before its lane 0 adds to them
    }

    /// Warp 0: writes the histograms to the channel's block if anything was counted since the last
    /// time; `streams`: workers of a stream may have counted.
    #[inline(always)]
    pub fn flush(&self, threads: Threads, times: &Times, streams: bool) {
        if streams {
            self.take_recent(threads);
        }
        let (mine, other) = (self.tally(0), self.tally(1));
        let messages = mine.messages.get().wrapping_add(other.messages.get());
        let (messages, before) =
            (threads.broadcast(messages), threads.broadcast(self.flushed.get()));
        if messages == before {
            return;
        }
        if !self.has_earlier(threads) {
            self.add_earlier(threads, times);
        }
        let sum = |a: &Cell<u64>, b: &Cell<u64>| a.get().wrapping_add(b.get());
        let mut k = threads.lane() as usize;
        while k < BUCKETS {
            times.handler[k].store(sum(&mine.handler[k], &other.handler[k]), Relaxed);
            times.queueing[k].store(sum(&mine.queueing[k], &other.queueing[k]), Relaxed);
            k += Threads::WARP as usize;
        }
        threads.warp_sync();
        if threads.is_lane_0() {
            self.flushed.set(messages);
        }
        threads.warp_sync();
    }
}
