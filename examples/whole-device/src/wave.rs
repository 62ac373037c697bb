//! A wave on a square membrane, by finite differences: many steps in one message, several of them between two barriers of the grid.
//!
//! A barrier of a grid costs as much as a step of a small membrane, and behind it nothing is left in the cache of a multiprocessor.
//! So a warp takes `LEVELS` steps of a tile by itself. It reads as many points more around the tile, and computes some points that
//! a neighbour computes too. It goes down the rows once: as soon as row `y` is read, row `y - 1` can take its first step, row
//! `y - 2` its second one, and so on. Two rows of each step are enough for that, and they stay in registers.

use bytemuck::{Pod, Zeroable};
use core::array;
use core::mem::{offset_of, replace};
use ring_device::{BufferRef, Fours, GridContext, View};

/// Steps of a membrane of `side` x `side` points, whose edge is held: row by row, the displacement now and a step before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Steps {
    /// The displacement now: behind the answer that after the steps.
    pub now: BufferRef<f32>,
    /// The displacement a step before: behind the answer that before the last step.
    pub before: BufferRef<f32>,
    /// Two more buffers of that length, in which the kernel has both by turns. What is in them before does not matter.
    pub spare: [BufferRef<f32>; 2],
    /// Points in a row, and rows: 3 at least. A GPU is faster with multiples of 4.
    pub side: u32,
    /// Steps.
    pub steps: u32,
    /// The square of the Courant number, `(c dt / dx)^2`: stable up to a half.
    pub courant: f32,
    /// Not used: whole atoms.
    pub unused: u32,
}

/// What a membrane has after its steps.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Membrane {
    /// The sum of the squares of all displacements.
    pub squares: f64,
    /// 1 if all was done; 0 if a buffer was refused, or is not `side` times `side` long.
    pub done: u32,
    /// Not used.
    pub unused: u32,
}

/// Steps between two barriers.
const LEVELS: u32 = 4;

/// Points side by side that a warp reads. Of these `LEVELS` at each end belong to other tiles.
const WIDTH: u32 = 128;

/// Points side by side that a thread has. On the CPU device it is a warp by itself.
const COLUMNS: usize = if cfg!(target_arch = "nvptx64") { 4 } else { WIDTH as usize };

/// Rows that are read ahead of those that a warp computes.
const AHEAD: usize = 4;

/// Rows that a thread has as they were read. Two are in use by the first level: no register is read into before that is over, since
/// a thread that moves what it reads to another register waits for it.
const READ: usize = AHEAD + 2;

ring_device::ring_kernel! {
    /// Moves a membrane on by any number of steps, by all blocks of a grid. Each warp has a tile of it.
    pub struct Wave {
        name: "wave",
        threads: 256, // so that a thread may have 255 registers
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &Steps, response: &Output<Membrane>) {
        let side = request.side;
        let points = (side as usize).checked_mul(side as usize);
        let view = |buffer| ctx.view(buffer).filter(|view| side >= 3 && Some(view.len()) == points);
        let [spare_now, spare_before] = &request.spare;
        let views =
            (view(&request.now), view(&request.before), view(spare_now), view(spare_before));
        let fields = match views {
            (Some(now), Some(before), Some(a), Some(b)) => Some([[now, before], [a, b]]),
            _ => None,
        };
        let is_missing = ctx.max(u32::from(fields.is_none())) != 0;
        let (Some([[now, before], [a, b]]), false) = (fields, is_missing) else {
            if ctx.index() == 0 {
                ctx.refuse();
            }
            return; // in all blocks alike
        };
        // The same in all threads.
        let fours = (now.fours(), before.fours(), a.fours(), b.fours());
        if let (true, (Some(n), Some(m), Some(a), Some(b))) = (side.is_multiple_of(4), fours) {
            let (mut from, mut to, mut left) = ([n, m], [a, b], request.steps);
            // As many rounds there as back, if need be one of no steps, which copies.
            for _ in 0..request.steps.div_ceil(LEVELS).next_multiple_of(2) {
                let steps = left.min(LEVELS);
                left -= steps;
                round(ctx, (from, to), side, (steps, request.courant));
                ctx.sync();
                (from, to) = (to, from);
            }
        } else {
            step_by_step(ctx, [now, before], side as usize, (request.steps, request.courant));
        }
        let squares = ctx.each(now.len()).map(|i| f64::from(now.get(i).unwrap_or(0.0)));
        let squares = ctx.sum(squares.map(|x| x * x).sum::<f64>());
        if ctx.index() == 0 {
            let bits = squares.to_bits();
            response.set(offset_of!(Membrane, squares), 0, bits as u32);
            response.set(offset_of!(Membrane, squares), 1, (bits >> 32) as u32);
            response.set(offset_of!(Membrane, done), 0, 1u32);
        }
    }
}

