//! PageRank by messages: each edge of an iteration is one, from kernel to kernel.

use super::{check_ranks, generated, hosted, not_made, once, reference, timed};
use crate::bench::context::{Context, wrong};
use crate::bench::report::{Found, Stop};
use crate::bench::stats::Times;
use ring_host::LaunchConfig;
use ring_page_rank::KERNELS;
use ring_page_rank::graph::Kind;
use ring_page_rank::links::{Board, Channels, Links, Ranker, as_numbers};
use std::cell::OnceCell;
use std::time::{Duration, Instant};

/// Iterations before the ranks are compared with those of the reference.
const CHECKED: u32 = 5;

/// A generated R-MAT graph.
pub struct ByLinks {
    channels: Channels,
    log: u32,
    loaded: OnceCell<Loaded>,
}

/// The graph in buffers.
struct Loaded {
    board: Board,
    edges: usize,
    /// The ranks after the first iterations.
    right: Vec<f64>,
}

/// Kernels that rank it, and iterations so far.
struct Launched<'a> {
    ranker: Ranker<'a>,
    iterations: u64,
}

impl ByLinks {
    /// With so many vertices, by their binary logarithm.
    pub fn new(channels: Channels, log: u32) -> ByLinks {
        ByLinks { channels, log, loaded: OnceCell::new() }
    }

    /// A round of iterations by kernels launched for that.
    pub fn round(&self, context: &Context<'_>, times: &mut Times) -> Found<()> {
        let (_, mut launched) = self.launched(context)?;
        timed(context, times, |_| launched.iterate())?;
        launched.ranker.end().map_err(wrong)
    }

    /// Contributions a second, once, likewise: those of an iteration by the median time of one.
    pub fn rate(&self, context: &Context<'_>) -> Found<f64> {
        let (loaded, mut launched) = self.launched(context)?;
        let mut times = hosted(context, || {
            let (begun, mut times) = (Instant::now(), Vec::new());
            while times.is_empty() || begun.elapsed() < context.settings.run {
                times.push(launched.iterate()?);
            }
            Ok(times)
        })?;
        launched.ranker.end().map_err(wrong)?;
        context.check_interrupt()?;
        times.sort_unstable();
        let median = times[times.len() / 2].as_secs_f64();
        Ok(loaded.edges as f64 / median.max(1e-9))
    }

    /// Launches the kernels. The ranks of their first iterations are compared with those of the reference.
    fn launched(&self, context: &Context<'_>) -> Found<(&Loaded, Launched<'_>)> {
        let launch =
            |entry| LaunchConfig::default().kernels(context.kernels.with_entry(entry, KERNELS));
        let declared = Links::new(launch, self.channels).map_err(Stop::Refused)?;
        context.check_interrupt()?;
        let loaded = once(&self.loaded, || {
            let graph = generated(Kind::Rmat, self.log)?;
            let board = Board::new(context.runtime, &graph, self.channels).map_err(not_made)?;
            Ok(Loaded { board, edges: graph.edges().len(), right: reference(&graph, CHECKED) })
        })?;
        let graph = context.graph(declared.graph())?;
        let ranker = Ranker::new(&declared, graph, &loaded.board).map_err(wrong)?;
        let mut launched = Launched { ranker, iterations: 0 };
        for _ in 0..CHECKED {
            launched.iterate()?;
        }
        let ranks = as_numbers(&loaded.board.ranks().map_err(wrong)?);
        check_ranks(&ranks, &loaded.right)?;
        Ok((loaded, launched))
    }
}

impl Launched<'_> {
    /// Another iteration; how long that took.
    fn iterate(&mut self) -> Found<Duration> {
        let begun = Instant::now();
        let last = self.ranker.iterate().map_err(wrong)?;
        let time = begun.elapsed();
        self.iterations += 1;
        match last.iterations == self.iterations {
            true => Ok(time),
            false => Err(wrong(format!("{last:?} is no answer to iteration {}", self.iterations))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CPU_CHANNELS;
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn other_ranks_and_an_iteration_too_many_are_wrong() {
        example::with(Interrupt::never(), |context| {
            let mut by_links = ByLinks::new(CPU_CHANNELS, 6);
            assert!(by_links.rate(context).is_ok_and(|rate| rate > 0.0));
            let (_, mut launched) = by_links.launched(context).unwrap();
            launched.iterations += 1;
            let stop = launched.iterate();
            assert!(
                matches!(&stop, Err(Stop::Wrong(why)) if why.contains("no answer to iteration 7")),
                "{stop:?}"
            );
            launched.ranker.end().unwrap();
            by_links.loaded.get_mut().unwrap().right[5] += 1e-4;
            let off = Err(wrong("the ranks are 1.0e-4 off in all (L1)"));
            assert_eq!(by_links.round(context, &mut Times::new()), off);
            assert_eq!(by_links.rate(context).map(|_| ()), off);
        });
    }

    #[test]
    fn channels_that_the_kernels_cannot_do_with_are_refused() {
        example::with(Interrupt::never(), |context| {
            let by_links = ByLinks::new(Channels { senders: 0, ..CPU_CHANNELS }, 6);
            let why = "0 senders: there must be 1 to 224".to_owned();
            assert_eq!(by_links.rate(context), Err(Stop::Refused(why)));
        });
    }
}
