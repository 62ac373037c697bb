//! How long round trips took, in a histogram of fixed size.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest time that has a bucket of its own.
const LONGEST: Duration = Duration::from_secs(600);

/// Times from 1 ns to ten minutes, to three digits. Recording allocates nothing.
#[derive(Clone, Debug)]
pub struct Times {
    nanoseconds: Histogram<u64>,
}

impl Times {
    /// No times yet.
    pub fn new() -> Times {
        let nanoseconds = Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 3);
        Times { nanoseconds: nanoseconds.expect("these bounds and digits are valid") }
    }

    /// Counts one round trip.
    pub fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.saturating_record(nanoseconds.max(1));
    }

    /// Counts all of these, too.
    pub fn add(&mut self, others: &Times) {
        self.nanoseconds.add(&others.nanoseconds).expect("the same bounds");
    }

    /// Round trips counted.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The time that `percent` of the round trips did not exceed, in microseconds; 0 is the shortest,
    /// 100 the longest. None if nothing was counted.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        if self.nanoseconds.is_empty() {
            return None;
        }
        let nanoseconds = match percent {
            p if p <= 0.0 => self.nanoseconds.min(),
            p => self.nanoseconds.value_at_percentile(p),
        };
        Some(nanoseconds as f64 / 1000.0)
    }

    /// The percentile as the table shows it: microseconds to two places, `-` for none.
    pub fn shown(&self, percent: f64) -> String {
        self.percentile(percent).map_or_else(|| "-".to_string(), |us| format!("{us:.2}"))
    }

    /// How many there were between each edge and the next, edges in microseconds and growing; what is
    /// outside all of them is counted nowhere.
    pub fn between(&self, edges: &[f64]) -> Vec<u64> {
        let mut counts = vec![0; edges.len().saturating_sub(1)];
        for value in self.nanoseconds.iter_recorded() {
            let us = value.value_iterated_to() as f64 / 1000.0;
            let at = edges.partition_point(|edge| *edge <= us);
            if let Some(count) = at.checked_sub(1).and_then(|at| counts.get_mut(at)) {
                *count += value.count_since_last_iteration();
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_series_are_right_to_three_digits() {
        let mut latency = Times::new();
        for us in 1..=1000 {
            latency.record(Duration::from_micros(us));
        }
        let (p50, p99) = (latency.percentile(50.0).unwrap(), latency.percentile(99.0).unwrap());
        assert_eq!(latency.count(), 1000);
        assert!((p50 - 500.0).abs() <= 0.5, "p50 is {p50}");
        assert!((p99 - 990.0).abs() <= 1.0, "p99 is {p99}");
    }

    #[test]
    fn one_outlier_moves_p99_of_few_and_not_of_many() {
        let mut latency = Times::new();
        for _ in 0..50 {
            latency.record(Duration::from_micros(2));
        }
        latency.record(Duration::from_millis(5));
        assert!(latency.percentile(99.0).unwrap() > 4_900.0);
        for _ in 0..1000 {
            latency.record(Duration::from_micros(2));
        }
        assert_eq!(latency.shown(50.0), "2.00");
        assert_eq!(latency.shown(99.0), "2.00");
    }

    #[test]
    fn nothing_counted_is_shown_as_nothing() {
        assert_eq!(Times::new().percentile(50.0), None);
        assert_eq!(Times::new().shown(99.0), "-");
    }

    #[test]
    fn times_out_of_range_count_at_the_nearest_end() {
        let mut latency = Times::new();
        latency.record(Duration::ZERO);
        latency.record(Duration::MAX);
        assert_eq!(latency.count(), 2);
        assert_eq!(latency.percentile(0.0), Some(0.001));
        assert!(latency.percentile(100.0).unwrap() >= 599e6);
    }

    #[test]
    fn percentiles_are_right_from_the_shortest_to_the_longest() {
        let mut times = Times::new();
        for us in 1..=1000 {
            times.record(Duration::from_micros(us));
        }
        assert_eq!(times.count(), 1000);
        for (percent, expected) in [
            (0.0, 1.0),
            (50.0, 500.0),
            (90.0, 900.0),
            (99.0, 990.0),
            (99.9, 999.0),
            (100.0, 1000.0),
        ] {
            let found = times.percentile(percent).unwrap();
            assert!((found - expected).abs() <= expected / 500.0, "{percent}: {found}");
        }
        assert_eq!(times.shown(0.0), "1.00");
    }

    #[test]
    fn nothing_counted_lies_nowhere() {
        assert_eq!(
            (Times::new().percentile(50.0), Times::new().between(&[0.0, 1.0])),
            (None, vec![0])
        );
        assert_eq!(Times::new().shown(99.0), "-");
    }

    #[test]
    fn times_out_of_range_are_the_shortest_and_the_longest() {
        let mut times = Times::new();
        times.record(Duration::ZERO);
        times.record(Duration::MAX);
        assert_eq!((times.count(), times.percentile(0.0)), (2, Some(0.001)));
        assert!(times.percentile(100.0).unwrap() >= 59e6);
    }

    #[test]
    fn what_lies_between_edges_is_counted_once() {
        let mut times = Times::new();
        for ns in [500, 1000, 1500, 2500, 9000] {
            times.record(Duration::from_nanos(ns));
        }
        assert_eq!(times.between(&[1.0, 2.0, 3.0]), [2, 1]);
        assert!(times.between(&[1.0]).is_empty());
    }
}
