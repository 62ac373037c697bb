//! PageRank by one grid: all iterations in one message.

use crate::graph::Layout;
use crate::{DAMPING, Done, LONG, filled};
use ring_host::{KernelHandle, LaunchConfig, Runtime};
use ring_whole_device_kernels::{PageRank, Ranked, Ranking, SLICE};
use std::time::{Duration, Instant};

/// Rows of more edges are each for a block.
pub const MOST: usize = 1024;

/// The kernel, ready for messages.
pub fn active(host: &Runtime, launch: LaunchConfig) -> Done<KernelHandle<PageRank>> {
    let mut kernel = host.launch(launch)?;
    kernel.activate(LONG)?;
    Ok(kernel)
}

/// The blocks of a kernel, and the warps of each.
pub fn grid(kernel: &KernelHandle<PageRank>) -> (usize, usize) {
    (kernel.blocks() as usize, kernel.threads() as usize / SLICE)
}

/// The ranks of a graph's vertices; how many iterations that took; and how long it was from each message to its answer, in rising
/// order: a first one, and more until they have taken `enough`.
pub fn rank(
    host: &Runtime,
    kernel: &mut KernelHandle<PageRank>,
    layout: &Layout,
    (iterations, tolerance): (u32, f32),
    enough: Duration,
) -> Done<(Vec<f32>, Ranked, Vec<Duration>)> {
    let n = layout.order.len();
    let slices = filled(host, &layout.slices)?;
    let columns = filled(host, &layout.columns)?;
    let parts = filled(host, &layout.parts)?;
    let ranks = host.buffer::<f32>(n)?;
    let contributions = || host.buffer::<f32>(n + 1);
    let contributions = [contributions()?, contributions()?];

    let shares = filled(host, &layout.shares)?;
    let ranking = Ranking {
        slices: slices.reference(),
        columns: columns.reference(),
        shares: shares.reference(),
        parts: parts.reference(),
        ranks: ranks.reference(),
        contributions: [contributions[0].reference(), contributions[1].reference()],
        vertices: n as u32,
        iterations,
        damping: DAMPING,
        tolerance,
    };
    let (mut ranked, mut times) = (Ranked::default(), Vec::new());
    let first = Instant::now();
    while times.is_empty() || first.elapsed() < enough {
        let begun = Instant::now();
        kernel.send(ranking, LONG)?;
        ranked = kernel.recv(LONG)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    if ranked.iterations == 0 {
        return Err("the kernel refused the buffers".into());
    }
    let mut found = vec![0.0; n];
    ranks.download(0, &mut found, LONG)?;
    let mut by_vertex = vec![0.0; n];
    layout.order.iter().zip(found).for_each(|(v, rank)| by_vertex[*v as usize] = rank);
    Ok((by_vertex, ranked, times))
}

/// No time: one message is enough.
#[cfg(test)]
pub(crate) const ONCE: Duration = Duration::ZERO;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edges, Kind};
    use crate::{ITERATIONS, OF_VERTEX, error};

    #[test]
    fn ranks_are_those_of_the_reference_on_every_device() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRank>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(3);
        ring_tests::on_each_device(|host| {
            let mut kernel = active(host, launch.clone()).unwrap();
            for kind in [Kind::Uniform, Kind::Rmat] {
                for (log, most) in [(4, 10), (10, 8), (10, 24), (10, 200), (12, MOST)] {
                    let graph = Edges::generate(kind, log, OF_VERTEX, 5).unwrap();
                    let layout = Layout::new(&graph, most, grid(&kernel));
                    let (ranks, ranked, _) =
                        rank(host, &mut kernel, &layout, (ITERATIONS, 0.0), ONCE).unwrap();
                    // A small graph's ranks may change no more, in single precision, before that.
                    assert!((1..=ITERATIONS).contains(&ranked.iterations), "{ranked:?}");
                    let error = error(&ranks, &graph.reference(DAMPING.into(), ranked.iterations));
                    assert!(error < 1e-5, "{kind:?} of 2^{log}: {error:.1e}");
                }
            }
        });
    }

    #[test]
    fn it_stops_when_ranks_change_no_more() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRank>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(2);
        ring_tests::on_each_device(|host| {
            let mut kernel = active(host, launch.clone()).unwrap();
            let graph = Edges::generate(Kind::Rmat, 8, OF_VERTEX, 2).unwrap();
            let layout = Layout::new(&graph, MOST, grid(&kernel));
            let (_, ranked, _) = rank(host, &mut kernel, &layout, (1000, 1e-4), ONCE).unwrap();
            assert!(ranked.iterations < 100 && ranked.change <= 1e-4, "{ranked:?}");
        });
    }

    #[test]
    fn what_is_no_graph_is_answered_and_harms_nothing() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRank>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(2);
        ring_tests::on_each_device(|host| {
            let mut kernel = active(host, launch.clone()).unwrap();
            let graph = Edges::generate(Kind::Rmat, 8, OF_VERTEX, 2).unwrap();
            let (blocks, warps) = grid(&kernel);
            let layout = Layout::new(&graph, 24, (blocks, warps));
            let mut rank = |layout: &Layout| rank(host, &mut kernel, layout, (5, 0.0), ONCE);
            // Sources and places that are beyond the buffers contribute nothing.
            let mut beyond = layout.clone();
            beyond.columns.fill(u32::MAX - 3);
            beyond.slices[..4].fill(u32::MAX);
            beyond.shares = vec![0, u32::MAX - 1, u32::MAX, 3, 5];
            let (ranks, ranked, _) = rank(&beyond).unwrap();
            assert!(
                ranked.iterations > 0 && ranks.iter().all(|rank| rank.is_finite()),
                "{ranked:?}"
            );
            // What is not a number stays none, and no iteration is the last one for that.
            let mut unknown = layout.clone();
            unknown.parts[0] = f32::NAN;
            let (ranks, ranked, _) = rank(&unknown).unwrap();
            assert!(ranked.iterations == 5 && ranked.change.is_nan(), "{ranked:?}");
            assert!(ranks.iter().any(|rank| rank.is_nan()));
            // What is for another grid is refused.
            let error = rank(&Layout::new(&graph, 24, (blocks + 1, warps))).unwrap_err();
            assert_eq!(error.to_string(), "the kernel refused the buffers");
        });
    }

    #[test]
    fn a_graph_without_edges_has_even_ranks() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRank>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(2);
        ring_tests::on_each_device(|host| {
            let mut kernel = active(host, launch.clone()).unwrap();
            let layout = Layout::new(&Edges::new(100, Vec::new()).unwrap(), MOST, grid(&kernel));
            let (ranks, ..) = rank(host, &mut kernel, &layout, (3, 0.0), ONCE).unwrap();
            assert!(ranks.iter().all(|rank| (rank - 0.01).abs() < 1e-7), "{ranks:?}");
        });
    }
}
