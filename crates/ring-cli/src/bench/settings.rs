//! Durations and repetitions of the measurements.

use crate::args::Bench;
use crate::text::plural;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The longest wait for an answer. Baseline kernels leave by their own clock after [`Settings::kernel_limit`].
pub const TIMEOUT: Duration = Duration::from_secs(5);

/// How long and how often is measured.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Whether fewer samples and shorter runs were asked for.
    pub quick: bool,
    /// Round trips that are timed of each kind.
    pub samples: u64,
    /// Rounds into which they are dealt, in turn with those of other kinds.
    pub rounds: u64,
    /// Round trips before each round that are not timed.
    pub warm_up: u64,
    /// How long the round trips of one kind may take in one round, however few they were.
    #[serde(skip)]
    pub round_limit: Duration,
    /// The same of one row under load.
    #[serde(skip)]
    pub load_limit: Duration,
    /// How often a rate is measured.
    pub repeats: u64,
    /// How long each time.
    #[serde(rename = "run_ms", serialize_with = "milliseconds")]
    pub run: Duration,
    /// Whether the longest row of growth is wanted.
    #[serde(skip)]
    pub growth: bool,
}

fn milliseconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(time.as_millis() as u64)
}

impl Settings {
    /// What the options ask for.
    pub fn of(options: &Bench) -> Settings {
        let ms = Duration::from_millis;
        let quick = options.quick;
        let samples = options.samples.unwrap_or(if quick { 5_000 } else { 50_000 });
        Settings {
            quick,
            samples,
            rounds: 10,
            // No more than a round has samples: those that are not counted would take most of the time.
            warm_up: samples.div_ceil(10).min(if quick { 200 } else { 1_000 }),
            round_limit: if quick { ms(400) } else { ms(4_000) },
            load_limit: if quick { ms(100) } else { ms(1_000) },
            repeats: if quick { 3 } else { 5 },
            run: if quick { ms(30) } else { ms(150) },
            growth: options.growth,
        }
    }

    /// How it is measured, in words.
    pub fn in_words(&self) -> String {
        format!(
            "up to {} timed of each kind in {} rounds, {} before each that are not; rates: {} runs of \
             {} ms, the median counts",
            plural(self.samples, "round trip"),
            self.rounds,
            self.warm_up,
            self.repeats,
            self.run.as_millis()
        )
    }

    /// Round trips that are timed in one round.
    pub fn per_round(&self) -> u64 {
        self.samples.div_ceil(self.rounds)
    }

    /// After how long a baseline kernel leaves by its own clock: longer than any wait for it.
    pub fn kernel_limit(&self) -> Duration {
        self.round_limit + self.run + 2 * TIMEOUT
    }
}
