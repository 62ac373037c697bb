//! The CPU device beside queues that others made: two threads, 64-byte messages, answered.

mod partner;
mod queues;

use self::partner::{CAPACITY, Queue};
use self::queues::{Array, Chunks, Single};
use super::context::Context;
use super::report::{Found, Latency, Report, Shape, Throughput};
use super::ring::{self, BATCH, latency};
use super::stats::{Rates, Times};
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Rounds of round trips and of rates, in turn between all.
const ROUNDS: u64 = 10;

/// Steps of [`measure`].
pub const STEPS: u64 = 2 * ROUNDS;

type Round = fn(&Context<'_>, &mut Times) -> Found<()>;
type Rate = fn(&Context<'_>) -> Found<f64>;

/// Who carries the messages, how that is measured, and what was found.
struct Carrier {
    round: Round,
    rate: Rate,
    latency: Latency,
    throughput: Throughput,
}

impl Carrier {
    fn new(
        id: &'static str,
        name: &'static str,
        batch: usize,
        round: Round,
        rate: Rate,
    ) -> Carrier {
        let (latency, shape) =
            (Latency::new(id, name, "cpu"), Shape { threads: 0, batch, ..shape() });
        let (device, whose, none) = ("cpu", latency.whose, Ok(Rates::default()));
        let throughput = Throughput { sweep: "cpu", name, device, whose, shape, rate: none };
        Carrier { round, rate, latency, throughput }
    }

    fn of<Q: Queue>() -> Carrier {
        Carrier::new(Q::ID, Q::NAME, Q::BATCH, partner::round::<Q>, partner::rate::<Q>)
    }

    fn ring() -> Carrier {
        let round: Round =
            |context, times| latency::round(context, LaunchConfig::default(), 0, times);
        let rate: Rate = |context| ring::rate::<Echo>(context, &shape(), &context.load());
        Carrier::new("ring", "echo", BATCH, round, rate)
    }
}

/// As many slots and as many messages on their way as the others have.
fn shape() -> Shape {
    Shape { depth: CAPACITY.into(), ..Shape::of::<Echo>().capacity(CAPACITY) }
}

/// Measures all, in turn.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let mut all =
        [Carrier::ring(), Carrier::of::<Single>(), Carrier::of::<Chunks>(), Carrier::of::<Array>()];
    for round in 1..=ROUNDS {
        context.steps.next(&format!("CPU device, round trips, round {round}"));
        for Carrier { latency, round, .. } in &mut all {
            context.round(latency, |times| round(context, times));
        }
    }
    for round in 1..=ROUNDS {
        context.steps.next(&format!("CPU device, throughput, round {round}"));
        for Carrier { throughput, rate, .. } in &mut all {
            context.sample(&mut throughput.rate, || rate(context));
        }
    }
    for Carrier { latency, throughput, .. } in all {
        report.latency.push(latency);
        report.throughput.push(throughput);
    }
}
