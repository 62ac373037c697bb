//! Latency against messages in flight, on one channel and one host thread.

use super::in_flight::{self, Plan};
use super::rows::{Carrier, Closed, Figures, Round, add_round};
use super::single::SinglePipe;
use crate::bench::baselines::head_tail;
use crate::bench::baselines::launch::{self, By, Kernel};
use crate::bench::context::{Context, ended, wrong};
use crate::bench::report::{Found, Shape};
use crate::bench::ring::{BATCH, RingPipe};
use crate::bench::stats::Times;
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Messages in flight that are sent and received one by one.
const SINGLE: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Messages in flight that are sent and received in batches. The CPU device is spared the last.
const BATCHED: [u64; 4] = [64, 256, 1024, 8192];

/// All rows, in the order in which they are measured: what is compared stands side by side.
fn rows(is_cpu: bool) -> Vec<Closed> {
    let batched = &BATCHED[..BATCHED.len() - usize::from(is_cpu)];
    let all = SINGLE.iter().map(|n| (*n, 1)).chain(batched.iter().map(|n| (*n, BATCH)));
    let carriers = |in_flight| match (is_cpu, in_flight) {
        (true, _) => &[Carrier::Ring] as &[Carrier],
        (_, 1) => &[Carrier::Ring, Carrier::HeadTail, Carrier::Launch, Carrier::Graph],
        _ => &[Carrier::Ring, Carrier::HeadTail],
    };
    let row = |carrier, in_flight, batch| Closed {
        carrier,
        in_flight,
        batch,
        figures: Ok(Figures::new()),
    };
    all.flat_map(|(n, batch)| carriers(n).iter().map(move |carrier| row(*carrier, n, batch)))
        .collect()
}

/// Measures all rows in turn, a round of each.
pub fn measure(context: &Context<'_>) -> Vec<Closed> {
    let mut rows = rows(context.is_cpu());
    let rounds = context.settings.rounds;
    for round in 1..=rounds {
        context.steps.next(&format!("messages in flight, round {round} of {rounds}"));
        for row in &mut rows {
            let (carrier, plan) = (row.carrier, Plan::new(context, row.in_flight, row.batch));
            let pages = round as usize - 1;
            add_round(context, &mut row.figures, || once(context, carrier, &plan, pages));
        }
    }
    rows
}

/// A round by kernels launched for that; the ring's memory begins so many pages further on than it would.
fn once(context: &Context<'_>, carrier: Carrier, plan: &Plan, pages: usize) -> Found<Round> {
    match carrier {
        Carrier::Ring => ring(context, plan, pages),
        Carrier::HeadTail => {
            head_tail::with(context, &Shape::of::<Echo>(), BATCH as u64, |pairs| {
                in_flight::keep(context, pairs, plan, 1)
            })
        }
        Carrier::Launch => launched(context, By::Launch),
        Carrier::Graph => launched(context, By::Graph),
    }
}

fn ring(context: &Context<'_>, plan: &Plan, pages: usize) -> Found<Round> {
    let spacer = context.spacer(if context.is_cpu() { 0 } else { pages })?;
    let mut kernel = context.active::<Echo>(LaunchConfig::default())?;
    let channel = [kernel.take_channel(0).map_err(wrong)?].into_iter();
    let round = match plan.batch {
        1 => in_flight::keep(context, channel.map(SinglePipe::new), plan, 1),
        _ => in_flight::keep(context, channel.map(RingPipe::new), plan, 1),
    }?;
    ended(kernel)?;
    spacer.map_or(Ok(()), ended)?;
    Ok(round)
}

/// What follows an answer and is not timed bounds the rate, so there is none.
fn launched(context: &Context<'_>, by: By) -> Found<Round> {
    let mut times = Times::new();
    launch::round(context, Kernel::Reads, by, &mut times)?;
    Ok(Round { times, rate: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn every_number_in_flight_is_beside_its_baselines() {
        let of = |rows: &[Closed], carrier| {
            let rows = rows.iter().filter(move |row| row.carrier == carrier);
            rows.map(|row| (row.in_flight, row.batch)).collect::<Vec<_>>()
        };
        let gpu = rows(false);
        assert_eq!(of(&gpu, Carrier::Ring), of(&gpu, Carrier::HeadTail));
        assert_eq!(of(&gpu, Carrier::Ring).len(), SINGLE.len() + BATCHED.len());
        for carrier in [Carrier::Launch, Carrier::Graph] {
            assert_eq!(of(&gpu, carrier), [(1, 1)]);
        }
        assert!(rows(true).iter().all(|row| row.carrier == Carrier::Ring));
    }

    #[test]
    fn messages_are_kept_in_flight_one_by_one_and_in_batches() {
        example::with(Interrupt::never(), |context| {
            for (in_flight, batch) in [(1, 1), (3, 1), (64, BATCH)] {
                let plan = Plan { samples: 200, ..Plan::new(context, in_flight, batch) };
                let round = ring(context, &plan, 0).unwrap();
                assert!(round.times.count() > 0, "{round:?}");
            }
        });
    }
}
