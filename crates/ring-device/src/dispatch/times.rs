//! Telemetry: how long messages waited and took, counted in the team's memory and written to the
//! lane's block now and then.

use super::Lane;
use crate::kernel::Kernel;
use crate::team::{POLLERS, count};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ring_shared::layout::{BUCKETS, bucket};

impl<K: Kernel> Lane<'_, K> {
    /// All threads: begins with empty histograms.
    #[inline(always)]
    pub(super) fn clear_times(&self) {
        for poller in 0..POLLERS as u32 {
            let tally = self.team.tally(poller);
            let mut k = self.team.thread() as usize;
            while let (Some(handler), Some(queueing)) =
                (tally.handler.get(k), tally.queueing.get(k))
            {
                handler.store(0, Relaxed);
                queueing.store(0, Relaxed);
                k += self.team.threads() as usize;
            }
            tally.messages.store(0, Relaxed);
        }
        self.shared().flushed.store(0, Relaxed);
    }

    /// The leader of a polling warp: counts `n` messages that were handled side by side.
    #[inline(always)]
    pub(super) fn count(&self, poller: u32, n: u64, handler: u64, queueing: u64) {
        let tally = self.team.tally(poller);
        count(&tally.handler[bucket(handler)], n);
        count(&tally.queueing[bucket(queueing)], n);
        count(&tally.messages, n);
    }

    /// Warp 0: reads what earlier launches counted, once in a launch.
    #[inline(always)]
    pub(super) fn add_earlier(&mut self) {
        let (team, times) = (self.team, &self.block.times);
        let tally = team.tally(0);
        let mut k = team.in_warp() as usize;
        while k < BUCKETS {
            let (a, b) = (times.handler[k].load(Relaxed), times.queueing[k].load(Relaxed));
            count(&tally.handler[k], a);
            count(&tally.queueing[k], b);
            k += team.warp_size() as usize;
        }
        team.warp_sync(); // before its leader counts on
        self.added = true;
    }

    /// Warp 0: writes the histograms to the lane's block if anything was counted since the last
    /// time.
    #[inline(always)]
    pub(super) fn flush(&mut self) {
        let team = self.team;
        let (flushed, mine, other) = (&team.shared().flushed, team.tally(0), team.tally(1));
        let messages = mine.messages.load(Relaxed).wrapping_add(other.messages.load(Relaxed));
        let (messages, before) = (team.uniform(messages), team.uniform(flushed.load(Relaxed)));
        if messages == before {
            return;
        }
        if !self.added {
            self.add_earlier();
        }
        let times = &self.block.times;
        let sum = |a: &AtomicU64, b: &AtomicU64| a.load(Relaxed).wrapping_add(b.load(Relaxed));
        let mut k = team.in_warp() as usize;
        while k < BUCKETS {
            times.handler[k].store(sum(&mine.handler[k], &other.handler[k]), Relaxed);
            times.queueing[k].store(sum(&mine.queueing[k], &other.queueing[k]), Relaxed);
            k += team.warp_size() as usize;
        }
        team.warp_sync();
        if team.is_leader() {
            flushed.store(messages, Relaxed);
        }
        team.warp_sync();
    }
}
