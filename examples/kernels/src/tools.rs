//! What handlers have at hand: functions of numbers, and what threads make together of what each of them brings.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::math;

/// A function and its arguments, 12 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Call {
    /// Which of [`FUNCTIONS`].
    pub function: u32,
    /// Its arguments, as many as it takes.
    pub x: f32,
    /// The second one.
    pub y: f32,
}

/// The names of the functions, by number.
pub const FUNCTIONS: [&str; 12] =
    ["sqrt", "rsqrt", "recip", "exp2", "exp", "tanh", "sigmoid", "ln", "log2", "sin", "cos", "fma"];

ring_device::ring_kernel! {
    /// Answers with what a function of numbers gives.
    pub struct Functions { name: "functions", }

    fn handle(call: &Call) -> f32 {
        let (x, y) = (call.x, call.y);
        match call.function {
            0 => math::sqrt(x),
            1 => math::rsqrt(x),
            2 => math::recip(x),
            3 => math::exp2(x),
            4 => math::exp(x),
            5 => math::tanh(x),
            6 => math::sigmoid(x),
            7 => math::ln(x),
            8 => math::log2(x),
            9 => math::sin(x),
            10 => math::cos(x),
            11 => math::fma(x, y, 1.0),
            _ => 0.0,
        }
    }
}

/// What threads have made together of their numbers, 64 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct Together {
    /// How many threads there were.
    pub threads: u32,
    /// The channel.
    pub channel: u32,
    /// The sum of their [numbers](number).
    pub sum: u32,
    /// The least of them, as signed numbers.
    pub min: i32,
    /// The greatest, likewise.
    pub max: i32,
    /// The sum, the least and the greatest of `1 / 16` of their low bytes: whole multiples of it, so that no order of additions
    /// matters.
    pub of_reals: [f32; 3],
    /// The sum of their squares, of 64 bits.
    pub squares: [u32; 2],
    /// The sum over all threads of one more than its index times what a scan gave it: of those up to it, and of those before it.
    pub scans: [u32; 2],
    /// The same of what the next thread brings, the first being next to the last; of a block 0.
    pub next: u32,
    /// A bit for each thread with an odd number; of a block 0.
    pub odd: u32,
    /// Whether all, and whether any, of them is odd, in bits 0 and 1; of a block 0.
    pub votes: u32,
    /// How many threads saw all of these sums otherwise than the first one did.
    pub differing: u32,
}

/// The number that a thread brings for a request.
pub fn number(seed: u32, thread: usize) -> u32 {
    let x = seed.wrapping_add((thread as u32).wrapping_mul(0x9e37_79b9));
    let x = (x ^ x >> 16).wrapping_mul(0x21f0_aaad);
    x ^ x >> 15
}

/// What threads of a warp and of a block make together: the two contexts have the same names for it.
macro_rules! together {
    ($ctx:ident, $seed:ident) => {{
        let (me, threads) = ($ctx.thread(), $ctx.threads());
        let own = number(*$seed, me);
        let real = (own & 0xff) as f32 / 16.0;
        let square = u64::from(own) * u64::from(own);
        let weighted = |value: u32| $ctx.sum((me as u32 + 1).wrapping_mul(value));
        let squares = $ctx.sum(square);
        let mut found = Together {
            threads: threads as u32,
            channel: $ctx.channel() as u32,
            sum: $ctx.sum(own),
            min: $ctx.min(own as i32),
            max: $ctx.max(own as i32),
            of_reals: [$ctx.sum(real), $ctx.min(real), $ctx.max(real)],
            squares: [squares as u32, (squares >> 32) as u32],
            scans: [weighted($ctx.inclusive_sum(own)), weighted($ctx.exclusive_sum(own))],
            ..Together::zeroed()
        };
        // Each thread has all of it, and the same.
        let with = |check: u32, word: u32| check.rotate_left(5) ^ word;
        let check = with(found.sum, with(found.min as u32, found.max as u32));
        let [sum, min, max] = found.of_reals;
        let check = with(with(with(check, sum.to_bits()), min.to_bits()), max.to_bits());
        let check = with(with(check, found.squares[0]), found.squares[1]);
        let check = with(with(check, found.scans[0]), found.scans[1]);
        found.differing = $ctx.sum(u32::from($ctx.min(check) != check || $ctx.max(check) != check));
        found
    }};
}

/// The first thread: answers.
fn answer(thread: usize, found: &Together, response: &ring_device::Output<Together>) {
    if thread == 0 {
        response.set_all(*found);
    }
}

ring_device::ring_kernel! {
    /// What the threads of a warp make together.
    pub struct WarpTools { name: "warp_tools", }

    fn handle(ctx: &WarpContext, seed: &u32, response: &Output<Together>) {
        let mut found = together!(ctx, seed);
        let own = number(*seed, ctx.thread());
        let next = ctx.shuffle(own, ctx.thread() + 1);
        found.next = ctx.sum((ctx.thread() as u32 + 1).wrapping_mul(next));
        let is_odd = own % 2 == 1;
        found.odd = ctx.ballot(is_odd);
        found.votes = u32::from(ctx.all(is_odd)) | u32::from(ctx.any(is_odd)) << 1;
        answer(ctx.thread(), &found, response);
    }
}

ring_device::ring_kernel! {
    /// What the threads of a block make together.
    pub struct BlockTools { name: "block_tools", }

    fn handle(ctx: &BlockContext, seed: &u32, response: &Output<Together>) {
        let found = together!(ctx, seed);
        answer(ctx.thread(), &found, response);
    }
}

const _: () = assert!(offset_of!(Together, differing) == 60);
