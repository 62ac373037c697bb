//! Graphs, among them some made on the spot, seeded; and how they lie in memory for a grid.

use ring_whole_device_kernels::{FOURS, NOBODY, SLICE};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// The most vertices of a graph: the edges of more would take gigabytes.
pub const MOST_VERTICES: u32 = 1 << 26;

/// The most edges of a graph.
pub const MOST_EDGES: usize = 1 << 30;

/// How edges are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Both ends of an edge are any vertices.
    Uniform,
    /// R-MAT with 0.57, 0.19, 0.19, 0.05: some vertices have very many edges, and many have none.
    Rmat,
}

/// A directed graph: the source and the target of each edge.
#[derive(Clone, Debug)]
pub struct Edges {
    vertices: u32,
    edges: Vec<(u32, u32)>,
}

impl Edges {
    /// A graph of so many vertices, with these edges; one may be there several times.
    ///
    /// # Errors
    /// When there are no vertices, or when an edge has an end that is none of them.
    pub fn new(vertices: u32, edges: Vec<(u32, u32)>) -> Result<Edges, String> {
        if vertices == 0 {
            return Err("0 vertices: a graph has one at least".into());
        }
        let is_beyond = |(source, target): &(u32, u32)| source.max(target) >= &vertices;
        match edges.iter().position(is_beyond) {
            Some(k) => {
                let (source, target) = edges[k];
                let last = vertices - 1;
                Err(format!(
                    "edge {k} leads from vertex {source} to {target}: the last vertex is {last}"
                ))
            }
            None => Ok(Edges { vertices, edges }),
        }
    }

    /// How many vertices there are.
    pub fn vertices(&self) -> u32 {
        self.vertices
    }

    /// The edges.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// A graph of `2^log` vertices with so many edges each.
    ///
    /// # Errors
    /// When these are more than [`MOST_VERTICES`].
    pub fn generate(kind: Kind, log: u32, each: usize, seed: u64) -> Result<Edges, String> {
        let most = MOST_VERTICES.ilog2();
        if !(1..=most).contains(&log) {
            return Err(format!("2^{log} vertices: a graph has 2^1 to 2^{most}"));
        }
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
        };
        let mut edge = || match kind {
            Kind::Uniform => {
                let of = |r: u64| (r >> (32 - log)) as u32;
                (of(random()), of(random()))
            }
            Kind::Rmat => (0..log).fold((0, 0), |(source, target), _| {
                let (r, whole) = (random(), 1u64 << 32);
                let is_below = |percent: u64| r < whole / 100 * percent;
                let (s, t) = match () {
                    () if is_below(57) => (0, 0),
                    () if is_below(76) => (0, 1),
                    () if is_below(95) => (1, 0),
                    () => (1, 1),
                };
                (source << 1 | s, target << 1 | t)
            }),
        };
        let vertices = 1u32 << log;
        Edges::new(vertices, (0..each << log).map(|_| edge()).collect())
    }

    /// How many edges leave each vertex.
    pub fn out_degrees(&self) -> Vec<u32> {
        self.degrees(|(source, _)| source)
    }

    /// How many edges lead to each vertex.
    pub fn in_degrees(&self) -> Vec<u32> {
        self.degrees(|(_, target)| target)
    }

    fn degrees(&self, end: impl Fn((u32, u32)) -> u32) -> Vec<u32> {
        let mut degrees = vec![0; self.vertices as usize];
        self.edges.iter().for_each(|edge| degrees[end(*edge) as usize] += 1);
        degrees
    }

    /// The ranks after so many iterations, in double precision.
    pub fn reference(&self, damping: f64, iterations: u32) -> Vec<f64> {
        let (degrees, n) = (self.out_degrees(), f64::from(self.vertices));
        let mut ranks = vec![1.0 / n; self.vertices as usize];
        for _ in 0..iterations {
            let lost: f64 =
                ranks.iter().zip(&degrees).filter(|(_, d)| **d == 0).map(|(rank, _)| rank).sum();
            let mut next = vec![(1.0 - damping + damping * lost) / n; ranks.len()];
            for (source, target) in &self.edges {
                let part = ranks[*source as usize] / f64::from(degrees[*source as usize]);
                next[*target as usize] += damping * part;
            }
            ranks = next;
        }
        ranks
    }
}

