//! When answers came, in memory that is there before the first.

use crate::bench::stats::Times;
use std::time::Duration;

/// Answers that were taken together.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    /// When, in nanoseconds.
    at: u64,
    /// Answers until then, these included.
    total: u64,
}

/// When each of a number of answers came, in order. What a loop writes of it is a line a sweep; times are
/// computed afterwards, of every message.
#[derive(Debug)]
pub struct Log {
    sweeps: Box<[Sweep]>,
    used: usize,
    want: u64,
}

impl Log {
    /// With room for `want` answers that come one by one. All its pages are written here: none is first touched
    /// while messages are timed.
    pub fn new(want: u64) -> Log {
        let untouched = Sweep { at: u64::MAX, total: u64::MAX };
        Log { sweeps: vec![untouched; want as usize].into(), used: 0, want }
    }

    /// Notes that `answers` came at that time; whether it has all that it wants since this call. It ignores more.
    #[inline]
    pub fn add(&mut self, at: u64, answers: usize) -> bool {
        let total = self.total();
        if total >= self.want || answers == 0 {
            return false;
        }
        let total = total + answers as u64;
        self.sweeps[self.used] = Sweep { at, total };
        self.used += 1;
        total >= self.want
    }

    /// Answers that were noted.
    #[inline]
    pub fn total(&self) -> u64 {
        self.used.checked_sub(1).map_or(0, |last| self.sweeps[last].total)
    }

    /// When each answer came.
    pub fn arrivals(&self) -> impl Iterator<Item = u64> {
        let mut before = 0;
        self.sweeps[..self.used].iter().flat_map(move |sweep| {
            let answers = sweep.total - before;
            before = sweep.total;
            (0..answers).map(|_| sweep.at)
        })
    }

    /// How long messages took from `skip` on, if as soon as an answer came the message was sent that is
    /// `in_flight` further on. `skip` is at least `in_flight`.
    pub fn closed_times(&self, in_flight: u64, skip: u64) -> Times {
        let sent = self.arrivals().skip((skip - in_flight) as usize);
        let mut times = Times::new();
        for (sent, came) in sent.zip(self.arrivals().skip(skip as usize)) {
            times.record(Duration::from_nanos(came - sent));
        }
        times
    }

    /// Answers a second behind the first `skip`. None if all came at once.
    pub fn rate(&self, skip: u64) -> Option<f64> {
        let sweeps = &self.sweeps[..self.used];
        let first = sweeps.iter().find(|sweep| sweep.total >= skip.max(1))?;
        let last = sweeps.last()?;
        let seconds = Duration::from_nanos(last.at - first.at).as_secs_f64();
        (seconds > 0.0).then(|| (last.total - first.total) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_took_from_the_sweep_that_sent_it_to_the_one_that_received_it() {
        // Two in flight: message 2 is sent when 0 is answered, 3 when 1 is, and so on.
        let mut log = Log::new(6);
        for (at, answers) in [(1_000, 1), (3_000, 2), (3_000, 0), (7_000, 1)] {
            assert!(!log.add(at, answers));
        }
        assert!(log.add(8_000, 2) && !log.add(9_000, 1));
        assert_eq!(log.total(), 6);
        let arrivals: Vec<u64> = log.arrivals().collect();
        assert_eq!(arrivals, [1_000, 3_000, 3_000, 7_000, 8_000, 8_000]);
        let times = log.closed_times(2, 2); // 2, 4, 5 and 1 us
        assert_eq!(times.count(), 4);
        for (percent, us) in [(0.0, 1.0), (50.0, 2.0), (75.0, 4.0), (100.0, 5.0)] {
            let found = times.percentile(percent).unwrap();
            assert!((found - us).abs() < 0.01, "p{percent} is {found}");
        }
    }

    #[test]
    fn the_rate_is_of_the_time_between_sweeps() {
        let mut log = Log::new(8);
        for at in 1..=4 {
            log.add(at * 1_000_000, 2);
        }
        // Six answers in three milliseconds, and four in two.
        for skip in [0, 1, 3, 4] {
            assert!((log.rate(skip).unwrap() - 2_000.0).abs() < 1e-6, "behind {skip}");
        }
        assert_eq!((log.rate(7), Log::new(1).rate(0)), (None, None));
    }
}
