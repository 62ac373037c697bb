//! PageRank by one grid: all iterations in one message.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::{BufferRef, GridContext, View};

/// Lanes of a slice: as many as a GPU's warp has.
pub const SLICE: usize = 32;

/// Edges that a lane has of a slice, one for each step, where a row is not longer than all lanes have.
pub const STEPS: usize = 16;

/// A graph, and how far to go. Vertices are numbered by falling in-degree, and row `v` of the matrix names the sources of the edges
/// that lead to vertex `v`. The rows below `long`, which are the longest, lie one after the other (compressed sparse rows), and a block
/// adds up each of them. The others lie in slices, which a warp adds up: a slice has some rows, each for 1, 2, 4, 8, 16 or 32 lanes
/// side by side, so that no lane has more than [`STEPS`] edges unless the row is longer than all lanes have. A lane's edges are every
/// [`SLICE`]th, from its own number on; where it has none, `columns` names vertex `vertices`, which contributes nothing.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Ranking {
    /// Where each long row begins in `sources`, and the end: `long + 1`.
    pub rows: BufferRef<u32>,
    /// The sources of the long rows.
    pub sources: BufferRef<u32>,
    /// Of each slice four numbers: where it begins in `columns`, how many steps it has, its first row, and how many rows it has, plus
    /// 256 times the binary logarithm of a row's lanes.
    pub slices: BufferRef<u32>,
    /// The sources of the slices.
    pub columns: BufferRef<u32>,
    /// What part of a vertex's rank each of its edges carries: one over its out-degree, or 0 if it has none. `vertices`.
    pub parts: BufferRef<f32>,
    /// The ranks: behind the answer. `vertices`.
    pub ranks: BufferRef<f32>,
    /// What each vertex contributes along an edge, by turns. `vertices + 1` each.
    pub contributions: [BufferRef<f32>; 2],
    /// Vertices.
    pub vertices: u32,
    /// Rows, the first ones, that are not in slices.
    pub long: u32,
    /// Iterations at most.
    pub iterations: u32,
    /// Part of the rank that goes along edges, 0.85 usually.
    pub damping: f32,
    /// It stops when the ranks change by no more than this in an iteration, in all (L1). 0: when they do not change at all.
    pub tolerance: f32,
    /// Not used: whole atoms.
    pub unused: u32,
}

/// What came of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Ranked {
    /// Iterations; 0 if a buffer was refused, or does not fit.
    pub iterations: u32,
    /// By how much the ranks changed in the last one, in all.
    pub change: f32,
}

/// The views of a [`Ranking`].
#[derive(Clone, Copy)]
struct Graph<'a> {
    rows: View<'a, u32>,
    sources: View<'a, u32>,
    slices: View<'a, u32>,
    columns: View<'a, u32>,
    parts: View<'a, f32>,
    ranks: View<'a, f32>,
}

/// What one iteration goes by: what came with edges of the iteration before, and what each vertex gets in any case.
#[derive(Clone, Copy)]
struct Turn<'a> {
    from: View<'a, f32>,
    to: View<'a, f32>,
    base: f32,
    damping: f32,
}

/// What a thread has of a long row: of 32 bits each, for it stays in registers.
#[derive(Clone, Copy)]
struct Part {
    /// The sources of its first edges.
    sources: [u32; AT_ONCE],
    /// Where its further edges begin in `sources` of the graph, and where the row ends.
    edges: (u32, u32),
    /// What part of the vertex's rank each of its edges carries.
    part: f32,
    /// The vertex's rank before.
    rank: f32,
}

/// What a lane has of a slice: of 32 bits each, for it stays in registers.
#[derive(Clone, Copy)]
struct Piece {
    /// The sources of its first edges.
    sources: [u32; STEPS],
    /// Where its edges begin in `columns`, and how many there may be.
    edges: (u32, u32),
    /// Lanes of a row.
    lanes: u32,
    /// The row, if there is one.
    row: Option<u32>,
    /// What part of that vertex's rank each of its edges carries.
    part: f32,
    /// The vertex's rank before.
    rank: f32,
}

