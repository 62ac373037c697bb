//! PageRank by a grid, or by one on each of two devices: all iterations in one message.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::{BufferRef, Elements, Fours, GridContext, Output};

/// Lanes of a slice: as many as a GPU's warp has.
pub const SLICE: usize = 32;

/// Fours of edges that a lane has of a slice at once.
pub const FOURS: usize = 4;

/// Edges of a slice at once: more are read after these.
pub const AT_ONCE: usize = SLICE * 4 * FOURS;

/// What is named where there is no edge, or no row.
pub const NOBODY: u32 = u32::MAX;

/// A graph, and how far to go. Vertices are numbered by falling in-degree, and row `v` of the matrix names the sources of the edges that
/// lead to vertex `v`.
///
/// Rows lie in slices, each of which is a block's. Some have one row, a long one, and all warps of the block add that up, [`AT_ONCE`] edges
/// each by turns. Any other slice is for a warp: it has some rows, each for 1, 2, 4, 8, 16 or 32 lanes side by side.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Ranking {
    /// Of each slice four numbers: where it begins in `columns`, counted in fours; how many fours each lane has; its first row; and how
    /// many rows it has, plus 256 times the binary logarithm of a row's lanes.
    pub slices: BufferRef<u32>,
    /// Of each slice the first fours of sources of all lanes, the second ones, and so on; the last four of all is of [`NOBODY`].
    pub columns: BufferRef<u32>,
    /// What part of a vertex's rank each of its edges carries: one over its out-degree, or 0 if it has none. `vertices`.
    pub parts: BufferRef<f32>,
    /// Where the slices of each block begin, those for all its warps and then those for one each, and the end of all: `2 blocks + 1`.
    pub shares: BufferRef<u32>,
    /// The ranks: behind the answer. `vertices`.
    pub ranks: BufferRef<f32>,
    /// What each vertex contributes along an edge, by turns; and 0 behind these, for [`NOBODY`]. `vertices + 1` each.
    pub contributions: [BufferRef<f32>; 2],
    /// Vertices.
    pub vertices: u32,
    /// Iterations at most.
    pub iterations: u32,
    /// Part of the rank that goes along edges, 0.85 usually.
    pub damping: f32,
    /// It stops when the ranks change by no more than this in an iteration, in all (L1). 0: when they do not change at all.
    pub tolerance: f32,
}

/// The same for one of two devices: the rows of some of the vertices, and where the other device reads what these contribute.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct HalfRanking {
    /// As for one device. `slices`, `columns` and `shares` are of the device's own rows, and so is what is found in `ranks` behind the
    /// answer; `parts` are of all vertices.
    pub own: Ranking,
    /// `contributions` of the other device, [lent](../../ring_host/struct.Devices.html#method.lend) to this one.
    pub others: [BufferRef<f32>; 2],
}

/// What came of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Ranked {
    /// Iterations; 0 if a buffer was refused, or does not fit the graph or the grid.
    pub iterations: u32,
    /// By how much the ranks changed in the last one, in all.
    pub change: f32,
}

/// The elements of a [`Ranking`]'s buffers.
#[derive(Clone, Copy)]
struct Graph<'a> {
    slices: Fours<'a, u32>,
    columns: Fours<'a, u32>,
    parts: Elements<'a, f32>,
    ranks: Elements<'a, f32>,
}

/// What one iteration goes by: what vertices contribute, where they put what they contribute to the next one, on this device and on
/// the other one if there is one, and the rank that each vertex gets in any case.
#[derive(Clone, Copy)]
struct Turn<'a> {
    from: Elements<'a, f32>,
    to: Elements<'a, f32>,
    others: Option<Elements<'a, f32>>,
    base: f32,
    damping: f32,
}

/// The slices of the calling warp, one after the other, over and over: those that it has with the other warps of its block, and then
/// those that it has for itself, or one that is none.
#[derive(Clone, Copy)]
struct Walk {
    /// The slices of the block: where those for all its warps begin, those for one each, and those of the next block.
    begin: u32,
    own: u32,
    end: u32,
    /// The number of the warp in the block, and how many there are.
    warp: (u32, u32),
    /// The calling thread's number in its warp, and how many lanes this one has.
    lane: (u32, u32),
}

