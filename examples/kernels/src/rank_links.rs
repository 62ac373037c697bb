//! PageRank by messages: each contribution of a vertex to another is one, from kernel to kernel.
//!
//! ```text
//!   runs of edges                       contributions, by target                 marks
//! host =========> ContributionSender ===========================> RankAggregator =====> ConvergenceChecker ---> host
//! ```
//!
//! **An iteration.** The host sends all edges in runs, to any channel of the senders, and behind them to each channel a run without
//! edges. For this one a sender emits a mark to each aggregator. Links keep the order, so that a mark comes behind all contributions
//! of its sender. An aggregator adds contributions, many at once, and passes marks on; what a kernel emits keeps the order of what it
//! is emitted for, so that the checker has a mark when the contributions before it are added. With the last mark of all the checker
//! makes the new ranks, and tells the host.
//!
//! **Sums.** Contributions come in any order, and are added by many threads at once. Ranks are fixed-point numbers in units of one
//! over [`ONE`], whose sum is the same in any order: the ranks of a graph are always the same, to the last bit.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::{Adder, BlockContext, BufferRef, View};

/// All ranks together: 1.
pub const ONE: u64 = 1 << 60;

/// Most edges of a [`Run`]: the stage of a warp has room for so many contributions. A multiple of a warp's threads.
pub const RUN: u32 = 224;

/// The words at the beginning of a board. The host writes them before the first iteration.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Head {
    /// Channels of the aggregator.
    pub aggregators: u64,
    /// Marks with which an iteration ends: one for each sender and aggregator.
    pub marks: u64,
    /// Part of a rank that goes along edges, in units of 2^-64.
    pub damping: u64,
    /// What each vertex gets in any case, in units of one over [`ONE`].
    pub base: u64,
    /// Marks that came in this iteration.
    pub arrived: u64,
    /// Iterations so far.
    pub iterations: u64,
    /// By how much the ranks changed in the last one, in all.
    pub change: u64,
    /// Ranks of vertices without edges, in all.
    pub dangling: u64,
}

/// Words of a [`Head`].
pub const HEAD: usize = size_of::<Head>() / 8;

/// Words of a board of so many vertices.
pub const fn board_len(vertices: usize) -> usize {
    HEAD + ROWS * vertices
}

/// Index on a board of so many vertices at which a row begins: a word for each vertex.
pub const fn row(row: Row, vertices: usize) -> usize {
    HEAD + row as usize * vertices
}

/// The rows of a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// The contributions that a vertex got so far. Zero before the first iteration.
    Sums,
    /// What a vertex contributes along each of its edges.
    Shares,
    /// Ranks.
    Ranks,
    /// What part of a vertex's rank each of its edges carries, in units of 2^-64: one over its out-degree, or 0 if it has none.
    Parts,
}

const ROWS: usize = 4;

/// Edges along which contributions are to be sent.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Run {
    /// The edges, [`RUN`] at most: the target in the lower half, the source in the upper one. None of them: this is the last run
    /// of the iteration.
    pub edges: BufferRef<u64>,
    /// A [`Head`], and behind it the rows.
    pub board: BufferRef<u64>,
}

/// What a vertex gets along an edge.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Contribution {
    /// See [`Run::board`].
    pub board: BufferRef<u64>,
    /// Which vertex gets it; of a mark, which channel.
    pub target: u32,
    /// 1 if it is a mark, else 0.
    pub is_mark: u32,
    /// How much, in units of one over [`ONE`].
    pub share: u64,
}

/// Says that all contributions of an iteration that one sender has for one aggregator are added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Mark {
    /// See [`Run::board`].
    pub board: BufferRef<u64>,
}

/// What an iteration has come to. Ranks are in units of one over [`ONE`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Iterated {
    /// Iterations so far.
    pub iterations: u64,
    /// By how much the ranks changed, in all.
    pub change: u64,
    /// Ranks of vertices without edges, in all.
    pub dangling: u64,
}

/// Part of a rank, so many units of 2^-64.
#[inline(always)]
pub fn part(rank: u64, of_2_to_64: u64) -> u64 {
    ((u128::from(rank) * u128::from(of_2_to_64)) >> 64) as u64
}

/// What each of `vertices` gets in any case if those without edges have ranks of `dangling` in all.
#[inline(always)]
pub fn base(damping: u64, dangling: u64, vertices: u64) -> u64 {
    let all = ONE - part(ONE, damping) + part(dangling, damping);
    all.checked_div(vertices).unwrap_or(0)
}

/// A view of a board.
#[derive(Clone, Copy)]
struct Board<'a> {
    words: View<'a, u64>,
    vertices: usize,
}

/// Vertices of a board of so many words.
#[inline(always)]
fn vertices(words: usize) -> Option<usize> {
    Some(words.checked_sub(HEAD)? / ROWS)
}

/// Adds a contribution to a board; whether there is such a vertex.
#[inline(always)]
fn contribute(board: Adder<'_>, v: usize, share: u64) -> bool {
    let n = vertices(board.len()).unwrap_or(0);
    v < n && board.add(row(Row::Sums, n) + v, share)
}

/// A word of the head.
macro_rules! head {
    ($field:ident) => {
        offset_of!(Head, $field) / 8
    };
}

/// What the checker reads of a vertex.
#[derive(Clone, Copy)]
struct Vertex {
    sum: u64,
    rank: u64,
    part: u64,
}

