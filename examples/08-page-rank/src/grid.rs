//! PageRank by one grid: all iterations in one message.

use crate::graph::{Layout, by_vertex};
use crate::{DAMPING, Done, LONG, filled};
use ring_host::{Buffer, KernelHandle, LaunchConfig, Runtime};
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

/// A graph in buffers of a runtime, as [`PageRank`] ranks it.
#[derive(Debug)]
pub struct Matrix {
    /// The vertex of the graph that each new one is.
    order: Vec<u32>,
    slices: Buffer<u32>,
    columns: Buffer<u32>,
    shares: Buffer<u32>,
    parts: Buffer<f32>,
    ranks: Buffer<f32>,
    contributions: [Buffer<f32>; 2],
}

impl Matrix {
    /// A graph of that layout.
    ///
    /// # Errors
    /// When there is no room for its buffers, or a copy fails.
    pub fn new(host: &Runtime, layout: &Layout) -> Done<Matrix> {
        let n = layout.order.len();
        let contributions = || host.buffer::<f32>(n + 1);
        Ok(Matrix {
            order: layout.order.clone(),
            slices: filled(host, &layout.slices)?,
            columns: filled(host, &layout.columns)?,
            shares: filled(host, &layout.shares)?,
            parts: filled(host, &layout.parts)?,
            ranks: host.buffer::<f32>(n)?,
            contributions: [contributions()?, contributions()?],
        })
    }

    /// The message that ranks it: so many iterations, or until the ranks change by no more than `tolerance` in one, in all (L1).
    #[must_use]
    pub fn message(&self, iterations: u32, tolerance: f32) -> Ranking {
        Ranking {
            slices: self.slices.reference(),
            columns: self.columns.reference(),
            shares: self.shares.reference(),
            parts: self.parts.reference(),
            ranks: self.ranks.reference(),
            contributions: self.contributions.each_ref().map(|buffer| buffer.reference()),
            vertices: self.order.len() as u32,
            iterations,
            damping: DAMPING,
            tolerance,
        }
    }

    /// The ranks of the graph's vertices, behind an answer.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn ranks(&self) -> Done<Vec<f32>> {
        Ok(by_vertex(&self.order, self.rows()?))
    }

    /// The same by rows.
    pub(crate) fn rows(&self) -> Done<Vec<f32>> {
        let mut found = vec![0.0; self.order.len()];
        self.ranks.download(0, &mut found, LONG)?;
        Ok(found)
    }

    /// What vertices contribute, by turns.
    pub(crate) fn contributions(&self) -> &[Buffer<f32>; 2] {
        &self.contributions
    }
}

/// The ranks of a graph's vertices; how many iterations that took; and how long it was from each message to its answer, in rising
/// order: a first one, and more until they have taken `enough`.
///
/// # Errors
/// When there is no room for the graph, or the kernel refuses it or does not answer.
pub fn rank(
    host: &Runtime,
    kernel: &mut KernelHandle<PageRank>,
    layout: &Layout,
    (iterations, tolerance): (u32, f32),
    enough: Duration,
) -> Done<(Vec<f32>, Ranked, Vec<Duration>)> {
    let matrix = Matrix::new(host, layout)?;
    let ranking = matrix.message(iterations, tolerance);
    let exchange = || {
        kernel.send(ranking, LONG)?;
        Ok(kernel.recv(LONG)?)
    };
    let (ranked, times) = repeated(exchange, enough)?;
    Ok((matrix.ranks()?, ranked, times))
}

/// The answer to messages that are sent until they have taken `enough`, one at least, and how long each took, in rising order.
pub(crate) fn repeated(
    mut exchange: impl FnMut() -> Done<Ranked>,
    enough: Duration,
) -> Done<(Ranked, Vec<Duration>)> {
    let (mut ranked, mut times) = (Ranked::default(), Vec::new());
    let first = Instant::now();
    while times.is_empty() || first.elapsed() < enough {
        let begun = Instant::now();
        ranked = exchange()?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    match ranked.iterations {
        0 => Err("the kernel refused the buffers".into()),
        _ => Ok((ranked, times)),
    }
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
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
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
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
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
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
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
        ring_tests::kernels::on_each_device_of_whole_device(|host| {
            let mut kernel = active(host, launch.clone()).unwrap();
            let layout = Layout::new(&Edges::new(100, Vec::new()).unwrap(), MOST, grid(&kernel));
            let (ranks, ..) = rank(host, &mut kernel, &layout, (3, 0.0), ONCE).unwrap();
            assert!(ranks.iter().all(|rank| (rank - 0.01).abs() < 1e-7), "{ranks:?}");
        });
    }
}
