//! PageRank by the grids of two devices: each has some of the rows, and tells the other what its vertices contribute.

use crate::graph::{Layout, by_vertex};
use crate::grid::{Matrix, repeated};
use crate::{Done, LONG};
use ring_host::{Buffer, Devices, Grids, KernelHandle, LaunchConfig};
use ring_whole_device_kernels::{HalfRanking, PageRankOfTwo, Ranked, SLICE};
use std::time::Duration;

/// The kernels of both devices, ready for messages.
pub fn active(devices: &Devices, launch: LaunchConfig) -> Done<Grids<PageRankOfTwo>> {
    let mut grids = devices.launch_grids(launch)?;
    grids.activate(LONG)?;
    Ok(grids)
}

/// The blocks of both devices, and the warps of each block.
pub fn grid(grids: &Grids<PageRankOfTwo>) -> (usize, usize) {
    (blocks(grids).iter().sum(), grids.kernels()[0].threads() as usize / SLICE)
}

/// The blocks of each device.
fn blocks(grids: &Grids<PageRankOfTwo>) -> Vec<usize> {
    grids.kernels().iter().map(|kernel| KernelHandle::blocks(kernel) as usize).collect()
}

/// A graph in buffers of two devices, as [`PageRankOfTwo`] ranks it.
#[derive(Debug)]
pub struct Halves {
    /// The vertex of the graph that each new one is.
    order: Vec<u32>,
    /// The rows of each device.
    rows: Vec<Vec<usize>>,
    matrices: Vec<Matrix>,
    /// Of each device where the other one reads what its vertices contribute.
    others: Vec<[Buffer<f32>; 2]>,
}

impl Halves {
    /// A graph of that layout, which is for the blocks of both devices.
    ///
    /// # Errors
    /// When there is no room for its buffers, a copy fails, or a device does not reach the memory of the other.
    pub fn new(devices: &Devices, grids: &Grids<PageRankOfTwo>, layout: &Layout) -> Done<Halves> {
        let halves = layout.split(&blocks(grids));
        let matrices = devices.iter().zip(&halves).map(|(host, half)| Matrix::new(host, half));
        let matrices = matrices.collect::<Done<Vec<_>>>()?;
        let others = [0, 1].map(|device| {
            let [even, odd] = matrices[1 - device].contributions();
            Ok([devices.lend(even, device)?, devices.lend(odd, device)?])
        });
        Ok(Halves {
            order: layout.order.clone(),
            rows: halves.iter().map(|half| half.rows().collect()).collect(),
            matrices,
            others: others.into_iter().collect::<Done<_>>()?,
        })
    }

    /// The message that ranks it, as [`Matrix::message`] does.
    #[must_use]
    pub fn message(&self, iterations: u32, tolerance: f32) -> [HalfRanking; 2] {
        [0, 1].map(|device| HalfRanking {
            own: self.matrices[device].message(iterations, tolerance),
            others: self.others[device].each_ref().map(|buffer| buffer.reference()),
        })
    }

    /// The ranks of the graph's vertices, behind an answer.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn ranks(&self) -> Done<Vec<f32>> {
        let mut all = vec![0.0; self.order.len()];
        for (rows, matrix) in self.rows.iter().zip(&self.matrices) {
            let found = matrix.rows()?;
            rows.iter().for_each(|row| all[*row] = found[*row]);
        }
        Ok(by_vertex(&self.order, all))
    }
}

/// Ranks a graph's vertices, as [`grid::rank`](crate::grid::rank) does.
///
/// # Errors
/// When there is no room for the graph, or the kernels refuse it or do not answer.
pub fn rank(
    devices: &Devices,
    grids: &mut Grids<PageRankOfTwo>,
    layout: &Layout,
    (iterations, tolerance): (u32, f32),
    enough: Duration,
) -> Done<(Vec<f32>, Ranked, Vec<Duration>)> {
    let halves = Halves::new(devices, grids, layout)?;
    let message = halves.message(iterations, tolerance);
    let (ranked, times) = repeated(|| exchange(grids, &message), enough)?;
    Ok((halves.ranks()?, ranked, times))
}

