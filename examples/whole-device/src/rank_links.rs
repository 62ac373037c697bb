//! PageRank by messages: each contribution of a vertex to another is one, from kernel to kernel.
//!
//! ```text
//!      spans of edges             runs of edges
//! host ===============> RunSplitter ==============> ContributionSender
//!                                                           ||
//!                                                           || contributions, by target
//!                                                           \/
//! host <============= ConvergenceChecker <========== RankAggregator
//!      iterations                        marks, by aggregator
//! ```
//!
//! **An iteration.** The host sends all edges in spans, and behind them a span without edges. The splitter cuts each into runs, which
//! senders take by turns, and emits a run without edges to each sender for the last one. For this a sender emits a mark to each
//! aggregator. Links keep the order, so that a mark comes behind all contributions of its sender. An aggregator adds contributions,
//! many at once, and passes marks on; what a kernel emits keeps the order of what it is emitted for, so that a checker has a mark
//! when the contributions before it are added. Each checker has the vertices of some aggregators. With the last mark of these it
//! makes their new ranks, and tells the host, which begins the next iteration with what vertices without edges have in all.
//!
//! **Sums.** Contributions come in any order, and are added by many threads at once. Ranks are fixed-point numbers in units of one
//! over [`ONE`], whose sum is the same in any order: the ranks of a graph are always the same, to the last bit.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use core::num::NonZeroU32;
use ring_device::{Adder, BlockContext, BufferRef, View};

/// All ranks together: 1.
pub const ONE: u64 = 1 << 60;

/// Most edges of a [`Run`]: the stage of a warp has room for so many contributions. A multiple of a warp's threads.
pub const RUN: u32 = 224;

/// Most runs of a [`Span`], and most senders.
pub const RUNS: u32 = 224;

/// Most edges of a [`Span`].
pub const SPAN: u32 = RUNS * RUN;

/// Vertices side by side that one aggregator has: what it and its checker do with them is one access of a warp.
pub const GROUP: u32 = 32;

/// Most channels of the aggregator: a sender emits a mark to each for one run.
pub const AGGREGATORS: u32 = RUN;

/// Most channels of the checker.
pub const CHECKERS: u32 = 32;

/// The words at the beginning of a board. The host writes them before the first iteration.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Head {
    /// Channels of the senders, [`RUNS`] at most.
    pub senders: u64,
    /// Channels of the aggregator, [`AGGREGATORS`] at most. Aggregator `a` of these has groups `a`, `a + aggregators` and so on.
    pub aggregators: u64,
    /// Channels of the checker, [`CHECKERS`] at most. Checker `c` of these has aggregators `c`, `c + checkers` and so on.
    pub checkers: u64,
    /// Part of a rank that goes along edges, in units of 2^-64.
    pub damping: u64,
    /// Of each checker.
    pub tallies: [Tally; CHECKERS as usize],
}

/// What a checker counts. Zero before the first iteration.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Tally {
    /// Marks that came in this iteration.
    pub arrived: u64,
    /// What its last iteration has come to.
    pub last: Iterated,
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
pub struct Span {
    /// The edges, [`SPAN`] at most: the target in the lower half, the source in the upper one. None of them: this is the last span
    /// of the iteration.
    pub edges: BufferRef<u64>,
    /// A [`Head`], and behind it the rows.
    pub board: BufferRef<u64>,
    /// Of the last span: what each vertex gets in any case, in units of one over [`ONE`].
    pub base: u64,
}

/// Edges along which one sender is to send contributions.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Run {
    /// The edges, [`RUN`] at most; none of them: this is the sender's last run of the iteration.
    pub edges: BufferRef<u64>,
    /// See [`Span::board`].
    pub board: BufferRef<u64>,
    /// See [`Span::base`].
    pub base: u64,
    /// Which of the span's runs it is: it goes to the sender of this number, modulo how many there are.
    pub sender: u32,
    /// 0.
    pub padding: u32,
}

/// What a vertex gets along an edge.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Contribution {
    /// See [`Span::board`].
    pub board: BufferRef<u64>,
    /// Which vertex gets it; of a mark, the first one of its aggregator.
    pub target: u32,
    /// 1 if it is a mark, else 0.
    pub is_mark: u32,
    /// How much, in units of one over [`ONE`]; of a mark, see [`Span::base`].
    pub share: u64,
}

