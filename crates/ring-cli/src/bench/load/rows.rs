//! What was measured under load.

use crate::bench::context::Context;
use crate::bench::report::{Found, Rounds, Stop, Whose, found};
use crate::bench::stats::{Rates, Times};
use serde::Serialize;

/// A round of a row.
#[derive(Clone, Debug)]
pub struct Round {
    /// How long its messages took.
    pub times: Times,
    /// How many there were a second, where that was counted.
    pub rate: Option<f64>,
}

/// The rounds of a row.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// How long messages took, all rounds together.
    pub times: Times,
    /// Each round by itself.
    #[serde(flatten)]
    pub rounds: Rounds,
    /// Messages a second of each round.
    pub rate: Rates,
}

impl Figures {
    /// Nothing measured yet.
    pub fn new() -> Figures {
        Figures { times: Times::new(), rounds: Rounds::default(), rate: Rates::default() }
    }

    /// Adds a round.
    pub fn add(&mut self, round: &Round) {
        self.times.add(&round.times);
        self.rounds.add(&round.times);
        if let Some(rate) = round.rate {
            self.rate.add(rate);
        }
    }
}

/// Adds a round to those of a row, as [`Context::accumulate`] does.
pub fn add_round(
    context: &Context<'_>,
    figures: &mut Found<Figures>,
    round: impl FnOnce() -> Found<Round>,
) {
    context.accumulate(figures, |figures| round().map(|round| figures.add(&round)));
}

/// Who carries a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Carrier {
    /// A channel of the runtime.
    Ring,
    /// Rings with a head and a tail each.
    HeadTail,
    /// A launch for each.
    Launch,
    /// The launch of a graph for each.
    Graph,
}

impl Carrier {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Carrier::Ring => "ring",
            Carrier::HeadTail => "head/tail",
            Carrier::Launch => "launch",
            Carrier::Graph => "graph launch",
        }
    }

    /// Whether it is the runtime's.
    pub fn whose(self) -> Whose {
        if self == Carrier::Ring { Whose::Ours } else { Whose::Baseline }
    }
}

/// A number of messages that is kept in flight.
#[derive(Clone, Debug, Serialize)]
pub struct Closed {
    /// By whom.
    pub carrier: Carrier,
    /// How many.
    pub in_flight: u64,
    /// Most that are sent or received at a time; 1 if one by one.
    pub batch: usize,
    /// What was measured.
    #[serde(serialize_with = "found")]
    pub figures: Found<Figures>,
}

impl Closed {
    /// Whether messages are sent and received one by one.
    pub fn is_single(&self) -> bool {
        self.batch == 1
    }
}

/// A rate at which messages are due.
#[derive(Clone, Debug, Serialize)]
pub struct Open {
    /// Messages a second that are due.
    pub offered: u64,
    /// How long each took from when it was due, and how many there were a second.
    #[serde(serialize_with = "found")]
    pub figures: Found<Figures>,
    /// How late a thread was that only reads the clock.
    #[serde(serialize_with = "found")]
    pub clock: Found<Figures>,
    /// Whether that rate was not reached.
    pub saturated: bool,
}

/// The part of the rate offered from which on it is reached.
const REACHED: f64 = 0.95;

impl Open {
    /// Nothing measured yet.
    pub fn new(offered: u64) -> Open {
        Open { offered, figures: Ok(Figures::new()), clock: Ok(Figures::new()), saturated: false }
    }

    /// Compares the rate reached with the one offered.
    pub fn judge(&mut self) {
        let reached = self.figures.as_ref().ok().and_then(|figures| figures.rate.median());
        self.saturated = reached.is_some_and(|rate| rate < REACHED * self.offered as f64);
    }
}

/// A number of channels with one message each in flight.
#[derive(Clone, Debug, Serialize)]
pub struct Channels {
    /// Channels of the kernel.
    pub channels: u32,
    /// Host threads that serve them.
    pub threads: usize,
    /// What was measured.
    #[serde(serialize_with = "found")]
    pub figures: Found<Figures>,
}

impl Channels {
    /// How host threads and channels go together.
    pub fn in_words(&self) -> &'static str {
        match (self.channels as usize, self.threads) {
            (1, _) => "",
            (_, 1) => "one thread, in turn",
            (channels, threads) if threads < channels => "threads fewer than channels",
            _ => "a thread each",
        }
    }
}

/// Latency under load.
#[derive(Clone, Debug, Serialize)]
pub struct UnderLoad {
    /// `cuda` or `cpu`.
    pub device: &'static str,
    /// Against messages in flight.
    pub closed: Vec<Closed>,
    /// Against the rate offered.
    pub open: Vec<Open>,
    /// Against channels.
    pub channels: Vec<Channels>,
}

impl UnderLoad {
    /// The rows of a carrier, one by one or in batches.
    pub fn closed(&self, carrier: Carrier, single: bool) -> impl Iterator<Item = &Closed> {
        let of = move |row: &&Closed| row.carrier == carrier && row.is_single() == single;
        self.closed.iter().filter(of)
    }

    /// Leaves out rows without a figure that were interrupted.
    pub fn interrupted(&mut self) {
        let some = |figures: &Found<Figures>| match figures {
            Ok(figures) => figures.times.count() > 0,
            Err(stop) => *stop != Stop::Interrupted,
        };
        self.closed.retain(|row| some(&row.figures));
        self.open.retain(|row| some(&row.figures));
        self.channels.retain(|row| some(&row.figures));
    }

    /// What stopped rows, each with what was being measured.
    pub fn stops(&self) -> impl Iterator<Item = (String, Option<&Stop>)> {
        let closed = self.closed.iter().map(|row| {
            let what = format!("{}, {} in flight", row.carrier.name(), row.in_flight);
            (what, row.figures.as_ref().err())
        });
        let open = self.open.iter().flat_map(|row| {
            let what = |who: &str| format!("{who} at {} a second", row.offered);
            let clock = (what("the clock alone"), row.clock.as_ref().err());
            [(what("ring"), row.figures.as_ref().err()), clock]
        });
        let channels = self.channels.iter().map(|row| {
            let what = format!("{} channels, {} host threads", row.channels, row.threads);
            (what, row.figures.as_ref().err())
        });
        closed.chain(open).chain(channels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn round(us: u64, rate: Option<f64>) -> Round {
        let mut times = Times::new();
        times.record(Duration::from_micros(us));
        Round { times, rate }
    }

    #[test]
    fn a_rate_well_below_the_one_offered_is_saturated() {
        for (reached, saturated) in [(1.0e6, false), (0.96e6, false), (0.94e6, true)] {
            let mut row = Open::new(1_000_000);
            row.judge();
            assert!(!row.saturated, "nothing measured");
            row.figures.as_mut().unwrap().add(&round(2, Some(reached)));
            row.judge();
            assert_eq!(row.saturated, saturated, "{reached}");
        }
    }

    #[test]
    fn what_was_interrupted_before_a_figure_is_left_out() {
        let mut figures = Figures::new();
        figures.add(&round(2, None));
        let row = |figures| Closed { carrier: Carrier::Ring, in_flight: 1, batch: 1, figures };
        let closed = [Ok(figures), Ok(Figures::new()), Err(Stop::Refused("no".to_owned()))];
        let (closed, open) = (closed.map(row).into(), vec![Open::new(1)]);
        let mut all = UnderLoad { device: "cpu", closed, open, channels: Vec::new() };
        all.interrupted();
        assert_eq!((all.closed.len(), all.open.len()), (2, 0));
        assert_eq!(all.stops().filter(|(_, stop)| stop.is_some()).count(), 1);
    }
}