/// What a thread has of a slice at once, but for what comes along its edges.
#[derive(Clone, Copy, Default)]
struct Piece {
    /// The sources of the edges.
    sources: [[u32; 4]; FOURS],
    row: u32,
    /// Its lane, and the binary logarithm of the lanes of a row.
    lane: u32,
    lanes: u32,
    /// What part of the vertex's rank each of its edges carries.
    part: f32,
    /// The vertex's rank before.
    rank: f32,
    /// Whether the row is for all warps of the block.
    is_long: bool,
    /// Whether it is the thread's first or last piece of the row, and its last one of all.
    begins: bool,
    ends: bool,
    is_last: bool,
}

/// A thread's walk through its slices: how far it has read.
#[derive(Clone, Copy)]
struct Reader {
    /// The piece that it has read.
    piece: Piece,
    /// Where the next one is: its slice, of what shape that is, how many fours of each lane lie before it, and which lane it is of.
    slice: u32,
    shape: [u32; 4],
    fours: u32,
    lane: u32,
    /// The shape of the slice behind that one.
    next: [u32; 4],
}

impl Walk {
    #[inline(always)]
    fn new(ctx: &GridContext<'_>, shares: Elements<'_, u32>, slices: u32) -> Self {
        let share = |k: u32| shares.nearest(2 * ctx.block() as u32 + k).min(slices);
        let [begin, own, end] = [0, 1, 2].map(share);
        let (lane, lanes) = (ctx.lane() as u32, ctx.lanes() as u32);
        let warp = (ctx.thread() as u32 / lanes, ctx.threads() as u32 / lanes);
        Walk { begin, own, end, warp, lane: (lane, lanes) }
    }

    /// Whether a slice is for all warps of the block.
    #[inline(always)]
    fn is_long(&self, slice: u32) -> bool {
        slice < self.own
    }

    /// The first slice that the warp has for itself.
    #[inline(always)]
    fn own(&self) -> u32 {
        self.own.saturating_add(self.warp.0)
    }

    /// The first slice.
    #[inline(always)]
    fn first(&self) -> u32 {
        if self.is_long(self.begin) { self.begin } else { self.own() }
    }

    /// The slice behind another in the same iteration, if there is one.
    #[inline(always)]
    fn next(&self, slice: u32) -> Option<u32> {
        if self.is_long(slice) {
            let next = slice + 1;
            Some(if self.is_long(next) { next } else { self.own() })
        } else {
            let next = slice.saturating_add(self.warp.1);
            (next < self.end).then_some(next)
        }
    }

    /// The slice behind another.
    #[inline(always)]
    fn after(&self, slice: u32) -> u32 {
        self.next(slice).unwrap_or(self.first())
    }

    /// How many fours of each lane of a slice lie before the warp's first ones, and how many from these to its next ones.
    #[inline(always)]
    fn fours(&self, slice: u32) -> (u32, u32) {
        let (warp, warps) = if self.is_long(slice) { self.warp } else { (0, 1) };
        (FOURS as u32 * warp, FOURS as u32 * warps)
    }
}

impl Graph<'_> {
    /// The shape of a slice; that of one that is none has no rows.
    #[inline(always)]
    fn shape(&self, walk: &Walk, slice: u32) -> [u32; 4] {
        let [begin, fours, first, rows] =
            if slice < walk.end { self.slices.nearest(slice) } else { [0; 4] };
        [begin, fours.min(self.columns.len()), first, rows]
    }

    /// What lane `lane` has of a slice behind so many fours.
    #[inline(always)]
    fn piece(&self, [begin, fours, first, rows]: [u32; 4], before: u32, lane: u32) -> Piece {
        let at = begin.wrapping_add(SLICE as u32 * before).wrapping_add(lane);
        let sources = core::array::from_fn(|k| {
            let is_there = before + (k as u32) < fours;
            self.columns.nearest(if is_there {
                at.wrapping_add((SLICE * k) as u32)
            } else {
                NOBODY
            })
        });
        let lanes = (rows >> 8).min(SLICE.ilog2());
        let k = lane >> lanes;
        let row = if k < rows & 0xff { first.wrapping_add(k) } else { NOBODY };
        let (part, rank) = (self.parts.nearest(row), self.ranks.nearest(row));
        Piece { sources, row, lane, lanes, part, rank, ..Piece::default() }
    }
}