/// All steps point by point, with a barrier behind each: for sides of any length.
#[inline(always)]
fn step_by_step(
    ctx: &GridContext<'_>,
    [mut now, mut next]: [View<'_, f32>; 2],
    side: usize,
    (steps, courant): (u32, f32),
) {
    let rows = ctx.share(side - 2);
    // By 32 bits, for the division: a buffer has no more elements than that.
    let (points, width) = ((rows.len() * (side - 2)) as u32, side as u32 - 2);
    let read = |field: View<'_, f32>, at: usize| field.get(at).unwrap_or(0.0);
    for _ in 0..steps {
        let mut k = ctx.thread() as u32;
        while k < points {
            let at = (rows.start + 1 + (k / width) as usize) * side + 1 + (k % width) as usize;
            let [left, right] = [read(now, at - 1), read(now, at + 1)];
            let around = (left + right) + (read(now, at - side) + read(now, at + side));
            // What was before is replaced by what comes next.
            next.set(at, moved(read(now, at), read(next, at), around, courant));
            k += ctx.threads() as u32;
        }
        ctx.sync();
        (now, next) = (next, now);
    }
    if !steps.is_multiple_of(2) {
        for i in ctx.each(now.len()) {
            let both = [read(now, i), read(next, i)];
            now.set(i, both[1]);
            next.set(i, both[0]);
        }
        ctx.sync();
    }
}

/// A point a step later.
#[inline(always)]
fn moved(here: f32, before: f32, around: f32, courant: f32) -> f32 {
    (2.0 - 4.0 * courant) * here - before + courant * around
}

/// Repeats a block with a constant in it: an array is in registers only where its indices are constants.
macro_rules! unrolled {
    ($k:ident in [$($n:literal)*] $body:block) => {$({
        const $k: usize = $n;
        $body
    })*};
}

/// Up to `LEVELS` steps of all points, by all warps of the grid: reads the displacement now and before, and writes both.
#[inline(always)]
fn round(
    ctx: &GridContext<'_>,
    (from, to): ([Fours<'_, f32>; 2], [Fours<'_, f32>; 2]),
    side: u32,
    (steps, courant): (u32, f32),
) {
    // Levels that take no step leave both at their places or exchanged.
    let to = if (LEVELS - steps).is_multiple_of(2) { to } else { [to[1], to[0]] };
    let strips = side.div_ceil(WIDTH - 2 * LEVELS);
    let warps = (ctx.size() / ctx.lanes()) as u32;
    let height = side.div_ceil((warps / strips).max(1));
    let tiles = side.div_ceil(height);
    let mut k = (ctx.index() / ctx.lanes()) as u32;
    // Tiles that are one below the other are side by side in a block, which has rows of both in its cache.
    while k < strips * tiles {
        let (strip, first) = (k / tiles, k % tiles * height);
        let tile = Tile { first, end: side.min(first + height), side, steps, courant };
        let of_strip = ctx.lane() as u32 * COLUMNS as u32;
        let column = (strip * (WIDTH - 2 * LEVELS) + of_strip).wrapping_sub(LEVELS);
        tile.sweep(&Lane { ctx, from, to, side, of_strip, column });
        k += warps;
    }
}

/// What a thread of a warp has: points side by side of each row.
trait Points<const W: usize> {
    /// The column of the first one, which may be left of the membrane.
    fn column(&self) -> u32;
    /// The displacement now and before of the points of a row; any numbers for those outside the membrane.
    fn read(&self, row: u32) -> [[f32; W]; 2];
    /// Of points of a row those left and right of them, which the neighbours have.
    fn beside(&self, points: &[f32; W]) -> [f32; 2];
    /// Writes what `read` would read, but points of other tiles.
    fn write(&self, row: u32, points: [[f32; W]; 2]);
}

/// Points in views.
struct Lane<'a> {
    ctx: &'a GridContext<'a>,
    from: [Fours<'a, f32>; 2],
    to: [Fours<'a, f32>; 2],
    side: u32,
    /// The column of the first point, from that of the warp on.
    of_strip: u32,
    column: u32,
}

impl Lane<'_> {
    /// Where four points of a row are, in fours of points.
    #[inline(always)]
    fn four(&self, row: u32, q: usize) -> u32 {
        let column = (self.column as i32 / 4) as u32;
        row.wrapping_mul(self.side / 4).wrapping_add(column).wrapping_add(q as u32)
    }
}

impl Points<COLUMNS> for Lane<'_> {
    #[inline(always)]
    fn column(&self) -> u32 {
        self.column
    }

    #[inline(always)]
    fn read(&self, row: u32) -> [[f32; COLUMNS]; 2] {
        let mut points = [[0.0; COLUMNS]; 2];
        for q in 0..COLUMNS / 4 {
            let at = self.four(row, q);
            for (field, points) in self.from.iter().zip(&mut points) {
                points[4 * q..][..4].copy_from_slice(&field.nearest(at));
            }
        }
        points
    }

    #[inline(always)]
    fn beside(&self, points: &[f32; COLUMNS]) -> [f32; 2] {
        let lane = self.ctx.lane();
        let left = self.ctx.shuffle(points[COLUMNS - 1], lane.wrapping_sub(1));
        [left, self.ctx.shuffle(points[0], lane + 1)]
    }

    #[inline(always)]
    fn write(&self, row: u32, points: [[f32; COLUMNS]; 2]) {
        for q in 0..COLUMNS / 4 {
            let of_strip = self.of_strip + 4 * q as u32;
            let column = self.column.wrapping_add(4 * q as u32);
            if !(LEVELS..WIDTH - LEVELS).contains(&of_strip) || column >= self.side {
                continue;
            }
            let at = self.four(row, q);
            for (to, points) in self.to.iter().zip(&points) {
                to.set(at, array::from_fn(|c| points[4 * q + c]));
            }
        }
    }
}

