//! Telemetry: how long messages waited and took, counted in the team's memory and written to the
//! channel's block now and then.

use super::Channel;
use crate::kernel::{Kernel, Scope};
use crate::team::{POLLERS, count};
use ring_shared::atomics::{AtomicU64, Ordering::Relaxed};
use ring_shared::layout::{BUCKETS, bucket};

impl<K: Kernel> Channel<'_, K> {
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
        let recent = &self.team.memory().recent;
        let mut k = self.team.thread() as usize;
        while let (Some(handler), Some(queueing)) = (recent.handler.get(k), recent.queueing.get(k))
        {
            handler.store(0, Relaxed);
            queueing.store(0, Relaxed);
            k += self.team.threads() as usize;
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

    /// The leader of a stream's worker: counts `n` messages that were handled side by side.
    #[inline(always)]
    pub(super) fn count_some(&self, n: u32, handler: u64, queueing: u64) {
        let recent = &self.team.memory().recent;
        self.team.add32(&recent.handler[bucket(handler)], n);
        self.team.add32(&recent.queueing[bucket(queueing)], n);
    }

    /// Warp 0: takes what workers have counted into its own tally.
    #[inline(always)]
    fn take_recent(&self) {
        let (team, recent) = (self.team, &self.team.memory().recent);
        let tally = team.tally(0);
        let (mut k, mut messages) = (team.in_warp() as usize, 0);
        while k < BUCKETS {
            let n = u64::from(team.take32(&recent.handler[k]));
            count(&tally.handler[k], n);
            count(&tally.queueing[k], u64::from(team.take32(&recent.queueing[k])));
            messages += n;
            k += team.warp_size() as usize;
        }
        let messages = team.warp_sum(messages);
        if team.is_leader() {
            count(&tally.messages, messages);
        }
        team.warp_sync();
    }

    /// Warp 0: whether it has.
    #[inline(always)]
    pub(super) fn is_added(&self) -> bool {
        self.team.uniform(self.shared().added.load(Relaxed)) != 0
    }

    /// Warp 0: reads what earlier launches counted, once in a launch.
    #[inline(always)]
    pub(super) fn add_earlier(&self) {
        let (team, times) = (self.team, &self.block().times);
        let tally = team.tally(0);
        let mut k = team.in_warp() as usize;
        while k < BUCKETS {
            let (a, b) = (times.handler[k].load(Relaxed), times.queueing[k].load(Relaxed));
            count(&tally.handler[k], a);
            count(&tally.queueing[k], b);
            k += team.warp_size() as usize;
        }
        if team.is_leader() {
            team.shared().added.store(1, Relaxed);
        }
        team.warp_sync(); // before its leader counts on
    }

    /// Warp 0: writes the histograms to the channel's block if anything was counted since the last
    /// time.
    #[inline(always)]
    pub(super) fn flush(&self) {
        let team = self.team;
        if <K::Scope as Scope<K>>::ALONE {
            self.take_recent();
        }
        let (flushed, mine, other) = (&team.shared().flushed, team.tally(0), team.tally(1));
        let messages = mine.messages.load(Relaxed).wrapping_add(other.messages.load(Relaxed));
        let (messages, before) = (team.uniform(messages), team.uniform(flushed.load(Relaxed)));
        if messages == before {
            return;
        }
        if !self.is_added() {
            self.add_earlier();
        }
        let times = &self.block().times;
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