impl Reader {
    /// At the beginning of a walk, the first piece read.
    #[inline(always)]
    fn new(graph: &Graph<'_>, walk: &Walk) -> Reader {
        let slice = walk.first();
        let (shape, next) = (graph.shape(walk, slice), graph.shape(walk, walk.after(slice)));
        let (fours, lane) = (walk.fours(slice).0, walk.lane.0);
        let mut reader = Reader { piece: Piece::default(), slice, shape, fours, lane, next };
        reader.read(graph, walk);
        reader
    }

    /// Reads the next piece; and the shape of a slice, if it is the last piece of one.
    #[inline(always)]
    fn read(&mut self, graph: &Graph<'_>, walk: &Walk) {
        let is_long = walk.is_long(self.slice);
        let (first, step) = walk.fours(self.slice);
        let is_first = self.fours == first;
        let fours = self.fours + step;
        let is_end = fours >= self.shape[1];
        let lane = self.lane + walk.lane.1;
        let is_last_lane = lane >= SLICE as u32;
        let piece = graph.piece(self.shape, self.fours, self.lane);
        self.piece = Piece {
            is_long,
            // Where a warp has fewer lanes than a row, a thread has several pieces of that row.
            begins: is_first && self.lane & ((1 << piece.lanes) - 1) < walk.lane.1,
            ends: is_end && (is_last_lane || !is_long),
            is_last: is_end && is_last_lane && walk.next(self.slice).is_none(),
            ..piece
        };
        self.lane = if is_last_lane { walk.lane.0 } else { lane };
        if is_last_lane && is_end {
            self.slice = walk.after(self.slice);
            self.shape = self.next;
            self.fours = walk.fours(self.slice).0;
            self.next = graph.shape(walk, walk.after(self.slice));
        } else if is_last_lane {
            self.fours = fours;
        }
    }
}

/// The sum of some numbers.
#[inline(always)]
fn added(of: [[f32; 4]; FOURS]) -> f32 {
    let [a, b, c, d] =
        of.into_iter().reduce(|a, b| core::array::from_fn(|j| a[j] + b[j])).unwrap_or_default();
    (a + b) + (c + d)
}

/// What an iteration adds up in all: the ranks that have no edge to go along, and by how much ranks have changed.
type Totals = [f32; 2];

/// The sum of what all threads bring, of this device or of both.
#[inline(always)]
fn sum(ctx: &GridContext<'_>, of_two: bool, totals: Totals) -> Totals {
    if of_two { ctx.sum_devices(totals) } else { ctx.sum(totals) }
}

/// One iteration. The next piece is read while what comes along the edges of one is on its way; the last piece is followed by the first
/// one of the next iteration.
#[inline(always)]
fn iterate<'a>(
    ctx: &'a GridContext<'a>,
    (graph, walk): (&Graph<'_>, &Walk),
    reader: &mut Reader,
    turn: Turn<'_>,
) -> Totals {
    let (mut totals, mut sum) = ([0.0; 2], 0.0);
    loop {
        let piece = reader.piece;
        let along = piece.sources.map(|four| four.map(|source| turn.from.nearest(source)));
        reader.read(graph, walk);
        sum = if piece.begins { 0.0 } else { sum } + added(along);
        if piece.ends {
            let last = (1 << piece.lanes) - 1;
            let is_mine = if piece.is_long {
                sum = ctx.sum_block(sum);
                ctx.thread() == 0
            } else {
                sum = ctx.sum_of(sum, 1 << piece.lanes);
                piece.lane & last == last
            };
            if is_mine && piece.row != NOBODY {
                let rank = turn.base + turn.damping * sum;
                turn.to.set(piece.row, rank * piece.part);
                if let Some(others) = turn.others {
                    others.set(piece.row, rank * piece.part);
                }
                graph.ranks.set(piece.row, rank);
                if reader.piece.row == piece.row {
                    reader.piece.rank = rank; // it was read before
                }
                if piece.part == 0.0 {
                    totals[0] += rank;
                }
                totals[1] += (rank - piece.rank).abs();
            }
        }
        if piece.is_last {
            return self::sum(ctx, turn.others.is_some(), totals);
        }
    }
}

