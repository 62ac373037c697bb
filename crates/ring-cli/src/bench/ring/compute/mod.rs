//! Whole computations: PageRank by a grid, PageRank by messages between kernels, and a wave equation, as the examples compute
//! them.

mod by_grid;
mod by_links;
mod by_two;
mod wave;

use super::latency;
use crate::bench::context::{Context, wrong};
use crate::bench::report::{Found, Latency, Report, Shape, Stop, Throughput, Whose};
use crate::bench::settings::Settings;
use crate::bench::stats::Times;
use by_grid::ByGrid;
use by_links::ByLinks;
use by_two::ByTwo;
use ring_host::{BufferError, Kernel};
use ring_page_rank::graph::{Edges, Kind};
use ring_page_rank::links::Channels;
use ring_page_rank::{DAMPING, ITERATIONS, OF_VERTEX};
use ring_whole_device_kernels::rank_links::{
    Contribution, ContributionSender, ConvergenceChecker, RankAggregator, RunSplitter,
};
use ring_whole_device_kernels::{PageRank, PageRankOfTwo, Ranked, Wave};
use std::cell::OnceCell;
use std::error::Error;
use std::time::Duration;
use wave::WaveRun;

/// The sweep of its rates.
pub const SWEEP: &str = "contributions";

/// The row of rates over the largest graph.
pub const LARGEST: &str = "PageRank, R-MAT 2^20";

/// How generated graphs differ from others of their kind and size.
const SEED: u64 = 1;

/// Memory of a GPU for the buffers of all rows.
const BUFFERS: usize = 256 << 20;

/// A row of round trips: the name for programs, and what it is.
type Name = (&'static str, &'static str);

