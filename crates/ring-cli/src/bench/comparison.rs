//! Measures the ring and its baselines in alternating rounds, so that a disturbance of the machine affects all
//! of them alike.

use super::baselines::launch::{By, Kernel, Launches};
use super::baselines::{Gpu, between, copies, flag, head_tail};
use super::context::Context;
use super::report::{Found, Latency, Report, Shape};
use super::ring::{self, latency};
use super::stats::Times;
use ring_bench::kernels::Digest;
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Pairs of rings with head and tail that the ring is compared with.
const PAIRS: [u32; 2] = [1, 8];

/// Channels and slots for large messages that are tried. The first three are the default launch's.
const LARGE: [(u32, u32); 5] = [(1, 1024), (2, 1024), (4, 1024), (1, 256), (4, 256)];

/// Steps of [`latency()`] beside its rounds.
pub const STEPS_BESIDE: u64 = 2;

/// Round trips at depth 1.
pub fn latency(context: &Context<'_>, gpu: &mut Gpu, report: &mut Report) {
    type Round<'a> = &'a dyn Fn(&mut Gpu, usize, &mut Times) -> Found<()>;
    let launches = Launches::new(gpu);
    let launched = |kernel: Kernel, by: By, gpu: &mut Gpu, times: &mut Times| -> Found<()> {
        launches.as_ref().map_err(Clone::clone)?.round(context, gpu, (kernel, by), times)
    };
    let kinds: [(&str, &str, Round<'_>); 7] = [
        ("ring", "ring, persistent, mapped", &|_, page, times| {
            latency::round(context, LaunchConfig::default(), page, times)
        }),
        ("flag", "bare flag, no payload", &|gpu, page, times| {
            flag::round(context, gpu, page, times)
        }),
        ("launch", "launch, then poll", &|gpu, _, times| {
            launched(Kernel::Reads, By::Launch, gpu, times)
        }),
        ("launch_unread", "launch that reads no request", &|gpu, _, times| {
            launched(Kernel::Counts, By::Launch, gpu, times)
        }),
        ("graph", "graph launch, then poll", &|gpu, _, times| {
            launched(Kernel::Reads, By::Graph, gpu, times)
        }),
        ("graph_unread", "graph that reads no request", &|gpu, _, times| {
            launched(Kernel::Counts, By::Graph, gpu, times)
        }),
        ("copies", "copy, launch, copy, sync", &|gpu, _, times| copies::round(context, gpu, times)),
    ];
    let mut rows = kinds.map(|(id, name, _)| Latency::new(id, name, "cuda"));
    for round in 1..=context.settings.rounds {
        context.steps.next(&format!("round trips, round {round} of {}", context.settings.rounds));
        for ((.., work), row) in kinds.iter().zip(&mut rows) {
            context.round(row, |times| work(gpu, round as usize - 1, times));
        }
    }
    report.latency.extend(rows);
    context.steps.next("one way between two blocks");
    report.on_device.extend(between::one_way(context, gpu));
    context.steps.next("what the device says of round trips");
    report.on_device.extend(latency::device_times(context));
}

/// Messages a second beside rings with head and tail, made of the same numbers.
pub fn throughput(context: &Context<'_>, gpu: &mut Gpu, report: &mut Report) {
    let mut sides = PAIRS.map(|channels| {
        let shape = Shape::of::<Echo>().channels(channels);
        let theirs = head_tail::beside(&shape);
        (ring::row::<Echo>(context, "head_tail", shape), theirs)
    });
    for round in 1..=context.settings.repeats {
        context.steps.next(&format!("throughput beside head and tail, round {round}"));
        for (ours, theirs) in &mut sides {
            let (rate, shape) = (&mut ours.rate, &ours.shape);
            context.sample(rate, || ring::rate::<Echo>(context, shape, &context.load()));
            for pairs in theirs {
                pairs.round(context, gpu);
            }
        }
    }
    for (ours, theirs) in sides {
        report.throughput.push(ours);
        report.throughput.extend(theirs.into_iter().map(|pairs| pairs.row));
    }
}

/// Bytes a second of large messages with small answers, beside plain copies.
pub fn bandwidth(context: &Context<'_>, gpu: &Gpu, report: &mut Report) {
    let mut theirs = copies::rows();
    let mut ours = LARGE.map(|(channels, slots)| {
        let shape = Shape::of::<Digest>().channels(channels).capacity(slots);
        ring::row::<Digest>(context, "bandwidth", shape)
    });
    for round in 1..=context.settings.repeats {
        context.steps.next(&format!("bandwidth, round {round}"));
        for (row, back) in theirs.iter_mut().zip([false, true]) {
            context.sample(&mut row.rate, || context.cores.on(0, || copies::speed(gpu, back)));
        }
        for row in &mut ours {
            let (rate, shape) = (&mut row.rate, &row.shape);
            context.sample(rate, || ring::rate::<Digest>(context, shape, &context.load()));
        }
    }
    report.copies = theirs.into();
    report.throughput.extend(ours);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_a_ratio_are_made_of_the_same_numbers() {
        for shape in PAIRS.map(|channels| Shape::of::<Echo>().channels(channels)) {
            let theirs = head_tail::beside(&shape);
            let shapes: Vec<&Shape> = theirs.iter().map(|pairs| &pairs.row.shape).collect();
            assert!(shapes.iter().filter(|theirs| ***theirs == shape).count() >= 2, "{shapes:?}");
            for theirs in shapes {
                assert_eq!(*theirs, Shape { threads: theirs.threads, ..shape.clone() });
            }
        }
    }
}
