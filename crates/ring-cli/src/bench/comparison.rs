//! Measures the ring beside its baselines on a GPU.

use super::baselines::launch::{By, Kernel};
use super::baselines::{between, copies, flag, head_tail, launch};
use super::context::Context;
use super::report::{Report, Shape};
use super::ring::{self, latency};
use super::turns::Trips;
use ring_bench::kernels::Digest;
use ring_host::kernels::Echo;

/// Pairs of rings with head and tail that the ring is compared with.
const PAIRS: [u32; 2] = [1, 8];

/// Channels and slots for large messages that are tried. The first three are the default launch's.
const LARGE: [(u32, u32); 5] = [(1, 1024), (2, 1024), (4, 1024), (1, 256), (4, 256)];

/// Round trips at depth 1.
const TRIPS: [Trips; 7] = [
    ("ring", "ring, persistent, mapped", latency::round),
    ("flag", "bare flag, no payload", flag::round),
    ("launch", "launch, then poll", |context, _, times| {
        launch::round(context, Kernel::Reads, By::Launch, times)
    }),
    ("launch_unread", "launch that reads no request", |context, _, times| {
        launch::round(context, Kernel::Counts, By::Launch, times)
    }),
    ("graph", "graph launch, then poll", |context, _, times| {
        launch::round(context, Kernel::Reads, By::Graph, times)
    }),
    ("graph_unread", "graph that reads no request", |context, _, times| {
        launch::round(context, Kernel::Counts, By::Graph, times)
    }),
    ("copies", "copy, launch, copy, sync", |context, _, times| copies::round(context, times)),
];

/// Steps of [`latency()`] beside its rounds.
pub const STEPS_BESIDE: u64 = 2;

/// Round trips, and what the device's clock says.
pub fn latency(context: &Context<'_>, report: &mut Report) {
    report.latency.extend(context.trips("round trips", context.settings.rounds, &TRIPS));
    context.steps.next("one way between two blocks");
    report.on_device.extend(between::one_way(context));
    context.steps.next("what the device says of round trips");
    report.on_device.extend(latency::device_times(context));
}

/// Messages a second beside rings with head and tail, made of the same numbers.
pub fn throughput(context: &Context<'_>, report: &mut Report) {
    let shapes = PAIRS.map(|channels| Shape::of::<Echo>().channels(channels));
    let rows = shapes.into_iter().flat_map(|shape| {
        let theirs = head_tail::beside(&shape);
        [ring::rated::<Echo>("head_tail", shape)].into_iter().chain(theirs)
    });
    let what = "throughput beside head and tail";
    report.throughput.extend(context.rates(what, context.settings.repeats, rows));
}

/// Bytes a second of large messages with small answers, beside plain copies.
pub fn bandwidth(context: &Context<'_>, report: &mut Report) {
    let mut theirs = copies::rows();
    let mut ours = LARGE.map(|(channels, slots)| {
        ring::rated::<Digest>("bandwidth", Shape::of::<Digest>().channels(channels).capacity(slots))
    });
    for round in 1..=context.settings.repeats {
        context.steps.next(&format!("bandwidth, round {round} of {}", context.settings.repeats));
        for (row, back) in theirs.iter_mut().zip([false, true]) {
            context.sample(&mut row.rate, || copies::speed(context, back));
        }
        ours.iter_mut().for_each(|row| row.once(context));
    }
    report.copies = theirs.into();
    report.throughput.extend(ours.map(|rated| rated.row));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_ratio_are_made_of_the_same_numbers() {
        for shape in PAIRS.map(|channels| Shape::of::<Echo>().channels(channels)) {
            let theirs = head_tail::beside(&shape);
            let shapes: Vec<&Shape> = theirs.iter().map(|rated| &rated.row.shape).collect();
            assert!(shapes.iter().filter(|theirs| ***theirs == shape).count() >= 2, "{shapes:?}");
            for theirs in shapes {
                assert_eq!(*theirs, Shape { threads: theirs.threads, ..shape.clone() });
            }
        }
    }
}