/// What is computed on a device.
struct Sizes {
    /// Of graphs that a grid ranks: kind, and vertices by their binary logarithm.
    grids: &'static [(Name, Kind, u32)],
    /// Of the graph of which each iteration is timed by messages.
    links: (Name, u32),
    /// Of the graph of which contributions a second are counted.
    rate: (&'static str, u32),
    /// Points side by side of the wave, and steps of a message.
    wave: (Name, u32, u32),
}

const GPU: Sizes = Sizes {
    grids: &[
        (("page_rank_rmat", "PageRank, R-MAT 2^14, a grid"), Kind::Rmat, 14),
        (("page_rank_uniform", "PageRank, uniform 2^14, a grid"), Kind::Uniform, 14),
        (("page_rank_rmat_18", "PageRank, R-MAT 2^18, a grid"), Kind::Rmat, 18),
        (("page_rank_uniform_18", "PageRank, uniform 2^18, a grid"), Kind::Uniform, 18),
    ],
    links: (("page_rank_links", "PageRank, R-MAT 2^14, by messages"), 14),
    rate: (LARGEST, 20),
    wave: (("wave", "wave, 1024 x 1024, 1000 steps"), 1024, 1000),
};

const CPU: Sizes = Sizes {
    grids: &[
        (("page_rank_rmat", "PageRank, R-MAT 2^10, a grid"), Kind::Rmat, 10),
        (("page_rank_uniform", "PageRank, uniform 2^10, a grid"), Kind::Uniform, 10),
    ],
    links: (("page_rank_links", "PageRank, R-MAT 2^10, by messages"), 10),
    rate: ("PageRank, R-MAT 2^12", 12),
    wave: (("wave", "wave, 64 x 64, 20 steps"), 64, 20),
};

/// Channels on the CPU device, which has a thread for each.
const CPU_CHANNELS: Channels = Channels { senders: 2, aggregators: 2, checkers: 1, slots: 1024 };

/// Channels that contributions go through, on the CPU device or on a GPU.
pub fn channels(is_cpu: bool) -> Channels {
    if is_cpu { CPU_CHANNELS } else { Channels::default() }
}

/// Entries of the kernels.
pub fn entries() -> [&'static str; 7] {
    [
        PageRank::ENTRY,
        PageRankOfTwo::ENTRY,
        RunSplitter::ENTRY,
        ContributionSender::ENTRY,
        RankAggregator::ENTRY,
        ConvergenceChecker::ENTRY,
        Wave::ENTRY,
    ]
}

/// Memory of a GPU that all of it takes.
pub fn device_bytes() -> usize {
    channels(false).bytes() + BUFFERS
}

/// Steps of [`measure`].
pub fn steps(settings: &Settings) -> u64 {
    settings.rounds + settings.repeats
}

/// Measures all: each round of every row in turn.
pub fn measure(context: &Context<'_>, report: &mut Report) {
    let sizes = if context.is_cpu() { CPU } else { GPU };
    let trips = sizes.trips(context);
    let trips = context.trips("whole computations", context.settings.rounds, &trips);
    report.compute = trips.into_iter().map(|row| Latency { whose: Whose::Ours, ..row }).collect();
    report.throughput.push(sizes.rate(context));
}

/// The binary logarithm of the vertices that one device ranks, and two.
const OF_TWO: u32 = 22;
const CPU_OF_TWO: u32 = 10;

/// What measures a round of a graph's ranking by one device, and by two.
pub fn of_two(is_cpu: bool) -> [(&'static str, &'static str, Work); 2] {
    let log = if is_cpu { CPU_OF_TWO } else { OF_TWO };
    let (one, two) = (ByGrid::new(Kind::Rmat, log), ByTwo::new(Kind::Rmat, log));
    [
        (
            "page_rank_one",
            if is_cpu {
                "PageRank, R-MAT 2^10, one device"
            } else {
                "PageRank, R-MAT 2^22, one device"
            },
            Box::new(move |context, _, times| one.round(context, times)),
        ),
        (
            "page_rank_two",
            if is_cpu {
                "PageRank, R-MAT 2^10, both devices"
            } else {
                "PageRank, R-MAT 2^22, both devices"
            },
            Box::new(move |context, _, times| two.round(context, times)),
        ),
    ]
}

/// What measures a round.
pub type Work = Box<dyn Fn(&Context<'_>, usize, &mut Times) -> Found<()>>;

impl Sizes {
    /// Round trips.
    fn trips(&self, context: &Context<'_>) -> Vec<(&'static str, &'static str, Work)> {
        let mut all: Vec<(Name, Work)> = Vec::new();
        for (name, kind, log) in self.grids {
            let by_grid = ByGrid::new(*kind, *log);
            all.push((*name, Box::new(move |context, _, times| by_grid.round(context, times))));
        }
        let (name, log) = self.links;
        let by_links = ByLinks::new(channels(context.is_cpu()), log);
        all.push((name, Box::new(move |context, _, times| by_links.round(context, times))));
        let (name, side, steps) = self.wave;
        let wave = WaveRun::new(side, steps);
        all.push((name, Box::new(move |context, _, times| wave.round(context, times))));
        all.into_iter().map(|((id, name), work)| (id, name, work)).collect()
    }

    /// Contributions a second.
    fn rate(&self, context: &Context<'_>) -> Throughput {
        let ((name, log), channels) = (self.rate, channels(context.is_cpu()));
        let shape = Shape {
            channels: channels.aggregators,
            bytes: size_of::<Contribution>(),
            answer_bytes: 0,
            threads: if context.is_cpu() { 0 } else { RankAggregator::THREADS },
            batch: 1,
            depth: u64::from(channels.senders * channels.aggregators) * u64::from(channels.slots),
            capacity: channels.slots,
        };
        let mut row = Throughput::new(SWEEP, (name, Whose::Ours), context.device(), shape);
        let by_links = ByLinks::new(channels, log);
        let repeats = context.settings.repeats;
        for round in 1..=repeats {
            context.steps.next(&format!("contributions, round {round} of {repeats}"));
            context.sample(&mut row.rate, || by_links.rate(context));
        }
        row
    }
}

/// A generated graph.
fn generated(kind: Kind, log: u32) -> Found<Edges> {
    Edges::generate(kind, log, OF_VERTEX, SEED).map_err(wrong)
}

/// Its ranks after so many iterations, in double precision.
fn reference(graph: &Edges, iterations: u32) -> Vec<f64> {
    graph.reference(DAMPING.into(), iterations)
}

/// A tolerance that is never kept: all iterations that were asked for.
const NONE: f32 = -1.0;

/// An error if that is no answer to a message that asked for all iterations.
fn check_iterations(answer: Ranked) -> Found<()> {
    match answer.iterations == ITERATIONS && answer.change.is_finite() {
        true => Ok(()),
        false => Err(wrong(format!("{answer:?} is no answer to {ITERATIONS} iterations"))),
    }
}

/// An error if these are not the ranks.
fn check_ranks(ranks: &[f32], right: &[f64]) -> Found<()> {
    ring_page_rank::check(ranks, right).map(|_| ()).map_err(wrong)
}

/// What is in the cell, or what is made for it.
fn once<T>(cell: &OnceCell<T>, make: impl FnOnce() -> Found<T>) -> Found<&T> {
    match cell.get() {
        Some(known) => Ok(known),
        None => make().map(|new| cell.get_or_init(|| new)),
    }
}

/// Why there are no buffers.
fn not_made(error: Box<dyn Error>) -> Stop {
    match error.downcast_ref() {
        Some(BufferError::Memory { .. }) => Stop::Refused(error.to_string()),
        _ => wrong(error),
    }
}

/// Times messages of a round as [`Context::timed`] does, but for a shorter time: there are fewer, of which each is long.
fn timed(
    context: &Context<'_>,
    times: &mut Times,
    call: impl FnMut(u64) -> Found<Duration> + Send,
) -> Found<()> {
    let settings = context.settings;
    let counts = (settings.warm_up / 100, settings.per_round());
    hosted(context, || latency::timed(counts, settings.round_limit / 8, times, call))
}

/// Runs `work` on the host's first processor. Beside the CPU device, whose threads need all processors, the system places it.
fn hosted<T: Send>(context: &Context<'_>, work: impl FnOnce() -> T + Send) -> T {
    if context.is_cpu() { work() } else { context.cores.on(0, work) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn every_row_is_measured_and_again() {
        example::with(Interrupt::never(), |context| {
            for (id, _, work) in CPU.trips(context) {
                for _ in 0..2 {
                    let mut times = Times::new();
                    work(context, 0, &mut times).unwrap_or_else(|stop| panic!("{id}: {stop:?}"));
                    assert!(times.count() > 0, "{id}");
                }
            }
            let row = CPU.rate(context);
            assert!(row.millions().is_some_and(|rate| rate > 0.0), "{row:?}");
            assert_eq!(row.runs().len() as u64, context.settings.repeats);
        });
    }

    #[test]
    fn nothing_is_measured_once_it_is_interrupted() {
        example::with(Interrupt::come(), |context| {
            for (id, _, work) in CPU.trips(context) {
                assert_eq!(work(context, 0, &mut Times::new()), Err(Stop::Interrupted), "{id}");
            }
        });
    }

    #[test]
    fn both_devices_have_rows_of_the_same_kinds() {
        let ids = |sizes: &Sizes| {
            let grids = sizes.grids.iter().map(|(name, ..)| name.0).take(2);
            grids.chain([sizes.links.0.0, sizes.wave.0.0]).collect::<Vec<_>>()
        };
        assert_eq!(ids(&CPU), ids(&GPU));
        let all = GPU.grids.iter().map(|(name, kind, log)| (name.1, *kind, *log));
        for (name, kind, log) in all {
            let kind = if kind == Kind::Rmat { "R-MAT" } else { "uniform" };
            assert!(name.contains(&format!("{kind} 2^{log},")), "{name}");
        }
    }

    #[test]
    fn ranks_that_are_off_are_wrong() {
        let right = [0.25, 0.75];
        assert_eq!(check_ranks(&[0.25, 0.75], &right), Ok(()));
        let off = wrong("the ranks are 1.0e-1 off in all (L1)");
        assert_eq!(check_ranks(&[0.3, 0.7], &right), Err(off));
        for ranks in [&[0.25, f32::NAN][..], &[0.25]] {
            assert!(matches!(check_ranks(ranks, &right), Err(Stop::Wrong(_))));
        }
    }

    #[test]
    fn all_kernels_are_in_the_module() {
        let image = ring_page_rank::KERNELS.image().unwrap();
        for entry in entries() {
            image.check_entry(entry).unwrap();
        }
    }
}
