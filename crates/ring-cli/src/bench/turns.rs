//! Measures rows in turn, a round of each, so that a disturbance of the machine affects all of them alike.

use super::context::Context;
use super::report::{Found, Latency, Rounds, Shape, Stop, Throughput};
use super::stats::{Rates, Times};

/// Measures a round of round trips, which is counted from 0.
pub type Round = fn(&Context<'_>, usize, &mut Times) -> Found<()>;

/// Measures messages a second, once.
pub type Rate = fn(&Context<'_>, &Shape) -> Found<f64>;

/// Round trips of a kind: the name for programs, what it is, and what measures it.
pub type Trips = (&'static str, &'static str, Round);

/// A row of messages a second, and what measures it.
#[derive(Debug)]
pub struct Rated {
    /// The row.
    pub row: Throughput,
    /// What measures it.
    pub rate: Rate,
}

impl Rated {
    /// Measures it once more.
    pub fn once(&mut self, context: &Context<'_>) {
        let Rated { row, rate } = self;
        context.sample(&mut row.rate, || rate(context, &row.shape));
    }
}

impl Context<'_> {
    /// Measures round trips of all kinds, which are [`Trips`] or what keeps something from round to round.
    pub fn trips<R>(
        &self,
        what: &str,
        rounds: u64,
        kinds: &[(&'static str, &'static str, R)],
    ) -> Vec<Latency>
    where
        R: Fn(&Context<'_>, usize, &mut Times) -> Found<()>,
    {
        let row = |(id, name, _): &(&'static str, &str, R)| Latency::new(id, name, self.device());
        let mut rows: Vec<Latency> = kinds.iter().map(row).collect();
        for round in 1..=rounds {
            self.steps.next(&format!("{what}, round {round} of {rounds}"));
            for ((.., work), row) in kinds.iter().zip(&mut rows) {
                self.round(row, |times| work(self, round as usize - 1, times));
            }
        }
        rows
    }

    /// Measures messages a second of all rows.
    pub fn rates(
        &self,
        what: &str,
        rounds: u64,
        rows: impl IntoIterator<Item = Rated>,
    ) -> impl Iterator<Item = Throughput> {
        let mut rows: Vec<Rated> = rows.into_iter().collect();
        for round in 1..=rounds {
            self.steps.next(&format!("{what}, round {round} of {rounds}"));
            rows.iter_mut().for_each(|row| row.once(self));
        }
        rows.into_iter().map(|rated| rated.row)
    }

    /// Runs `work` on what was found so far, unless an earlier round failed. If `work` is interrupted, what was
    /// found so far is kept.
    pub fn accumulate<T>(&self, found: &mut Found<T>, work: impl FnOnce(&mut T) -> Found<()>) {
        if let Ok(known) = found
            && let Err(stop) = self.check_interrupt().and_then(|()| work(known))
            && stop != Stop::Interrupted
        {
            *found = Err(stop);
        }
    }

    /// Measures a rate and adds it to those found so far, as [`Context::accumulate`] does.
    pub fn sample(&self, rates: &mut Found<Rates>, rate: impl FnOnce() -> Found<f64>) {
        self.accumulate(rates, |rates| rate().map(|rate| rates.add(rate)));
    }

    /// Adds a round of round trips to a row, likewise.
    fn round(&self, row: &mut Latency, work: impl FnOnce(&mut Times) -> Found<()>) {
        let rounds = &mut row.rounds;
        self.accumulate(&mut row.times, |all| {
            let mut times = Times::new();
            work(&mut times)?;
            all.add(&times);
            rounds.add(&times);
            Ok(())
        });
        if row.times.is_err() {
            row.rounds = Rounds::default();
        }
    }
}
