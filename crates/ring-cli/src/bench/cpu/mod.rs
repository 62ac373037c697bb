//! The CPU device beside queues that others made: two threads, 64-byte messages, answered.

mod crossbeam;
mod partner;
mod rtrb;

use self::crossbeam::Array;
use self::partner::{CAPACITY, Queue};
use self::rtrb::{Chunks, Single};
use super::context::Context;
use super::report::{Found, Latency, Report, Round, Shape, Throughput, Whose};
use super::ring::{self, BATCH, Setup, latency};
use super::stats::{Rates, Times};
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Rounds of round trips and of rates, in turn between all.
const ROUNDS: u64 = 10;

/// Steps of [`measure`].
pub const STEPS: u64 = 2 * ROUNDS;

/// Who carries the messages, how they are measured, and what was found.
struct Row {
    id: &'static str,
    name: &'static str,
    whose: Whose,
    /// Messages handed over at a time.
    batch: usize,
    round: fn(&Context<'_>, &mut Times) -> Found<()>,
    rate: fn(&Context<'_>) -> Found<f64>,
    times: Found<(Times, Vec<Round>)>,
    rates: Found<Rates>,
}

fn rows() -> [Row; 4] {
    let new = |id, name, batch, round, rate| {
        let (times, rates) = (Ok((Times::new(), Vec::new())), Ok(Rates::default()));
        Row { id, name, whose: Whose::Baseline, batch, round, rate, times, rates }
    };
    let ours = new("ring", "echo", BATCH, our_round, our_rate);
    [Row { whose: Whose::Ours, ..ours }, of::<Single>(&new), of::<Chunks>(&new), of::<Array>(&new)]
}

type New<'a> = &'a dyn Fn(
    &'static str,
    &'static str,
    usize,
    fn(&Context<'_>, &mut Times) -> Found<()>,
    fn(&Context<'_>) -> Found<f64>,
) -> Row;

fn of<Q: Queue>(new: New<'_>) -> Row {
    new(Q::ID, Q::NAME, Q::BATCH, partner::round::<Q>, partner::rate::<Q>)
}

fn our_round(context: &Context<'_>, times: &mut Times) -> Found<()> {
    latency::round(context, LaunchConfig::default(), 0, times)
}

fn our_rate(context: &Context<'_>) -> Found<f64> {
    ring::rate::<Echo>(context, &setup(), &context.load())
}

/// As many slots and as many messages on their way as the others have.
fn setup() -> Setup {
    let mut setup = Setup::of::<Echo>().capacity(CAPACITY);
    setup.shape.depth = CAPACITY.into();
    setup
}

/// Measures all, in turn.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let mut rows = rows();
    for round in 1..=ROUNDS {
        context.steps.next(&format!("CPU device, round trips, round {round}"));
        for Row { times, round, .. } in &mut rows {
            context.go_on(times, |(all, rounds)| {
                let mut times = Times::new();
                round(context, &mut times)?;
                all.add(&times);
                rounds.extend(Round::of(&times));
                Ok(())
            });
        }
    }
    for round in 1..=ROUNDS {
        context.steps.next(&format!("CPU device, throughput, round {round}"));
        for Row { rates, rate, .. } in &mut rows {
            context.go_on(rates, |rates| rate(context).map(|rate| rates.add(rate)));
        }
    }
    for Row { id, name, whose, batch, times, rates, .. } in rows {
        let device = "cpu";
        let (times, rounds) = match times {
            Ok((times, rounds)) => (Ok(times), rounds),
            Err(stop) => (Err(stop), Vec::new()),
        };
        let (named, by_page) = (name.to_owned(), false);
        report.latency.push(Latency { id, name: named, device, whose, times, rounds, by_page });
        let shape = Shape { threads: 0, batch, ..setup().shape };
        report.throughput.push(Throughput {
            sweep: "cpu",
            name,
            device,
            whose,
            shape,
            rate: rates,
        });
    }
}
