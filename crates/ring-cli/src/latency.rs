//! How long round trips took, in a histogram of fixed size.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest time told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(600);

/// Times from 1 ns to ten minutes, to three digits. Recording allocates nothing.
#[derive(Clone, Debug)]
pub struct Latency {
    nanoseconds: Histogram<u64>,
}

impl Latency {
    /// No times yet.
    pub fn new() -> Latency {
        let nanoseconds = Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 3);
        Latency { nanoseconds: nanoseconds.expect("these bounds and digits are valid") }
    }

    /// Counts one round trip.
    pub fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.saturating_record(nanoseconds.max(1));
    }

    /// Round trips counted.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The time that `percent` of the round trips did not exceed, in microseconds; none if nothing
    /// was counted.
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        let counted = !self.nanoseconds.is_empty();
        counted.then(|| self.nanoseconds.value_at_percentile(percent) as f64 / 1000.0)
    }

    /// The percentile as the table shows it: microseconds to two places, `-` for none.
    pub fn shown(&self, percent: f64) -> String {
        self.percentile(percent).map_or_else(|| "-".to_string(), |us| format!("{us:.2}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_series_are_right_to_three_digits() {
        let mut latency = Latency::new();
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
        let mut latency = Latency::new();
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
        assert_eq!(Latency::new().percentile(50.0), None);
        assert_eq!(Latency::new().shown(99.0), "-");
    }

    #[test]
    fn times_out_of_range_count_at_the_nearest_end() {
        let mut latency = Latency::new();
        latency.record(Duration::ZERO);
        latency.record(Duration::MAX);
        assert_eq!(latency.count(), 2);
        assert_eq!(latency.percentile(0.0), Some(0.001));
        assert!(latency.percentile(100.0).unwrap() >= 599e6);
    }
}