/// The vertices by falling degree.
pub fn by_degree(degrees: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..degrees.len() as u32).collect();
    order.sort_by_key(|v| Reverse(degrees[*v as usize]));
    order
}

/// Where each vertex is in an order.
pub fn numbers(order: &[u32]) -> Vec<u32> {
    by_vertex(order, 0..)
}

/// What each vertex has, of what there is in an order of them.
pub fn by_vertex<T: Clone + Default>(order: &[u32], of: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut all = vec![T::default(); order.len()];
    order.iter().zip(of).for_each(|(v, its)| all[*v as usize] = its);
    all
}

/// A graph as [`Ranking`](ring_whole_device_kernels::Ranking) wants it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The vertex of the graph that each new one is.
    pub order: Vec<u32>,
    /// See there.
    pub slices: Vec<u32>,
    /// Likewise.
    pub columns: Vec<u32>,
    /// Likewise.
    pub shares: Vec<u32>,
    /// Likewise.
    pub parts: Vec<f32>,
}

/// Some rows that follow each other, and how many lanes each of them has.
type Rows = (Range<usize>, usize);

impl Layout {
    /// The layout of a graph for a grid of so many blocks, and warps in each. Rows of more edges than `most` are each for all warps of a
    /// block.
    pub fn new(graph: &Edges, most: usize, (blocks, warps): (usize, usize)) -> Layout {
        let in_degrees = graph.in_degrees();
        let order = by_degree(&in_degrees);
        let number = numbers(&order);

        // All rows one after the other, the sources of each in rising order: lanes side by side then read what lies close together.
        let mut edges: Vec<(u32, u32)> =
            graph.edges.iter().map(|(s, t)| (number[*t as usize], number[*s as usize])).collect();
        edges.sort_unstable();
        let sources: Vec<u32> = edges.iter().map(|(_, source)| *source).collect();
        let mut left = sources.as_slice();
        let rows = order.iter().map(|v| {
            let (row, others) = left.split_at(in_degrees[*v as usize] as usize);
            left = others;
            row
        });
        let rows: Vec<&[u32]> = rows.collect();

        let degrees = graph.out_degrees();
        let part = |v: &u32| match degrees[*v as usize] {
            0 => 0.0,
            degree => 1.0 / degree as f32,
        };
        let parts = order.iter().map(part).collect();
        let (slices, columns, shares) = (Vec::new(), Vec::new(), Vec::new());
        let mut layout = Layout { order, slices, columns, shares, parts };
        for (long, short) in dealt(&rows, most, (blocks, warps)) {
            layout.shares.push(layout.slices.len() as u32 / 4);
            long.into_iter().for_each(|of| layout.add_slice(&rows, of));
            layout.shares.push(layout.slices.len() as u32 / 4);
            short.into_iter().for_each(|of| layout.add_slice(&rows, of));
        }
        layout.shares.push(layout.slices.len() as u32 / 4);
        layout.columns.extend([NOBODY; 4]);
        layout
    }

    /// Its parts for several grids, each of so many of the blocks.
    ///
    /// # Panics
    /// If these are more blocks than it has.
    pub fn split(&self, blocks: &[usize]) -> Vec<Layout> {
        let mut first = 0;
        let part = |blocks: &usize| {
            let shares = &self.shares[2 * first..=2 * (first + blocks)];
            first += blocks;
            let [begin, end] = [shares[0], shares[2 * blocks]].map(|slice| 4 * slice as usize);
            // Columns are in the order of slices.
            let column = |slice: usize| {
                self.slices.get(slice).map_or(self.columns.len() - 4, |c| 4 * *c as usize)
            };
            let (mut slices, columns) =
                (self.slices[begin..end].to_vec(), &self.columns[column(begin)..column(end)]);
            slices.iter_mut().step_by(4).for_each(|at| *at -= column(begin) as u32 / 4);
            Layout {
                order: self.order.clone(),
                slices,
                columns: columns.iter().copied().chain([NOBODY; 4]).collect(),
                shares: shares.iter().map(|share| share - shares[0]).collect(),
                parts: self.parts.clone(),
            }
        };
        blocks.iter().map(part).collect()
    }