/// Ranks a graph once: what both devices have found.
///
/// # Errors
/// When they do not answer, or not the same.
pub fn exchange(grids: &mut Grids<PageRankOfTwo>, message: &[HalfRanking; 2]) -> Done<Ranked> {
    let mut answers = [Ranked::default(); 2];
    grids.send(message, LONG)?;
    grids.recv(&mut answers, LONG)?;
    match answers[0] == answers[1] {
        true => Ok(answers[0]),
        false => Err(format!("two devices have found {answers:?}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edges, Kind};
    use crate::grid::{MOST, ONCE};
    use crate::{DAMPING, ITERATIONS, OF_VERTEX, check};

    /// Two CPU devices, and two GPUs if there are so many that reach each other.
    fn on_two_devices(test: impl Fn(&Devices)) {
        test(&Devices::of([ring_tests::cpu(), ring_tests::cpu()]).unwrap());
        if let Some(two) = ring_tests::two_gpus()
            && two.are_peers(0, 1).is_ok()
        {
            test(&two);
        }
    }

    #[test]
    fn ranks_are_those_of_the_reference_on_two_devices() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRankOfTwo>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(3);
        on_two_devices(|devices| {
            let mut grids = active(devices, launch.clone()).unwrap();
            for kind in [Kind::Uniform, Kind::Rmat] {
                for (log, most) in [(4, 10), (10, 8), (10, 200), (12, MOST)] {
                    let graph = Edges::generate(kind, log, OF_VERTEX, 5).unwrap();
                    let layout = Layout::new(&graph, most, grid(&grids));
                    let (ranks, ranked, _) =
                        rank(devices, &mut grids, &layout, (ITERATIONS, 0.0), ONCE).unwrap();
                    assert!((1..=ITERATIONS).contains(&ranked.iterations), "{ranked:?}");
                    let right = graph.reference(DAMPING.into(), ranked.iterations);
                    check(&ranks, &right)
                        .unwrap_or_else(|why| panic!("{kind:?} of 2^{log}: {why}"));
                }
            }
            grids.terminate(LONG).unwrap();
        });
    }

    #[test]
    fn what_one_device_refuses_both_refuse() {
        let kernels = ring_tests::kernels::of_whole_device::<PageRankOfTwo>();
        let launch = LaunchConfig::default().kernels(kernels).blocks(2);
        on_two_devices(|devices| {
            let mut grids = active(devices, launch.clone()).unwrap();
            let graph = Edges::generate(Kind::Rmat, 8, OF_VERTEX, 2).unwrap();
            let layout = Layout::new(&graph, MOST, grid(&grids));
            let halves = Halves::new(devices, &grids, &layout).unwrap();
            let good = halves.message(5, 0.0);
            for device in [0, 1] {
                let mut bad = good;
                bad[device].others[1] = bad[device].others[1].slice(0..7).unwrap();
                assert_eq!(exchange(&mut grids, &bad).unwrap(), Ranked::default());
                assert_eq!(exchange(&mut grids, &good).unwrap().iterations, 5);
            }
            grids.terminate(LONG).unwrap();
        });
    }

    #[test]
    fn parts_of_a_layout_are_all_of_it() {
        let graph = Edges::generate(Kind::Rmat, 9, OF_VERTEX, 7).unwrap();
        let layout = Layout::new(&graph, 40, (7, 4));
        for blocks in [vec![7], vec![3, 4], vec![1, 5, 1]] {
            let parts = layout.split(&blocks);
            let mut rows: Vec<usize> = parts.iter().flat_map(|part| part.rows()).collect();
            rows.sort_unstable();
            assert!(rows.into_iter().eq(0..512));
            let columns: Vec<u32> = parts
                .iter()
                .flat_map(|part| &part.columns[..part.columns.len() - 4])
                .copied()
                .collect();
            assert_eq!(columns, layout.columns[..layout.columns.len() - 4]);
            for (part, blocks) in parts.iter().zip(&blocks) {
                assert_eq!((part.shares.len(), part.shares[0]), (2 * blocks + 1, 0));
                assert_eq!(part.shares[2 * blocks] as usize, part.slices.len() / 4);
                assert_eq!(part.slices[0], 0);
            }
        }
    }
}