impl Piece {
    /// The row, if that lane, whose piece it is, is the last one of it.
    #[inline(always)]
    fn row_of(&self, lane: usize) -> Option<usize> {
        let last = self.lanes - 1;
        self.row.filter(|_| lane as u32 & last == last).map(|row| row as usize)
    }
}

impl Graph<'_> {
    /// What lane `lane` has of a slice.
    #[inline(always)]
    fn piece(&self, slice: usize, lane: usize) -> Piece {
        let [begin, steps, first, shape] = self.slices.get4(4 * slice).unwrap_or([0; 4]);
        let (begin, of_row) = (begin.wrapping_add(lane as u32), (shape >> 8).min(SLICE.ilog2()));
        let nobody = self.ranks.len() as u32;
        let source = |k: usize| match self.columns.get(begin as usize + SLICE * k) {
            Some(source) if (k as u32) < steps => source,
            _ => nobody,
        };
        let k = lane as u32 >> of_row;
        let row = (k < shape & 0xff).then_some(first.wrapping_add(k));
        let of_vertex =
            |values: &View<'_, f32>| row.and_then(|row| values.get(row as usize)).unwrap_or(0.0);
        Piece {
            sources: core::array::from_fn(source),
            edges: (begin, steps),
            lanes: 1 << of_row,
            row,
            part: of_vertex(&self.parts),
            rank: of_vertex(&self.ranks),
        }
    }

    /// The sources at `at`, and at every `step`th place from there on, before `end`. All are read before what they contribute, which a
    /// thread then waits for once.
    #[inline(always)]
    fn named<const N: usize>(
        &self,
        sources: &View<'_, u32>,
        (at, end, step): (usize, usize, usize),
    ) -> [u32; N] {
        let nobody = self.ranks.len() as u32;
        core::array::from_fn(|k| match sources.get(at + step * k) {
            Some(source) if at + step * k < end => source,
            _ => nobody,
        })
    }

    /// What comes along the edges whose sources are at `at`, and at every `step`th place from there on, before `end`, by `N` at once.
    #[inline(always)]
    fn along<const N: usize>(
        &self,
        sources: &View<'_, u32>,
        (mut at, end, step): (usize, usize, usize),
        from: View<'_, f32>,
    ) -> f32 {
        let mut sum = 0.0;
        while at < end {
            sum += added(contributed(self.named::<N>(sources, (at, end, step)), from));
            at += step * N;
        }
        sum
    }

    /// What comes along the other edges of a piece.
    #[inline(always)]
    fn more(&self, piece: &Piece, from: View<'_, f32>) -> f32 {
        let (begin, steps) = (piece.edges.0 as usize, piece.edges.1 as usize);
        let (at, end) = (begin + SLICE * STEPS, self.columns.len().min(begin + SLICE * steps));
        self.along::<4>(&self.columns, (at, end, SLICE), from)
    }

    /// Where the calling thread's edges of long row `v`, if that is one, begin and end in `sources`, and how far apart they are.
    #[inline(always)]
    fn edges(&self, ctx: &GridContext<'_>, v: usize) -> (usize, usize, usize) {
        let row = |v: usize| self.rows.get(v).unwrap_or(0) as usize;
        (row(v) + ctx.thread(), self.sources.len().min(row(v + 1)), ctx.threads())
    }

    /// The calling thread's part of long row `v`, if that is one.
    #[inline(always)]
    fn part(&self, ctx: &GridContext<'_>, v: usize) -> Part {
        let (begin, end, step) = self.edges(ctx, v);
        Part {
            sources: self.named(&self.sources, (begin, end, step)),
            edges: ((begin + step * AT_ONCE) as u32, end as u32),
            part: self.parts.get(v).unwrap_or(0.0),
            rank: self.ranks.get(v).unwrap_or(0.0),
        }
    }
}