    /// The rows that it has.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = |slice: &[u32; 4]| slice[2] as usize..(slice[2] + slice[3] % 256) as usize;
        self.slices.as_chunks().0.iter().flat_map(rows)
    }

    /// Adds a slice.
    fn add_slice(&mut self, rows: &[&[u32]], (of, lanes): Rows) {
        let (begin, fours) = (self.columns.len(), fours(rows[of.start], lanes));
        let shape = of.len() as u32 + 256 * lanes.ilog2();
        self.slices.extend([begin as u32 / 4, fours as u32, of.start as u32, shape]);
        self.columns.resize(begin + 4 * SLICE * fours, NOBODY);
        for (k, row) in rows[of].iter().enumerate() {
            for (edge, source) in row.iter().enumerate() {
                let (lane, step) = (k * lanes + edge % lanes, edge / lanes);
                self.columns[begin + 4 * (SLICE * (step / 4) + lane) + step % 4] = *source;
            }
        }
    }

    /// Writes it into a folder, an array in each file, with the edges of the graph and the ranks that were found; by the new numbers of
    /// vertices.
    pub fn save(&self, graph: &Edges, folder: &Path, ranks: &[f32]) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let of = |name, words: &[u32]| fs::write(folder.join(name), bytemuck::cast_slice(words));
        of("shares", &self.shares)?;
        let number = numbers(&self.order);
        let edge = |(s, t): &(u32, u32)| [number[*s as usize], number[*t as usize]];
        of("edges", &graph.edges.iter().flat_map(edge).collect::<Vec<u32>>())?;
        of("slices", &self.slices)?;
        of("columns", &self.columns)?;
        fs::write(folder.join("parts"), bytemuck::cast_slice(&self.parts))?;
        let ranks: Vec<f32> = self.order.iter().map(|v| ranks[*v as usize]).collect();
        fs::write(folder.join("ranks"), bytemuck::cast_slice(&ranks))
    }
}

/// How many fours of edges a lane has of a row.
fn fours(row: &[u32], lanes: usize) -> usize {
    row.len().div_ceil(4 * lanes)
}