/// Ranks the vertices: by this device's grid, or by the grids of two if there are `others` where this one tells the other device what its
/// own vertices contribute.
#[inline(always)]
fn rank(
    ctx: &GridContext<'_>,
    request: &Ranking,
    others: Option<&[BufferRef<f32>; 2]>,
    response: &Output<Ranked>,
) {
    let vertices = request.vertices;
    let fours = |of: &BufferRef<u32>| ctx.view(of).and_then(|view| view.fours());
    let elements = |of: &BufferRef<f32>, n: u32| {
        ctx.view(of).and_then(|view| view.elements()).filter(|of| of.len() == n)
    };
    let shares = ctx.view(&request.shares).and_then(|view| view.elements());
    let [from, to] = request.contributions.map(|of| elements(&of, vertices.wrapping_add(1)));
    let all = match (
        (fours(&request.slices), fours(&request.columns), shares),
        (elements(&request.parts, vertices), elements(&request.ranks, vertices)),
        (from, to),
    ) {
        (
            (Some(slices), Some(columns), Some(shares)),
            (Some(parts), Some(ranks)),
            (Some(from), Some(to)),
        ) if shares.len() as usize == 2 * ctx.blocks() + 1 => {
            Some((Graph { slices, columns, parts, ranks }, shares, from, to))
        }
        _ => None,
    };
    // The other device writes to `from` and `to` by turns, as this one does to its own.
    let [mut others_from, mut others_to] = match others {
        None => [None; 2],
        Some(others) => others.map(|of| elements(&of, vertices.wrapping_add(1))),
    };
    let is_none =
        all.is_none() || others.is_some() && (others_from.is_none() || others_to.is_none());
    let is_missing = match others {
        None => ctx.max(u32::from(is_none)),
        Some(_) => ctx.max_devices(u32::from(is_none || ctx.devices() != 2)),
    };
    let (Some((graph, shares, mut from, mut to)), 0) = (all, is_missing) else {
        if ctx.index() == 0 {
            ctx.refuse();
        }
        return; // in all blocks of all devices alike
    };
    let even = 1.0 / vertices as f32;
    let is_first = others.is_none() || ctx.device() == 0; // each device has the ranks of all vertices now
    let mut totals = [0.0; 2];
    for v in ctx.each(vertices as usize) {
        let part = graph.parts.nearest(v as u32);
        graph.ranks.set(v as u32, even);
        from.set(v as u32, even * part);
        if part == 0.0 && is_first {
            totals[0] += even;
        }
    }
    if ctx.index() == 0 {
        from.set(vertices, 0.0);
        to.set(vertices, 0.0);
    }
    let mut totals = sum(ctx, others.is_some(), totals);
    let walk = Walk::new(ctx, shares, graph.slices.len());
    let mut reader = Reader::new(&graph, &walk);
    let mut iterations = 0;
    let change = loop {
        let [dangling, change] = totals;
        let is_done = iterations > 0 && change <= request.tolerance;
        if is_done || iterations == request.iterations {
            break change;
        }
        let base = (1.0 - request.damping + request.damping * dangling) * even;
        let turn = Turn { from, to, others: others_to, base, damping: request.damping };
        totals = iterate(ctx, (&graph, &walk), &mut reader, turn);
        (from, to) = (to, from);
        (others_from, others_to) = (others_to, others_from);
        iterations += 1;
    };
    if ctx.index() == 0 {
        response.set(offset_of!(Ranked, iterations), 0, iterations);
        response.set(offset_of!(Ranked, change), 0, change);
    }
}

ring_device::ring_kernel! {
    /// Ranks the vertices of a graph, by all blocks of a grid.
    pub struct PageRank {
        name: "page_rank",
        threads: 384,
        uses_payload: true,
        prefers_l1: true,
    }

    fn handle(ctx: &GridContext, request: &Ranking, response: &Output<Ranked>) {
        rank(ctx, request, None, response);
    }
}

ring_device::ring_kernel! {
    /// Ranks the vertices of a graph, by the grids of two devices, each with some of the rows.
    pub struct PageRankOfTwo {
        name: "page_rank_of_two",
        threads: 384,
        uses_payload: true,
        prefers_l1: true,
    }

    fn handle(ctx: &GridContext, request: &HalfRanking, response: &Output<Ranked>) {
        rank(ctx, &request.own, Some(&request.others), response);
    }
}