/// What some vertices contribute to each that they have an edge to.
#[inline(always)]
fn contributed<const N: usize>(sources: [u32; N], from: View<'_, f32>) -> [f32; N] {
    sources.map(|source| from.get(source as usize).unwrap_or(0.0))
}

/// The sum of what came along some edges, a multiple of 4 of them.
#[inline(always)]
fn added<const N: usize>(of: [f32; N]) -> f32 {
    let mut four = [0.0; 4];
    for k in 0..N / 4 {
        four = core::array::from_fn(|j| four[j] + of[4 * k + j]);
    }
    (four[0] + four[1]) + (four[2] + four[3])
}

/// Edges of a long row that a thread reads at once.
const AT_ONCE: usize = 8;

/// What an iteration adds up in all: the ranks that have no edge to go along, and by how much ranks have changed.
type Totals = [f32; 2];

impl Turn<'_> {
    /// Gives a vertex, whose rank was `before`, a new one; which.
    #[inline(always)]
    fn set(&self, v: usize, sum: f32, (part, before): (f32, f32), totals: &mut Totals) -> f32 {
        let rank = self.base + self.damping * sum;
        self.to.set(v, rank * part);
        if part == 0.0 {
            totals[0] += rank;
        }
        totals[1] += (rank - before).abs();
        rank
    }
}

/// One iteration. `kept` is what the calling thread has of its block's first long row, and of its warp's first slice, which stays in
/// registers from one iteration to the next, the slice where it has as many lanes as a warp; `first` is what comes along the first edges
/// of both.
#[inline(always)]
fn iterate<'a>(
    ctx: &'a GridContext<'a>,
    (graph, long, slices): (&Graph<'_>, usize, usize),
    (part, kept): (&mut Part, &mut Piece),
    first: [f32; 2],
    turn: Turn<'_>,
) -> Totals {
    let mut totals = [0.0; 2];
    let (mut slice, warps) = (turn_of(ctx), ctx.size() / ctx.lanes());
    if ctx.lanes() == SLICE {
        let sum = ctx.sum_of(first[1] + graph.more(kept, turn.from), kept.lanes as usize);
        if let Some(row) = kept.row_of(ctx.lane()) {
            kept.rank = turn.set(row, sum, (kept.part, kept.rank), &mut totals);
        }
        slice += warps;
    }
    if ctx.block() < long {
        let others = (part.edges.0 as usize, part.edges.1 as usize, ctx.threads());
        let others = graph.along::<AT_ONCE>(&graph.sources, others, turn.from);
        let sum = ctx.sum_block(first[0] + others);
        if ctx.thread() == 0 {
            part.rank = turn.set(ctx.block(), sum, (part.part, part.rank), &mut totals);
        }
    }
    let mut v = ctx.block() + ctx.blocks();
    while v < long {
        let edges = graph.edges(ctx, v);
        let sum = ctx.sum_block(graph.along::<AT_ONCE>(&graph.sources, edges, turn.from));
        if ctx.thread() == 0 {
            let of_vertex = |values: &View<'_, f32>| values.get(v).unwrap_or(0.0);
            let before = (of_vertex(&graph.parts), of_vertex(&graph.ranks));
            graph.ranks.set(v, turn.set(v, sum, before, &mut totals));
        }
        v += ctx.blocks();
    }
    while slice < slices {
        let mut sum = 0.0;
        let mut lane = ctx.lane();
        while lane < SLICE {
            let piece = graph.piece(slice, lane);
            sum += added(contributed(piece.sources, turn.from)) + graph.more(&piece, turn.from);
            sum = ctx.sum_of(sum, piece.lanes as usize);
            if (lane as u32 + 1).is_multiple_of(piece.lanes) {
                if let Some(row) = piece.row_of(lane) {
                    graph.ranks.set(row, turn.set(row, sum, (piece.part, piece.rank), &mut totals));
                }
                sum = 0.0; // of the next row, where a thread has several lanes
            }
            lane += ctx.lanes();
        }
        slice += warps;
    }
    ctx.sum(totals)
}