impl<'a> Board<'a> {
    #[inline(always)]
    fn new(words: Option<View<'a, u64>>) -> Option<Board<'a>> {
        let words = words?;
        Some(Board { words, vertices: vertices(words.len())? })
    }

    /// The word at an index; 0 if there is none.
    #[inline(always)]
    fn word(&self, at: usize) -> u64 {
        self.words.get(at).unwrap_or(0)
    }

    /// A vertex's word of a row; 0 if there is no such vertex.
    #[inline(always)]
    fn get(&self, of: Row, v: usize) -> u64 {
        if v < self.vertices { self.word(row(of, self.vertices) + v) } else { 0 }
    }

    /// Sets a vertex's word of a row.
    #[inline(always)]
    fn set(&self, of: Row, v: usize, word: u64) {
        self.words.set(row(of, self.vertices) + v, word);
    }

    /// Makes the new ranks of every `step`th vertex from `first` on. By how much they changed, and how much vertices without edges have.
    #[inline(always)]
    fn update(&self, first: usize, step: usize) -> [u64; 2] {
        let (damping, base) = (self.word(head!(damping)), self.word(head!(base)));
        let mut totals = [0; 2];
        let read = |v: usize| Vertex {
            sum: self.get(Row::Sums, v),
            rank: self.get(Row::Ranks, v),
            part: self.get(Row::Parts, v),
        };
        let mut set = |v: usize, vertex: Vertex| {
            if v >= self.vertices {
                return;
            }
            let rank = base + part(vertex.sum, damping);
            totals[0] += rank.abs_diff(vertex.rank);
            if vertex.part == 0 {
                totals[1] += rank;
            }
            self.set(Row::Sums, v, 0);
            self.set(Row::Shares, v, part(rank, vertex.part));
            self.set(Row::Ranks, v, rank);
        };
        let mut v = first;
        while v < self.vertices {
            // Of four, so that a thread waits for memory once.
            let [second, third, fourth] = [v + step, v + 2 * step, v + 3 * step];
            let found = [read(v), read(second), read(third), read(fourth)];
            set(v, found[0]);
            set(second, found[1]);
            set(third, found[2]);
            set(fourth, found[3]);
            v += 4 * step;
        }
        totals
    }

    /// All threads of the block: makes the new ranks of all vertices, and what the next iteration begins with.
    #[inline(always)]
    fn iterate(&self, ctx: &BlockContext<'_>) -> Iterated {
        let set = |word: usize, value: u64| {
            if ctx.thread() == 0 {
                self.words.set(word, value);
            }
        };
        set(head!(change), 0);
        set(head!(dangling), 0);
        ctx.sync();
        let [change, dangling] = self.update(ctx.thread(), ctx.threads());
        self.words.add(head!(change), change);
        self.words.add(head!(dangling), dangling);
        ctx.sync();
        let iterated = Iterated {
            iterations: self.word(head!(iterations)) + 1,
            change: self.word(head!(change)),
            dangling: self.word(head!(dangling)),
        };
        let damping = self.word(head!(damping));
        ctx.sync(); // all have read it
        set(head!(arrived), 0);
        set(head!(iterations), iterated.iterations);
        set(head!(base), base(damping, iterated.dangling, self.vertices as u64));
        iterated
    }
}

ring_device::ring_kernel! {
    /// Sends a contribution along each edge.
    pub struct ContributionSender {
        name: "contribution_sender",
        ports: {
            /// Contributions, and marks.
            CONTRIBUTIONS: [Contribution; RUN] by |contribution| contribution.target,
        },
        uses_payload: true,
    }

    fn handle(ctx: &WarpContext, run: &Run, out: &mut Ports) {
        let (edges, board) = (ctx.view(&run.edges), Board::new(ctx.view(&run.board)));
        let (Some(edges), Some(board)) = (edges, board) else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return;
        };
        let (n, is_mark) = match edges.len() {
            0 => (board.word(head!(aggregators)) as u32, 1),
            n => (n as u32, 0),
        };
        out.emit_each(ContributionSender::CONTRIBUTIONS, n, |k| {
            let edge = edges.get(k as usize).unwrap_or(u64::MAX);
            let (source, target) = ((edge >> 32) as usize, edge as u32);
            Contribution {
                board: run.board,
                target: if is_mark == 0 { target } else { k },
                is_mark,
                share: board.get(Row::Shares, source),
            }
        });
    }
}

ring_device::ring_kernel! {
    /// Adds contributions to what their targets have, and passes marks on.
    pub struct RankAggregator {
        name: "rank_aggregator",
        ports: {
            /// Marks.
            MARKS: [Mark; 1],
        },
        uses_payload: true,
    }

    fn handle(ctx: &ThreadContext, contribution: &Contribution, out: &mut Ports) {
        let Contribution { board, target, is_mark, share } = *contribution;
        if is_mark != 0 {
            out.emit(RankAggregator::MARKS, Mark { board });
            return;
        }
        let is_added = match ctx.adder(&board) {
            Some(board) => contribute(board, target as usize, share),
            None => false,
        };
        if !is_added {
            ctx.refuse();
        }
    }
}

ring_device::ring_kernel! {
    /// Counts marks. With the last one it makes the new ranks, and says by how much they changed.
    pub struct ConvergenceChecker {
        name: "convergence_checker",
        ports: {
            /// What each iteration has come to.
            ITERATED: [Iterated; 1],
        },
        uses_payload: true,
    }

    fn handle(ctx: &BlockContext, mark: &Mark, out: &mut Ports) {
        let Some(board) = Board::new(ctx.view(&mark.board)) else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return;
        };
        let arrived = board.word(head!(arrived)) + 1;
        let is_last = arrived == board.word(head!(marks));
        ctx.sync(); // all have read it
        if is_last {
            let iterated = board.iterate(ctx);
            out.emit(ConvergenceChecker::ITERATED, iterated);
        } else if ctx.thread() == 0 {
            board.words.set(head!(arrived), arrived);
        }
    }
}
