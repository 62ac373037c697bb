//! Times and rates, and what is said of them.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest time told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(60);

/// Percentiles that are plotted and printed: the tail in full.
pub const CURVE: [f64; 21] = [
    0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5,
    99.8, 99.9, 99.95, 99.99, 100.0,
];

/// Times from 1 ns on, to three digits. Recording allocates nothing.
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

    /// Counts one.
    #[inline]
    pub fn record(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.saturating_record(nanoseconds.max(1));
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// The time that `percent` of them did not exceed, in microseconds; 0 is the shortest, 100 the
    /// longest. None if nothing was counted.
    pub fn at(&self, percent: f64) -> Option<f64> {
        if self.nanoseconds.is_empty() {
            return None;
        }
        let nanoseconds = match percent {
            p if p <= 0.0 => self.nanoseconds.min(),
            p => self.nanoseconds.value_at_percentile(p),
        };
        Some(nanoseconds as f64 / 1000.0)
    }

    /// The same to two places, `-` for none.
    pub fn shown(&self, percent: f64) -> String {
        self.at(percent).map_or_else(|| "-".to_owned(), |us| format!("{us:.2}"))
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

/// The same thing measured several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    samples: Vec<f64>,
}

impl Rates {
    /// Adds a measurement.
    pub fn add(&mut self, rate: f64) {
        self.samples.push(rate);
    }

    /// All of them, as they were measured.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// The middle one, or the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        match n {
            0 => None,
            n if n % 2 == 1 => Some(sorted[n / 2]),
            n => Some((sorted[n / 2 - 1] + sorted[n / 2]) / 2.0),
        }
    }

    /// The least.
    pub fn min(&self) -> Option<f64> {
        self.samples.iter().copied().min_by(f64::total_cmp)
    }

    /// The most.
    pub fn max(&self) -> Option<f64> {
        self.samples.iter().copied().max_by(f64::total_cmp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_known_series_are_right_to_three_digits() {
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
            let found = times.at(percent).unwrap();
            assert!((found - expected).abs() <= expected / 500.0, "{percent}: {found}");
        }
        assert_eq!(times.shown(0.0), "1.00");
    }

    #[test]
    fn nothing_counted_is_shown_as_nothing() {
        assert_eq!((Times::new().at(50.0), Times::new().between(&[0.0, 1.0])), (None, vec![0]));
        assert_eq!(Times::new().shown(99.0), "-");
        assert_eq!((Rates::default().median(), Rates::default().max()), (None, None));
    }

    #[test]
    fn times_out_of_range_count_at_the_nearest_end() {
        let mut times = Times::new();
        times.record(Duration::ZERO);
        times.record(Duration::MAX);
        assert_eq!((times.count(), times.at(0.0)), (2, Some(0.001)));
        assert!(times.at(100.0).unwrap() >= 59e6);
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

    #[test]
    fn the_median_is_in_the_middle() {
        let mut rates = Rates::default();
        for rate in [5.0, 1.0, 3.0] {
            rates.add(rate);
        }
        assert_eq!((rates.median(), rates.min(), rates.max()), (Some(3.0), Some(1.0), Some(5.0)));
        rates.add(4.0);
        assert_eq!((rates.median(), rates.samples().len()), (Some(3.5), 4));
    }
}