/// Says that all contributions of an iteration that one sender has for one aggregator are added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Mark {
    /// See [`Span::board`].
    pub board: BufferRef<u64>,
    /// See [`Span::base`].
    pub base: u64,
    /// Which aggregator.
    pub aggregator: u32,
    /// 0.
    pub padding: u32,
}

/// What an iteration has come to. Ranks are in units of one over [`ONE`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Iterated {
    /// Iterations so far.
    pub iterations: u64,
    /// By how much the ranks of a checker's vertices changed, in all.
    pub change: u64,
    /// Ranks of those of its vertices that have no edge, in all.
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

/// Index of a word of the head.
macro_rules! head {
    ($field:ident) => {
        offset_of!(Head, $field) / 8
    };
}

/// The vertices of a checker, and where it counts.
#[derive(Clone, Copy)]
struct Class {
    /// Index of the words of its tally.
    tally: usize,
    /// Its first aggregator, how far it is from one to the next, and how many it has.
    first: u32,
    step: u32,
    count: NonZeroU32,
    /// How many aggregators there are in all, and how many marks come from the class's in an iteration.
    aggregators: NonZeroU32,
    marks: u64,
}

impl Class {
    /// That of the aggregator from which a mark came; `None` if the numbers in the board's head cannot be, or there is no such aggregator.
    #[inline(always)]
    fn of(board: &Board<'_>, aggregator: u32) -> Option<Class> {
        let aggregators = board.count(head!(aggregators), AGGREGATORS)?;
        let checkers = board.count(head!(checkers), CHECKERS)?;
        if aggregator >= aggregators.get() {
            return None;
        }
        let first = aggregator % checkers;
        let tally = head!(tallies) + size_of::<Tally>() / 8 * first as usize;
        let count = NonZeroU32::new((aggregators.get() - first).div_ceil(checkers.get()))?;
        let marks = board.word(head!(senders)).wrapping_mul(count.get().into());
        Some(Class { tally, first, step: checkers.get(), count, aggregators, marks })
    }

    /// Its vertex of that number, group after group. Some numbers below [`numbers`](Self::numbers) give a vertex that is not there.
    #[inline(always)]
    fn vertex(&self, number: u32) -> usize {
        let (group, k) = (number / GROUP, number % GROUP);
        let (turn, nth) = (group / self.count, group % self.count);
        let aggregator = self.first + self.step * nth;
        (GROUP * (aggregator + self.aggregators.get() * turn) + k) as usize
    }

    /// How many numbers to go through for all its vertices.
    #[inline(always)]
    fn numbers(&self, vertices: usize) -> u32 {
        let groups = (vertices as u32).div_ceil(GROUP);
        groups.div_ceil(self.aggregators.get()) * self.count.get() * GROUP
    }
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

    /// The word at an index, if it is 1 to `most`.
    #[inline(always)]
    fn count(&self, at: usize, most: u32) -> Option<NonZeroU32> {
        let count = u32::try_from(self.word(at)).ok().and_then(NonZeroU32::new)?;
        (count.get() <= most).then_some(count)
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

    /// Makes the new ranks of every `step`th vertex of a class from its `first` on. By how much they changed, and how much vertices
    /// without edges have.
    #[inline(always)]
    fn update(&self, class: &Class, base: u64, first: usize, step: usize) -> [u64; 2] {
        let damping = self.word(head!(damping));
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
        let (mut number, step, end) = (first as u32, step as u32, class.numbers(self.vertices));
        while number < end {
            // Of four, so that a thread waits for memory once.
            let [a, b, c, d] = [0, 1, 2, 3].map(|k| class.vertex(number + k * step));
            let found = [read(a), read(b), read(c), read(d)];
            set(a, found[0]);
            set(b, found[1]);
            set(c, found[2]);
            set(d, found[3]);
            number += 4 * step;
        }
        totals
    }

    /// All threads of the block: makes the new ranks of a class's vertices.
    #[inline(always)]
    fn iterate(&self, ctx: &BlockContext<'_>, class: &Class, base: u64) -> Iterated {
        let at = |offset: usize| class.tally + (offset_of!(Tally, last) + offset) / 8;
        let iterations = at(offset_of!(Iterated, iterations));
        let (change, dangling) =
            (at(offset_of!(Iterated, change)), at(offset_of!(Iterated, dangling)));
        let set = |word: usize, value: u64| {
            if ctx.thread() == 0 {
                self.words.set(word, value);
            }
        };
        let before = self.word(iterations);
        set(change, 0);
        set(dangling, 0);
        ctx.sync(); // all have read how many iterations there were
        set(iterations, before + 1);
        let totals = self.update(class, base, ctx.thread(), ctx.threads());
        self.words.add(change, totals[0]);
        self.words.add(dangling, totals[1]);
        ctx.sync();
        Iterated {
            iterations: before + 1,
            change: self.word(change),
            dangling: self.word(dangling),
        }
    }
}

ring_device::ring_kernel! {
    /// Cuts spans of edges into runs.
    pub struct RunSplitter {
        name: "run_splitter",
        ports: {
            /// Runs.
            RUNS: [Run; RUNS] by |run| run.sender,
        },
        uses_payload: true,
    }

    fn handle(ctx: &WarpContext, span: &Span, out: &mut Ports) {
        let Span { edges, board, base } = *span;
        let head = Board::new(ctx.view(&board));
        let senders = head.and_then(|head| head.count(head!(senders), RUNS));
        let (Some(senders), true) = (senders, edges.len() <= SPAN as usize) else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return;
        };
        let runs = match edges.len() as u32 {
            0 => senders.get(),
            n => n.div_ceil(RUN),
        };
        let all = edges.len();
        out.emit_each(RunSplitter::RUNS, runs, |k| {
            let (first, end) = ((RUN * k) as usize, (RUN * (k + 1)) as usize);
            let edges = edges.slice(first.min(all)..end.min(all)).unwrap_or(edges);
            Run { edges, board, base, sender: k, padding: 0 }
        });
    }
}

