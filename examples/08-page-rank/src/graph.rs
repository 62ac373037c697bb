//! Graphs, among them some made on the spot, seeded; and how they lie in memory for a grid.

use ring_example_kernels::{SLICE, STEPS};
use std::fs;
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

/// The vertices by falling degree; and where each is among these.
pub fn by_degree(degrees: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut order: Vec<u32> = (0..degrees.len() as u32).collect();
    order.sort_by_key(|v| std::cmp::Reverse(degrees[*v as usize]));
    let mut number = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(old, new)| number[*old as usize] = new);
    (order, number)
}

/// A graph as [`Ranking`](ring_example_kernels::Ranking) wants it.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The vertex of the graph that each new one is.
    pub order: Vec<u32>,
    /// See there.
    pub rows: Vec<u32>,
    /// Likewise.
    pub sources: Vec<u32>,
    /// Likewise.
    pub slices: Vec<u32>,
    /// Likewise.
    pub columns: Vec<u32>,
    /// Likewise.
    pub parts: Vec<f32>,
}

impl Layout {
    /// Rows of more edges than `most` are not in slices.
    pub fn new(graph: &Edges, most: u32) -> Layout {
        let n = graph.vertices as usize;
        let in_degrees = graph.in_degrees();
        let (order, number) = by_degree(&in_degrees);

        // All rows one after the other, the sources of each in rising order: lanes side by side then read what lies close together.
        let mut rows = vec![0u32; n + 1];
        (0..n).for_each(|v| rows[v + 1] = rows[v] + in_degrees[order[v] as usize]);
        let mut edges: Vec<(u32, u32)> =
            graph.edges.iter().map(|(s, t)| (number[*t as usize], number[*s as usize])).collect();
        edges.sort_unstable();
        let row = |v: usize| &edges[rows[v] as usize..rows[v + 1] as usize];

        let long = (0..n).take_while(|v| row(*v).len() > most as usize).count();
        let (mut slices, mut columns) = (Vec::new(), Vec::new());
        let mut first = long;
        while first < n {
            let lanes = |v: usize| row(v).len().div_ceil(STEPS).next_power_of_two().clamp(1, SLICE);
            let of_row = lanes(first);
            let end = (first + SLICE / of_row).min(n);
            let end = (first..end).find(|v| lanes(*v) != of_row).unwrap_or(end);
            let (begin, steps) = (columns.len(), row(first).len().div_ceil(of_row));
            let shape = (end - first) as u32 + 256 * of_row.ilog2();
            slices.extend([begin as u32, steps as u32, first as u32, shape]);
            columns.resize(begin + SLICE * steps, graph.vertices);
            for v in first..end {
                for (k, (_, source)) in row(v).iter().enumerate() {
                    let lane = (v - first) * of_row + k % of_row;
                    columns[begin + SLICE * (k / of_row) + lane] = *source;
                }
            }
            first = end;
        }
        let sources = edges[..rows[long] as usize].iter().map(|(_, source)| *source).collect();
        rows.truncate(long + 1);
        let degrees = graph.out_degrees();
        let part = |v: &u32| match degrees[*v as usize] {
            0 => 0.0,
            degree => 1.0 / degree as f32,
        };
        let parts = order.iter().map(part).collect();
        Layout { order, rows, sources, slices, columns, parts }
    }

    /// How many rows are not in slices.
    pub fn long(&self) -> u32 {
        self.rows.len() as u32 - 1
    }

    /// Writes it into a folder, an array in each file, and the ranks that were found; by the new numbers of vertices.
    pub fn save(&self, folder: &Path, ranks: &[f32]) -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        let of = |name, words: &[u32]| fs::write(folder.join(name), bytemuck::cast_slice(words));
        of("numbers", &[self.order.len() as u32, self.long()])?;
        of("rows", &self.rows)?;
        of("sources", &self.sources)?;
        of("slices", &self.slices)?;
        of("columns", &self.columns)?;
        fs::write(folder.join("parts"), bytemuck::cast_slice(&self.parts))?;
        let ranks: Vec<f32> = self.order.iter().map(|v| ranks[*v as usize]).collect();
        fs::write(folder.join("ranks"), bytemuck::cast_slice(&ranks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_edge_is_in_its_row_once() {
        for kind in [Kind::Uniform, Kind::Rmat] {
            let graph = Edges::generate(kind, 8, 16, 7).unwrap();
            let layout = Layout::new(&graph, 40);
            let name = |v: u32| layout.order[v as usize];
            let mut found = Vec::new();
            for v in 0..layout.long() {
                let row = layout.rows[v as usize] as usize..layout.rows[v as usize + 1] as usize;
                assert!(row.len() > 40);
                found.extend(layout.sources[row].iter().map(|s| (name(*s), name(v))));
            }
            let mut next = layout.long();
            for slice in layout.slices.chunks(4) {
                let [begin, steps, first, shape] = [0, 1, 2, 3].map(|k| slice[k] as usize);
                let (rows, of_row) = (shape % 256, 1 << (shape / 256));
                assert_eq!(first, next as usize);
                assert!(rows > 0 && rows * of_row <= SLICE && (steps <= STEPS || of_row == SLICE));
                let columns = &layout.columns[begin..begin + steps * SLICE];
                for (k, source) in columns.iter().enumerate().filter(|(_, s)| **s != graph.vertices)
                {
                    assert!(k % SLICE / of_row < rows);
                    found.push((name(*source), name(next + (k % SLICE / of_row) as u32)));
                }
                next += rows as u32;
            }
            assert_eq!(next, graph.vertices);
            assert!(kind == Kind::Uniform || layout.long() > 0);
            let mut edges = graph.edges.clone();
            edges.sort_unstable();
            found.sort_unstable();
            assert!(found == edges, "{kind:?}");
        }
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
