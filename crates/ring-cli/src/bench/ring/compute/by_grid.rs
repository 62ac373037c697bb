//! PageRank by a grid: all iterations in one message.

use super::{NONE, check_iterations, check_ranks, generated, not_made, once, reference, timed};
use crate::bench::context::{Context, ended, wrong};
use crate::bench::report::Found;
use crate::bench::ring::latency::exchange;
use crate::bench::stats::Times;
use ring_host::{Kernel, KernelHandle, LaunchConfig};
use ring_page_rank::graph::{Kind, Layout};
use ring_page_rank::grid::{MOST, Matrix, grid};
use ring_page_rank::{ITERATIONS, KERNELS};
use ring_whole_device_kernels::PageRank;
use std::cell::OnceCell;
use std::time::Duration;

/// A generated graph.
pub struct ByGrid {
    kind: Kind,
    log: u32,
    /// The graph in buffers, and its ranks.
    loaded: OnceCell<(Matrix, Vec<f64>)>,
}

impl ByGrid {
    /// With so many vertices, by their binary logarithm.
    pub fn new(kind: Kind, log: u32) -> ByGrid {
        ByGrid { kind, log, loaded: OnceCell::new() }
    }

    /// A round by a kernel launched for that. The first ranks are compared with those of the reference.
    pub fn round(&self, context: &Context<'_>, times: &mut Times) -> Found<()> {
        let kernels = context.kernels.with_entry(PageRank::ENTRY, KERNELS);
        let mut kernel = context.grid::<PageRank>(LaunchConfig::default().kernels(kernels))?;
        // All launches have the same blocks.
        let loaded = once(&self.loaded, || {
            let graph = generated(self.kind, self.log)?;
            let layout = Layout::new(&graph, MOST, grid(&kernel));
            let matrix = Matrix::new(context.runtime, &layout).map_err(not_made)?;
            Ok((matrix, reference(&graph, ITERATIONS)))
        });
        let (matrix, right) = loaded?;
        ranked(&mut kernel, matrix)?;
        check_ranks(&matrix.ranks().map_err(wrong)?, right)?;
        timed(context, times, |_| ranked(&mut kernel, matrix))?;
        ended(kernel)
    }
}

/// Ranks the graph once; how long that took.
fn ranked(kernel: &mut KernelHandle<PageRank>, matrix: &Matrix) -> Found<Duration> {
    let (answer, time) = exchange(kernel, matrix.message(ITERATIONS, NONE))?;
    check_iterations(answer)?;
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::bench::report::Stop;
    use crate::interrupt::Interrupt;

    #[test]
    fn other_ranks_and_too_few_iterations_are_wrong() {
        example::with(Interrupt::never(), |context| {
            let mut by_grid = ByGrid::new(Kind::Rmat, 6);
            let round = |by_grid: &ByGrid| by_grid.round(context, &mut Times::new());
            assert_eq!(round(&by_grid), Ok(()));
            let (_, right) = by_grid.loaded.get_mut().unwrap();
            right[5] += 1e-4;
            let stop = round(&by_grid);
            assert_eq!(stop, Err(wrong("the ranks are 1.0e-4 off in all (L1)")));
            // A layout for another grid is refused by the kernel, which answers with no iterations.
            let graph = generated(Kind::Rmat, 6).unwrap();
            let layout = Layout::new(&graph, MOST, (50, 1));
            let matrix = Matrix::new(context.runtime, &layout).unwrap();
            by_grid.loaded = OnceCell::from((matrix, reference(&graph, ITERATIONS)));
            let stop = round(&by_grid);
            assert!(
                matches!(&stop, Err(Stop::Wrong(why)) if why.contains("iterations: 0")),
                "{stop:?}"
            );
        });
    }
}