ring_device::ring_kernel! {
    /// Sends a contribution along each edge.
    pub struct ContributionSender {
        name: "contribution_sender",
        ports: {
            /// Contributions, and marks.
            CONTRIBUTIONS: [Contribution; RUN] by |contribution| contribution.target / GROUP,
        },
        uses_payload: true,
    }

    fn handle(ctx: &WarpContext, run: &Run, out: &mut Ports) {
        let (edges, board) = (ctx.view(&run.edges), Board::new(ctx.view(&run.board)));
        let all = edges.zip(board).and_then(|(edges, board)| {
            // A contribution for each edge, or a mark for each aggregator: only for these the head is read.
            let n = match edges.len() {
                0 => board.count(head!(aggregators), AGGREGATORS)?.get(),
                n => n as u32,
            };
            Some((edges, board, n))
        });
        let Some((edges, board, n)) = all else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return;
        };
        let is_mark = u32::from(edges.is_empty());
        out.emit_each(ContributionSender::CONTRIBUTIONS, n, |k| {
            let edge = edges.get(k as usize).unwrap_or(u64::MAX);
            let (source, target) = ((edge >> 32) as usize, edge as u32);
            Contribution {
                board: run.board,
                target: if is_mark == 0 { target } else { GROUP * k },
                is_mark,
                share: if is_mark == 0 { board.get(Row::Shares, source) } else { run.base },
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
            MARKS: [Mark; 1] by |mark| mark.aggregator,
        },
        uses_payload: true,
    }

    fn handle(ctx: &ThreadContext, contribution: &Contribution, out: &mut Ports) {
        let Contribution { board, target, is_mark, share } = *contribution;
        if is_mark != 0 {
            let aggregator = target / GROUP;
            out.emit(RankAggregator::MARKS, Mark { board, base: share, aggregator, padding: 0 });
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
    /// Counts marks. With the last one of an iteration it makes new ranks, and says by how much they changed.
    pub struct ConvergenceChecker {
        name: "convergence_checker",
        ports: {
            /// What each iteration has come to, for the vertices of one channel.
            ITERATED: [Iterated; 1],
        },
        uses_payload: true,
    }

    fn handle(ctx: &BlockContext, mark: &Mark, out: &mut Ports) {
        let board = Board::new(ctx.view(&mark.board));
        let class = board.and_then(|board| Class::of(&board, mark.aggregator));
        let (Some(board), Some(class)) = (board, class) else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return;
        };
        let arrived = board.word(class.tally) + 1;
        let is_last = arrived == class.marks;
        ctx.sync(); // all have read it
        if ctx.thread() == 0 {
            board.words.set(class.tally, if is_last { 0 } else { arrived });
        }
        if is_last {
            let iterated = board.iterate(ctx, &class, mark.base);
            out.emit(ConvergenceChecker::ITERATED, iterated);
        }
    }
}
