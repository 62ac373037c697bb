//! PageRank by the grids of two devices.

use super::{NONE, check_iterations, check_ranks, generated, not_made, once, reference, timed};
use crate::bench::context::{Context, ended_grids, wrong};
use crate::bench::report::Found;
use crate::bench::stats::Times;
use ring_host::{Grids, Kernel, LaunchConfig};
use ring_page_rank::graph::{Kind, Layout};
use ring_page_rank::grid::MOST;
use ring_page_rank::two::{Halves, exchange, grid};
use ring_page_rank::{ITERATIONS, KERNELS};
use ring_whole_device_kernels::PageRankOfTwo;
use std::cell::OnceCell;
use std::time::{Duration, Instant};

/// A generated graph.
pub struct ByTwo {
    kind: Kind,
    log: u32,
    /// The graph in buffers of both devices, and its ranks.
    loaded: OnceCell<(Halves, Vec<f64>)>,
}

impl ByTwo {
    /// With so many vertices, by their binary logarithm.
    pub fn new(kind: Kind, log: u32) -> ByTwo {
        ByTwo { kind, log, loaded: OnceCell::new() }
    }

    /// A round by kernels launched for that. The first ranks are compared with those of the reference.
    pub fn round(&self, context: &Context<'_>, times: &mut Times) -> Found<()> {
        let kernels = context.kernels.with_entry(PageRankOfTwo::ENTRY, KERNELS);
        let mut grids = context.grids::<PageRankOfTwo>(LaunchConfig::default().kernels(kernels))?;
        // All launches have the same blocks.
        let loaded = once(&self.loaded, || {
            let graph = generated(self.kind, self.log)?;
            let layout = Layout::new(&graph, MOST, grid(&grids));
            let halves = Halves::new(context.devices, &grids, &layout).map_err(not_made)?;
            Ok((halves, reference(&graph, ITERATIONS)))
        });
        let (halves, right) = loaded?;
        ranked(&mut grids, halves)?;
        check_ranks(&halves.ranks().map_err(wrong)?, right)?;
        timed(context, times, |_| ranked(&mut grids, halves))?;
        ended_grids(grids)
    }
}

/// Ranks the graph once; how long that took.
fn ranked(grids: &mut Grids<PageRankOfTwo>, halves: &Halves) -> Found<Duration> {
    let message = halves.message(ITERATIONS, NONE);
    let begun = Instant::now();
    let answer = exchange(grids, &message).map_err(wrong)?;
    let time = begun.elapsed();
    check_iterations(answer)?;
    Ok(time)
}
