//! A wave on a square membrane, by finite differences: many steps in one message.

use bytemuck::{Pod, Zeroable};
use core::ops::Range;
use ring_device::{BufferRef, GridContext, View};

/// Steps of a membrane of `side` x `side` points, whose edge is held: row by row, the displacement now and a step before.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Steps {
    /// The displacement now; behind the answer that after an even number of steps, or that a step before.
    pub now: BufferRef<f32>,
    /// The displacement a step before; behind the answer the other one.
    pub before: BufferRef<f32>,
    /// Points in a row, and rows: 3 at least.
    pub side: u32,
    /// Steps, in which `now` and `before` change places each time.
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

ring_device::ring_kernel! {
    /// Moves a membrane on by any number of steps, by all blocks of a grid. Each block has a run of rows, and reads those above and
    /// below it which other blocks have written in the step before.
    pub struct Wave {
        name: "wave",
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &Steps, response: &Output<Membrane>) {
        let side = request.side as usize;
        let fields = [ctx.view(&request.now), ctx.view(&request.before)];
        let fits = |field: &View<'_, f32>| side >= 3 && Some(field.len()) == side.checked_mul(side);
        let fields = match fields {
            [Some(now), Some(before)] if fits(&now) && fits(&before) => Some((now, before)),
            _ => None,
        };
        let is_missing = ctx.max(u32::from(fields.is_none())) != 0;
        let (Some((mut now, mut next)), false) = (fields, is_missing) else {
            if ctx.index() == 0 {
                ctx.refuse();
            }
            return; // in all blocks alike
        };
        let rows = ctx.share(side - 2);
        let rows = rows.start + 1..rows.end + 1;
        for _ in 0..request.steps {
            // What was before is replaced by what comes next, point by point.
            step(ctx, (now, next), (rows.clone(), side), request.courant);
            ctx.sync();
            (now, next) = (next, now);
        }
        let mut squares = 0.0;
        for row in rows {
            let mut column = ctx.thread();
            while column < side {
                let own = f64::from(now.get(row * side + column).unwrap_or(0.0));
                squares += own * own;
                column += ctx.threads();
            }
        }
        let squares = ctx.sum(squares);
        if ctx.index() == 0 {
            let bits = squares.to_bits();
            response.set(0, 0, bits as u32);
            response.set(0, 1, (bits >> 32) as u32);
            response.set(8, 0, 1u32);
        }
    }
}

/// A step of the points of some rows, by all threads of a block. A thread has four points side by side where rows are so many fours.
#[inline(always)]
fn step(
    ctx: &GridContext<'_>,
    (now, next): (View<'_, f32>, View<'_, f32>),
    (rows, side): (Range<usize>, usize),
    courant: f32,
) {
    let read = |i: usize| now.get(i).unwrap_or(0.0);
    let moved =
        |here: f32, before: f32, around: f32| 2.0 * here - before + courant * (around - 4.0 * here);
    // By 32 bits, for the division: a buffer has no more elements than that.
    let width = if side.is_multiple_of(4) { side / 4 } else { side - 2 } as u32;
    let mut k = ctx.thread() as u32;
    while k < rows.len() as u32 * width {
        let (row, column) = (rows.start + (k / width) as usize, (k % width) as usize);
        if side.is_multiple_of(4) {
            let at = row * side + 4 * column;
            let four = |at| now.get4(at).unwrap_or([0.0; 4]);
            let ([a, b, c, d], [e, f, g, h]) = (four(at - side), four(at + side));
            let [left, right] = [read(at - 1), read(at + 4)];
            let [p, q, r, s] = four(at);
            let [w, x, y, z] = next.get4(at).unwrap_or([0.0; 4]);
            if column > 0 {
                next.set(at, moved(p, w, a + e + left + q));
            }
            next.set(at + 1, moved(q, x, b + f + p + r));
            next.set(at + 2, moved(r, y, c + g + q + s));
            if column + 1 < side / 4 {
                next.set(at + 3, moved(s, z, d + h + r + right));
            }
        } else {
            let at = row * side + 1 + column;
            let around = read(at - side) + read(at + side) + read(at - 1) + read(at + 1);
            next.set(at, moved(read(at), next.get(at).unwrap_or(0.0), around));
        }
        k += ctx.threads() as u32;
    }
}