/// Rows `first..end` of a strip, and up to `LEVELS` steps.
struct Tile {
    first: u32,
    end: u32,
    side: u32,
    steps: u32,
    courant: f32,
}

/// What a thread keeps of the points after a number of steps: the two newest rows.
#[derive(Clone, Copy)]
struct Level<const W: usize> {
    above: [f32; W],
    own: [f32; W],
}

impl Tile {
    /// Takes the steps, by all threads of a warp.
    #[inline(always)]
    fn sweep<const W: usize>(&self, points: &impl Points<W>) {
        let side = self.side;
        // The edge is at fours of points that begin or end with it. What is computed outside it does not matter.
        let is_inner: [bool; W] = array::from_fn(|c| match (c % 4, points.column()) {
            (0, column) => column.wrapping_add(c as u32) != 0,
            (3, column) => column.wrapping_add(c as u32 + 1) != side,
            _ => true,
        });
        let moving: [[u32; 2]; LEVELS as usize] = array::from_fn(|k| self.moving(k as u32));
        let (start, count) = (self.first.wrapping_sub(LEVELS), self.end - self.first + 2 * LEVELS);
        let read = |t: u32| points.read(start.wrapping_add(t.min(count - 1)));
        let mut slots = [[[0.0; W]; 2]; READ];
        unrolled!(K in [0 1 2 3] {
            slots[K] = read(K as u32);
        });
        let mut levels = [Level { above: [0.0; W], own: [0.0; W] }; LEVELS as usize];
        let mut before = [0.0; W];
        let mut t = 0;
        while t < count {
            unrolled!(K in [0 1 2 3 4 5] {
                let beside = levels.map(|level| points.beside(&level.own));
                let mut row = start.wrapping_add(t + K as u32);
                // The newest row of a level, and of the level before the row above it.
                slots[(K + AHEAD) % READ] = read(t + (K + AHEAD) as u32);
                let [now, last] = slots[K];
                let mut pair = [now, replace(&mut before, last)];
                unrolled!(L in [0 1 2 3] {
                    row = row.wrapping_sub(1);
                    let Level { above, own } = levels[L];
                    let [first, count] = moving[L];
                    let moves = row.wrapping_sub(first) < count;
                    let next = levels[L].step(pair, beside[L], self.courant);
                    let next = array::from_fn(|i| {
                        if moves && is_inner[i] { next[i] } else { pair[1][i] }
                    });
                    levels[L] = Level { above: own, own: pair[0] };
                    pair = [next, above];
                });
                if (self.first..self.end).contains(&row) {
                    points.write(row, [pair[0], levels[LEVELS as usize - 1].above]);
                }
            });
            t += READ as u32;
        }
    }

    /// The rows that move from level `k` to the next one, as the first one and how many: none of the edge, and none behind the last
    /// step.
    #[inline(always)]
    fn moving(&self, k: u32) -> [u32; 2] {
        [1, if k < self.steps { self.side - 2 } else { 0 }]
    }
}

impl<const W: usize> Level<W> {
    /// The row `own` a step later, of the row below it and of itself a step before, and of the points left and right of it.
    #[inline(always)]
    fn step(
        &self,
        [below, before]: [[f32; W]; 2],
        [left, right]: [f32; 2],
        courant: f32,
    ) -> [f32; W] {
        array::from_fn(|i| {
            let left = if i == 0 { left } else { self.own[i - 1] };
            let right = if i + 1 == W { right } else { self.own[i + 1] };
            let around = (left + right) + (self.above[i] + below[i]);
            moved(self.own[i], before[i], around, courant)
        })
    }
}
