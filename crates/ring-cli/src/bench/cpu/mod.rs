//! The CPU device beside queues that others made: two threads, 64-byte messages, answered.

mod partner;
mod queues;

use self::partner::{CAPACITY, Queue};
use self::queues::{Array, Chunks, Single};
use super::context::Context;
use super::report::{Report, Shape, Throughput, Whose};
use super::ring::{self, BATCH, latency};
use super::turns::{Rate, Rated, Round};
use ring_host::kernels::Echo;

/// Rounds of round trips and of rates, in turn between all.
const ROUNDS: u64 = 10;

/// Steps of [`measure`].
pub const STEPS: u64 = 2 * ROUNDS;

/// Who carries the messages, and how that is measured.
struct Carrier {
    id: &'static str,
    name: &'static str,
    whose: Whose,
    batch: usize,
    round: Round,
    rate: Rate,
}

fn ring() -> Carrier {
    let round: Round = |context, _, times| latency::round(context, 0, times);
    let rate: Rate = |context, _| ring::rate::<Echo>(context, &shape(), &context.load());
    Carrier { id: "ring", name: "echo", whose: Whose::Ours, batch: BATCH, round, rate }
}

fn queue<Q: Queue>() -> Carrier {
    let round: Round = |context, _, times| partner::round::<Q>(context, times);
    let rate: Rate = |context, _| partner::rate::<Q>(context);
    let (id, name, batch) = (Q::ID, Q::NAME, Q::BATCH);
    Carrier { id, name, whose: Whose::Baseline, batch, round, rate }
}

/// As many slots and as many messages on their way as the others have.
fn shape() -> Shape {
    Shape { depth: CAPACITY.into(), ..Shape::of::<Echo>().capacity(CAPACITY) }
}

/// Measures all.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let all = [ring(), queue::<Single>(), queue::<Chunks>(), queue::<Array>()];
    let trips = all.each_ref().map(|Carrier { id, name, round, .. }| (*id, *name, *round));
    report.latency.extend(context.trips("CPU device, round trips", ROUNDS, &trips));
    let rates = all.map(|Carrier { name, whose, batch, rate, .. }| {
        let shape = Shape { threads: 0, batch, ..shape() };
        Rated { row: Throughput::new("cpu", (name, whose), "cpu", shape), rate }
    });
    report.throughput.extend(context.rates("CPU device, throughput", ROUNDS, rates));
}
