//! Ours and what it is compared with, in turn: what the machine does meanwhile befalls all alike.

use super::baselines::copies::{self, Speeds};
use super::baselines::head_tail::HeadTails;
use super::baselines::launch::{By, Kernel, Launches};
use super::baselines::{Gpu, between, flag};
use super::bed::Bed;
use super::ours::bandwidth::Bandwidth;
use super::ours::{self, Setup, latency};
use super::report::{Found, Latency, OnDevice, Report, Round, Whose};
use super::stats::{Rates, Times};
use ring_host::LaunchConfig;
use ring_host::kernels::Echo;

/// Pairs of rings with head and tail that ours is compared with.
const PAIRS: [u32; 2] = [1, 8];

/// Steps of [`latency()`].
pub fn latency_steps(bed: &Bed<'_>) -> u64 {
    bed.settings.rounds + 2
}

/// Steps of [`throughput`], and of [`bandwidth`].
pub fn repeats(bed: &Bed<'_>) -> u64 {
    bed.settings.repeats as u64
}

/// Round trips at depth 1.
pub fn latency(bed: &Bed<'_>, gpu: &mut Gpu, report: &mut Report) {
    type Make<'a> = &'a dyn Fn(&mut Gpu, usize, &mut Times) -> Found<()>;
    let launches = Launches::new(gpu);
    let launched = |way: (Kernel, By), gpu: &mut Gpu, times: &mut Times| -> Found<()> {
        launches.as_ref().map_err(Clone::clone)?.round(bed, gpu, way, times)
    };
    let kinds: [(&str, &str, Make<'_>); 7] = [
        ("ring", "ring, persistent, mapped", &|_, page, times| {
            latency::round(bed, LaunchConfig::default(), page, times)
        }),
        ("flag", "bare flag, no payload", &|gpu, page, times| flag::round(bed, gpu, page, times)),
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
        ("copies", "copy, launch, copy, sync", &|gpu, _, times| copies::round(bed, gpu, times)),
    ];
    let mut found: [Found<(Times, Vec<Round>)>; 7] =
        std::array::from_fn(|_| Ok((Times::new(), Vec::new())));
    for round in 1..=bed.settings.rounds {
        bed.steps.next(&format!("round trips, round {round} of {}", bed.settings.rounds));
        for ((.., work), found) in kinds.iter().zip(&mut found) {
            bed.go_on(found, |(all, rounds)| {
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
    bed.steps.next("one way between two blocks");
    let name = "one block to another, one way";
    report.on_device.push(OnDevice { name, us: between::one_way(bed, gpu) });
    bed.steps.next("what the device says of round trips");
    report.on_device.extend(latency::told(bed));
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
pub fn throughput(bed: &Bed<'_>, gpu: &mut Gpu, report: &mut Report) {
    let mut sides = sides();
    for round in 1..=bed.settings.repeats {
        bed.steps.next(&format!("throughput beside head and tail, round {round}"));
        for (setup, ours, theirs) in &mut sides {
            bed.go_on(ours, |rates| {
                ours::rate::<Echo>(bed, setup, &bed.load()).map(|rate| rates.add(rate))
            });
            theirs.round(bed, gpu);
        }
    }
    for (setup, ours, theirs) in sides {
        report.throughput.push(setup.row::<Echo>(bed, "head_tail", ours));
        report.throughput.extend(theirs.rows());
    }
}

/// Bytes a second beside plain copies.
pub fn bandwidth(bed: &Bed<'_>, gpu: &Gpu, report: &mut Report) {
    let (mut ours, mut theirs) = (Bandwidth::new(), Speeds::new());
    for round in 1..=bed.settings.repeats {
        bed.steps.next(&format!("bandwidth, round {round}"));
        theirs.round(bed, gpu);
        ours.round(bed);
    }
    report.copies = theirs.rows();
    report.throughput.extend(ours.rows(bed));
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