/// The number of the calling warp where slices are shared out: warps side by side are of different blocks, the last block first, since
/// the first ones have the longest rows.
#[inline(always)]
fn turn_of(ctx: &GridContext<'_>) -> usize {
    ctx.thread() / ctx.lanes() * ctx.blocks() + (ctx.blocks() - 1 - ctx.block())
}

/// A view of so many elements.
fn sized(view: Option<View<'_, f32>>, n: usize) -> Option<View<'_, f32>> {
    view.filter(|view| view.len() == n)
}

ring_device::ring_kernel! {
    /// Ranks the vertices of a graph, by all blocks of a grid.
    pub struct PageRank {
        name: "page_rank",
        threads: 256,
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &Ranking, response: &Output<Ranked>) {
        let vertices = request.vertices as usize;
        let [from, to] = request.contributions;
        let ends = (sized(ctx.view(&from), vertices + 1), sized(ctx.view(&to), vertices + 1));
        let of_vertices =
            (sized(ctx.view(&request.parts), vertices), sized(ctx.view(&request.ranks), vertices));
        let edges = (
            ctx.view(&request.rows),
            ctx.view(&request.sources),
            ctx.view(&request.slices),
            ctx.view(&request.columns),
        );
        let all = match (edges, of_vertices, ends) {
            (
                (Some(rows), Some(sources), Some(slices), Some(columns)),
                (Some(parts), Some(ranks)),
                (Some(from), Some(to)),
            ) if request.long <= request.vertices => {
                Some((Graph { rows, sources, slices, columns, parts, ranks }, from, to))
            }
            _ => None,
        };
        let is_missing = ctx.max(u32::from(all.is_none() || vertices == 0)) != 0;
        let (Some((graph, mut from, mut to)), false) = (all, is_missing) else {
            if ctx.index() == 0 {
                ctx.refuse();
            }
            return; // in all blocks alike
        };
        let even = 1.0 / vertices as f32;
        let mut totals = [0.0; 2];
        for v in ctx.each(vertices) {
            let part = graph.parts.get(v).unwrap_or(0.0);
            graph.ranks.set(v, even);
            from.set(v, even * part);
            if part == 0.0 {
                totals[0] += even;
            }
        }
        let mut sum = ctx.sum(totals);
        let mut kept_part = graph.part(ctx, ctx.block());
        let mut kept = graph.piece(turn_of(ctx), ctx.lane());
        let shape = (&graph, request.long as usize, graph.slices.len() / 4);
        let mut iterations = 0;
        let change = loop {
            let first_of_part = contributed(kept_part.sources, from);
            let first = [added(first_of_part), added(contributed(kept.sources, from))];
            let [dangling, change] = sum;
            let is_done = iterations > 0 && change <= request.tolerance;
            if is_done || iterations == request.iterations {
                break change;
            }
            let base = (1.0 - request.damping + request.damping * dangling) * even;
            let turn = Turn { from, to, base, damping: request.damping };
            sum = iterate(ctx, shape, (&mut kept_part, &mut kept), first, turn);
            (from, to) = (to, from);
            iterations += 1;
        };
        if let (true, Some(row)) = (ctx.lanes() == SLICE, kept.row_of(ctx.lane())) {
            graph.ranks.set(row, kept.rank);
        }
        if ctx.thread() == 0 && ctx.block() < request.long as usize {
            graph.ranks.set(ctx.block(), kept_part.rank);
        }
        if ctx.index() == 0 {
            response.set(offset_of!(Ranked, iterations), 0, iterations);
            response.set(offset_of!(Ranked, change), 0, change);
        }
    }
}