/// Each block's slices, those for all its warps and those for one each: of rows from the longest to the shortest, each dealt to the block
/// that has least to do so far.
fn dealt(
    rows: &[&[u32]],
    most: usize,
    (blocks, warps): (usize, usize),
) -> Vec<(Vec<Rows>, Vec<Rows>)> {
    let mut shares = vec![(Vec::new(), Vec::new()); blocks];
    let mut idle: BinaryHeap<_> = (0..blocks).map(|block| Reverse((0, block))).collect();
    let mut next = |work: usize| {
        let Reverse((done, block)) = idle.pop()?;
        idle.push(Reverse((done + work, block)));
        Some(block)
    };
    // A warp reads so many fours of a lane at once, and something else each time.
    let work = |fours: usize| fours + fours.div_ceil(FOURS).max(1);
    let long = rows.iter().take_while(|row| row.len() > most).count();
    for (v, row) in rows[..long].iter().enumerate() {
        if let Some(block) = next(warps * work(fours(row, SLICE).div_ceil(warps))) {
            shares[block].0.push((v..v + 1, SLICE));
        }
    }
    let lanes = |row: &[u32]| row.len().div_ceil(4 * FOURS).next_power_of_two().clamp(1, SLICE);
    let mut first = long;
    while first < rows.len() {
        let of_row = lanes(rows[first]);
        let end = rows.len().min(first + SLICE / of_row);
        let end = (first..end).find(|v| lanes(rows[*v]) != of_row).unwrap_or(end);
        if let Some(block) = next(work(fours(rows[first], of_row))) {
            shares[block].1.push((first..end, of_row));
        }
        first = end;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_whole_device_kernels::AT_ONCE;

    #[test]
    fn each_edge_is_in_its_row_once_and_each_slice_some_blocks() {
        for (kind, most, blocks) in [
            (Kind::Uniform, 10, 3),
            (Kind::Uniform, AT_ONCE, 100),
            (Kind::Rmat, 40, 1),
            (Kind::Rmat, AT_ONCE, 2),
        ] {
            let graph = Edges::generate(kind, 8, 16, 7).unwrap();
            let layout = Layout::new(&graph, most, (blocks, 4));
            let slices: Vec<&[u32]> = layout.slices.chunks(4).collect();
            let (ends, shares) = ([0, slices.len() as u32], &layout.shares);
            assert_eq!([shares[0], shares[2 * blocks]], ends);
            assert!(shares.is_sorted() && shares.len() == 2 * blocks + 1);
            let name = |v: usize| layout.order[v];
            let (mut found, mut rows_found) = (Vec::new(), Vec::new());
            for (k, share) in shares.windows(2).enumerate() {
                for slice in &slices[share[0] as usize..share[1] as usize] {
                    let [begin, fours, first, shape] = [0, 1, 2, 3].map(|k| slice[k] as usize);
                    let (rows, lanes) = (shape % 256, 1 << (shape / 256));
                    assert!(rows * lanes <= SLICE && (rows == 1 || fours <= FOURS), "{slice:?}");
                    let of_slice = &layout.columns[4 * begin..4 * (begin + SLICE * fours)];
                    let mut degrees = vec![0; rows];
                    for (at, source) in of_slice.iter().enumerate().filter(|(_, s)| **s != NOBODY) {
                        let row = at / 4 % SLICE / lanes;
                        degrees[row] += 1;
                        found.push((name(*source as usize), name(first + row)));
                    }
                    let is_long = k % 2 == 0;
                    assert!(degrees.iter().all(|n| (*n > most) == is_long), "{slice:?}");
                    rows_found.extend(first..first + rows);
                }
            }
            let mut edges = graph.edges.clone();
            edges.sort_unstable();
            found.sort_unstable();
            assert!(found == edges, "{kind:?}, {most}");
            rows_found.sort_unstable();
            assert!(rows_found.into_iter().eq(0..graph.vertices as usize), "{kind:?}, {most}");
        }
    }

    #[test]
    fn blocks_have_as_much_to_do_as_others() {
        let graph = Edges::generate(Kind::Rmat, 14, 16, 7).unwrap();
        let layout = Layout::new(&graph, AT_ONCE, (7, 4));
        let fours = |share: &[u32]| {
            let slices = &layout.slices[4 * share[0] as usize..4 * share[2] as usize];
            slices.chunks(4).map(|slice| slice[1]).sum::<u32>()
        };
        let shares: Vec<u32> = layout.shares.windows(3).step_by(2).map(fours).collect();
        let [least, most] = [shares.iter().min().unwrap(), shares.iter().max().unwrap()];
        assert!(most - least < least / 10, "{shares:?}");
    }

    #[test]
    fn a_graph_that_is_none_is_refused() {
        assert!(Edges::new(3, vec![(0, 2), (2, 0), (1, 1)]).is_ok());
        for (edges, said) in [
            (vec![(0, 1), (0, 3)], "edge 1 leads from vertex 0 to 3"),
            (vec![(u32::MAX, 0)], "edge 0"),
        ] {
            let error = Edges::new(3, edges).unwrap_err();
            assert!(error.starts_with(said) && error.ends_with("the last vertex is 2"), "{error}");
        }
        assert!(Edges::new(0, Vec::new()).unwrap_err().contains("0 vertices"));
        assert!(Edges::generate(Kind::Rmat, 27, 1, 1).unwrap_err().contains("2^27"));
    }

    #[test]
    fn ranks_of_the_reference_are_one_in_all() {
        for kind in [Kind::Uniform, Kind::Rmat] {
            let graph = Edges::generate(kind, 10, 16, 3).unwrap();
            let dangling = graph.out_degrees().iter().filter(|degree| **degree == 0).count();
            assert!(kind == Kind::Uniform || dangling > 0, "{dangling} vertices without edges");
            let sum: f64 = graph.reference(0.85, 20).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        }
    }
}
