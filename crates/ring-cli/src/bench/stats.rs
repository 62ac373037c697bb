//! Statistics of times and rates.

pub use crate::times::Times;

/// Percentiles that are plotted and printed: the tail in full.
pub const CURVE: [f64; 21] = [
    0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 98.0, 99.0, 99.5,
    99.8, 99.9, 99.95, 99.99, 100.0,
];

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
    fn nothing_measured_has_no_middle() {
        assert_eq!((Rates::default().median(), Rates::default().max()), (None, None));
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
