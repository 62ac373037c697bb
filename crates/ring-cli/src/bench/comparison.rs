//! Ours and what it is compared with, in turn: what the machine does meanwhile befalls all alike.

use super::baselines::copies::{self, Speeds};
use super::baselines::head_tail::HeadTails;
use super::baselines::launch::{By, Kernel, Launches};
use super::baselines::{Gpu, between, flag};
use super::context::Context;
use super::report::{Found, Latency, OnDevice, Report, Round, Whose};
use super::ring::bandwidth::Bandwidth;
use super::ring::{self, Setup, latency};
use super::stats::{Rates, Times};
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Pairs of rings with head and tail that ours is compared with.
const PAIRS: [u32; 2] = [1, 8];

/// Steps of [`latency()`].
pub fn latency_steps(context: &Context<'_>) -> u64 {
    context.settings.rounds + 2
}

/// Steps of [`throughput`], and of [`bandwidth`].
pub fn repeats(context: &Context<'_>) -> u64 {
    context.settings.repeats as u64
}

/// Round trips at depth 1.
pub fn latency(context: &Context<'_>, gpu: &mut Gpu, report: &mut Report) {
    type Make<'a> = &'a dyn Fn(&mut Gpu, usize, &mut Times) -> Found<()>;
    let launches = Launches::new(gpu);
    let launched = |way: (Kernel, By), gpu: &mut Gpu, times: &mut Times| -> Found<()> {
        launches.as_ref().map_err(Clone::clone)?.round(context, gpu, way, times)
    };
    let kinds: [(&str, &str, Make<'_>); 7] = [
        ("ring", "ring, persistent, mapped", &|_, page, times| {
            latency::round(context, LaunchConfig::default(), page, times)
        }),
        ("flag", "bare flag, no payload", &|gpu, page, times| {
            flag::round(context, gpu, page, times)
        }),
        ("launch", "launch, then poll", &|gpu, _, times| {
            launched((Kernel::Reads, By::Launch), gpu, times)
        }),
        ("launch_unread", "launch that reads no request", &|gpu, _, times| {
            launched((Kernel::Counts, By::Launch), gpu, times)
        }),
        ("graph", "graph launch, then poll", &|gpu, _, times| {
            launched((Kernel::Reads, By::Graph), gpu, times)
        }),
        ("graph_unread", "graph that reads no request", &|gpu, _, times| {
            launched((Kernel::Counts, By::Graph), gpu, times)
        }),
        ("copies", "copy, launch, copy, sync", &|gpu, _, times| copies::round(context, gpu, times)),
    ];
    let mut found: [Found<(Times, Vec<Round>)>; 7] =
        std::array::from_fn(|_| Ok((Times::new(), Vec::new())));
    for round in 1..=context.settings.rounds {
        context.steps.next(&format!("round trips, round {round} of {}", context.settings.rounds));
        for ((.., work), found) in kinds.iter().zip(&mut found) {
            context.go_on(found, |(all, rounds)| {
                let mut times = Times::new();
                work(gpu, round as usize - 1, &mut times)?;
                all.add(&times);
                rounds.extend(Round::of(&times));
                Ok(())
            });
        }
    }
    for ((id, name, _), found) in kinds.iter().zip(found) {
        let (name, device) = ((*name).to_owned(), "cuda");
        let whose = if *id == "ring" { Whose::Ours } else { Whose::Baseline };
        let (times, rounds) = match found {
            Ok((times, rounds)) => (Ok(times), rounds),
            Err(stop) => (Err(stop), Vec::new()),
        };
        let by_page = matches!(*id, "ring" | "flag");
        report.latency.push(Latency { id, name, device, whose, times, rounds, by_page });
    }
    context.steps.next("one way between two blocks");
    let name = "one block to another, one way";
    report.on_device.push(OnDevice { name, us: between::one_way(context, gpu) });
    context.steps.next("what the device says of round trips");
    report.on_device.extend(latency::told(context));
}

/// Ours on so many channels, and rings with head and tail made of the same numbers.
fn sides() -> [(Setup, Found<Rates>, HeadTails); PAIRS.len()] {
    PAIRS.map(|channels| {
        let ours = Setup::of::<Echo>().channels(channels);
        let theirs = HeadTails::beside(&ours.shape);
        (ours, Ok(Rates::default()), theirs)
    })
}

/// Messages a second beside rings with head and tail.
pub fn throughput(context: &Context<'_>, gpu: &mut Gpu, report: &mut Report) {
    let mut sides = sides();
    for round in 1..=context.settings.repeats {
        context.steps.next(&format!("throughput beside head and tail, round {round}"));
        for (setup, ours, theirs) in &mut sides {
            context.go_on(ours, |rates| {
                ring::rate::<Echo>(context, setup, &context.load()).map(|rate| rates.add(rate))
            });
            theirs.round(context, gpu);
        }
    }
    for (setup, ours, theirs) in sides {
        report.throughput.push(setup.row::<Echo>(context, "head_tail", ours));
        report.throughput.extend(theirs.rows());
    }
}

/// Bytes a second beside plain copies.
pub fn bandwidth(context: &Context<'_>, gpu: &Gpu, report: &mut Report) {
    let (mut ours, mut theirs) = (Bandwidth::new(), Speeds::new());
    for round in 1..=context.settings.repeats {
        context.steps.next(&format!("bandwidth, round {round}"));
        theirs.round(context, gpu);
        ours.round(context);
    }
    report.copies = theirs.rows();
    report.throughput.extend(ours.rows(context));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::Shape;

    #[test]
    fn both_sides_of_a_ratio_are_made_of_the_same_numbers() {
        for (ours, _, theirs) in sides() {
            let rows = theirs.rows();
            let shapes: Vec<&Shape> = rows.iter().map(|row| &row.shape).collect();
            assert!(
                shapes.iter().filter(|shape| ***shape == ours.shape).count() >= 2,
                "{shapes:?}"
            );
            for shape in shapes {
                assert_eq!(*shape, Shape { threads: shape.threads, ..ours.shape.clone() });
            }
        }
    }
}
