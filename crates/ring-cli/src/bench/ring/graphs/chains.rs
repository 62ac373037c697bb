//! Round trips of one message through a chain of kernels.

use super::{Words, kernel};
use crate::bench::context::{Context, ended, ended_graph, wrong};
use crate::bench::report::{Found, Latency, Whose};
use crate::bench::ring::latency;
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::Times;
use crate::bench::turns::Trips;
use ring_bench::kernels::Pass64;
use ring_host::{GraphBuilder, GraphError, Node, PortReader, PortReceiver, Route, Sender};
use std::time::{Duration, Instant};

/// Chains that are drawn, as names for programs, and their kernels.
pub const CHAINS: [(&str, u32); 4] =
    [("graph_1", 1), ("graph_2", 2), ("graph_3", 3), ("graph_5", 5)];

/// One message at a time, all with the default launch.
const TRIPS: [Trips; 6] = [
    ("echo", "a kernel that answers, no graph", latency::round),
    ("graph_1", "one kernel", |context, pages, times| round(context, pages, &[&[0]], times)),
    ("graph_2", "two kernels", |context, pages, times| round(context, pages, &[&[0; 2]], times)),
    ("graph_3", "three kernels", |context, pages, times| round(context, pages, &[&[0; 3]], times)),
    ("graph_5", "five kernels", |context, pages, times| round(context, pages, &[&[0; 5]], times)),
    ("graph_by_host", "two kernels by way of the host", |context, pages, times| {
        round(context, pages, &[&[0], &[0]], times)
    }),
];

/// The same with kernels of two devices.
const ACROSS: [Trips; 5] = [
    ("peers_0", "a kernel of the first device", |context, pages, times| {
        round(context, pages, &[&[0]], times)
    }),
    ("peers_000", "three kernels of the first device", |context, pages, times| {
        round(context, pages, &[&[0, 0, 0]], times)
    }),
    ("peers_01", "a kernel of each device", |context, pages, times| {
        round(context, pages, &[&[0, 1]], times)
    }),
    ("peers_010", "kernels of the first, the second, the first", |context, pages, times| {
        round(context, pages, &[&[0, 1, 0]], times)
    }),
    ("peers_by_host", "a kernel of each device by way of the host", |context, pages, times| {
        round(context, pages, &[&[0], &[1]], times)
    }),
];

/// Measures all, a round of each in turn.
pub fn trips(context: &Context<'_>) -> Vec<Latency> {
    timed(context, "graphs, round trips", &TRIPS)
}

/// Those of kernels of two devices.
pub fn across(context: &Context<'_>) -> Vec<Latency> {
    timed(context, "peers, round trips", &ACROSS)
}

fn timed(context: &Context<'_>, what: &'static str, trips: &[Trips]) -> Vec<Latency> {
    let rows = context.trips(what, context.settings.rounds, trips);
    let others = ["echo", "graph_by_host", "peers_by_host"];
    let is_other = |row: &Latency| others.contains(&row.id);
    let whose = |row: &Latency| if is_other(row) { Whose::Baseline } else { Whose::Ours };
    rows.into_iter().map(|row| Latency { whose: whose(&row), ..row }).collect()
}

/// The ends of a chain of kernels, and of a launched one.
type Ends = (Node<Pass64>, PortReader<Words>);
type Launched = (Sender<Pass64>, PortReceiver<Words>);

/// Chains, each with the numbers of the devices that its kernels are on.
type Chains<'a> = &'a [&'a [usize]];

/// A round of messages that go through such chains, from one to the next by the host. All kernels are one graph.
fn round(context: &Context<'_>, pages: usize, chains: Chains<'_>, times: &mut Times) -> Found<()> {
    let spacer = context.spacer(pages)?;
    let mut graph = GraphBuilder::new();
    let ends: Vec<Ends> = chains.iter().map(|on| chain(context, &mut graph, on)).collect();
    let mut graph = context.graph(&graph)?;
    graph.activate(TIMEOUT).map_err(wrong)?;
    let launched = ends.into_iter();
    let launched =
        launched.map(|(first, last)| Ok((graph.sender(first, 0)?, graph.receiver(last, 0)?)));
    let launched: Result<Vec<Launched>, GraphError> = launched.collect();
    let mut launched = launched.map_err(wrong)?;
    let kernels = chains.iter().map(|on| on.len() as u64).sum();
    context.timed(times, |i| {
        pause(i);
        trip(&mut launched, kernels, i)
    })?;
    ended_graph(graph)?;
    spacer.map_or(Ok(()), ended)
}

/// Declares a chain of kernels on those devices, one at least, fed and read by the host.
fn chain(context: &Context<'_>, graph: &mut GraphBuilder, on: &[usize]) -> Ends {
    let first = kernel::<Pass64>(context, graph, 1);
    graph.feed(first).place(first, on[0]);
    let mut last = first;
    for device in &on[1..] {
        let next = kernel::<Pass64>(context, graph, 1);
        graph.place(next, *device).link(last, Pass64::ON, next, Route::Pairwise);
        last = next;
    }
    (first, graph.read(last, Pass64::ON))
}

/// Pauses before message `i`, for less than 4.1 us, a time that differs from message to message. A kernel's look at the host's
/// memory takes 1.2 us on an H100: messages sent as soon as the one before is back fall into step with the looks of the first
/// kernel, and then one kernel more takes either no time or that of a look.
fn pause(i: u64) {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 by the golden ratio: multiples of it are spread evenly
    let (begun, length) = (Instant::now(), Duration::from_nanos(i.wrapping_mul(MULTIPLIER) >> 52));
    while begun.elapsed() < length {
        core::hint::spin_loop();
    }
}

/// Sends message `i` through all chains; how long that took.
#[inline]
fn trip(chains: &mut [Launched], kernels: u64, i: u64) -> Found<Duration> {
    let begun = Instant::now();
    let mut message: Words = [i; 8];
    for (sender, receiver) in chains {
        sender.send(message, TIMEOUT).map_err(wrong)?;
        message = receiver.recv(TIMEOUT).map_err(wrong)?;
    }
    let time = begun.elapsed();
    match message == [i.wrapping_add(kernels); 8] {
        true => Ok(time),
        false => Err(wrong(format!("what came of message {i} is wrong: {message:x?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn a_message_is_timed_through_every_chain() {
        example::with(Interrupt::never(), |context| {
            for (id, _, round) in TRIPS.into_iter().chain(ACROSS) {
                let mut times = Times::new();
                round(context, 1, &mut times).unwrap_or_else(|stop| panic!("{id}: {stop:?}"));
                assert!(times.count() > 0, "{id}");
            }
        });
        assert!(CHAINS.iter().all(|(id, _)| TRIPS.iter().any(|(known, ..)| id == known)));
    }
}
