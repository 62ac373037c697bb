//! What handlers have at hand: functions of numbers, what threads make together of what each of them brings, memory that they share, and
//! elements of buffers that many threads change at once.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::{BufferRef, math};

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

/// How many elements of each kind [`SharedTools`] has: not as many as any number of threads.
pub const SHARED: [usize; 3] = [1, 4099, 331];

/// What a block found in the memory that its threads share, 32 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct FoundShared {
    /// Messages before this one, as counted there.
    pub before: u32,
    /// The sum of [numbers](number) that other threads have written, one each, weighted by where they are.
    pub sum: u32,
    /// The same of those read by fours, and not weighted.
    pub of_fours: u32,
    /// The exclusive or of words of 64 bits, in halves.
    pub wide: [u32; 2],
    /// How many words were not zero at the first message.
    pub not_zero: u32,
    /// Accesses that went past the end, or were not at a multiple of 4, and were made nevertheless: a bit each.
    pub beyond: u32,
    /// Elements of what another kernel declares, by more than this one has.
    pub of_another: u32,
}

ring_device::ring_kernel! {
    /// Keeps a count, and passes numbers from thread to thread, in memory that the block's threads share.
    pub struct SharedTools {
        name: "shared_tools",
        shared: {
            /// Messages so far.
            COUNT: [u32; SHARED[0]],
            /// A number each.
            NUMBERS: [u32; SHARED[1]],
            /// Words of 64 bits.
            WIDE: [u64; SHARED[2]],
        },
    }

    fn handle(ctx: &BlockContext, seed: &u32, response: &Output<FoundShared>) {
        let count = ctx.shared(SharedTools::COUNT);
        let numbers = ctx.shared(SharedTools::NUMBERS);
        let wide = ctx.shared(SharedTools::WIDE);
        let before = count.get(0).unwrap_or(u32::MAX);
        let mut not_zero = 0;
        let mut i = ctx.thread();
        while i < numbers.len() {
            if before == 0 {
                not_zero += u32::from(numbers.get(i) != Some(0));
                not_zero += u32::from(i < wide.len() && wide.get(i) != Some(0));
            }
            numbers.set(i, number(*seed, i));
            wide.set(i, u64::from(number(*seed, i)) << 16);
            i += ctx.threads();
        }
        ctx.sync();
        // From the last to the first: mostly what another thread has written.
        let (mut sum, mut of_fours, mut words) = (0u32, 0u32, 0u64);
        let mut i = ctx.thread();
        while i < numbers.len() {
            let from = numbers.len() - 1 - i;
            let weighted = numbers.get(from).unwrap_or(0).wrapping_mul(from as u32 + 1);
            sum = sum.wrapping_add(weighted);
            words ^= wide.get(from).unwrap_or(0);
            if let Some(four) = numbers.get4(from) {
                of_fours = four.into_iter().fold(of_fours, u32::wrapping_add);
            }
            i += ctx.threads();
        }
        let (sum, of_fours, not_zero) = (ctx.sum(sum), ctx.sum(of_fours), ctx.sum(not_zero));
        // The greatest power of two below is what a block has of threads: the exclusive or is made bit by bit.
        let mut halves = [0u32; 2];
        let mut bit = 0;
        while bit < 32 {
            let ones = |half: u64| ctx.sum((half >> bit) as u32 & 1) & 1;
            halves[0] |= ones(words) << bit;
            halves[1] |= ones(words >> 32) << bit;
            bit += 1;
        }
        if ctx.thread() == 0 {
            let end = numbers.len();
            let made = [
                numbers.get(end).is_some(),
                numbers.set(end, 1),
                numbers.get4(end - 3).is_some(),
                numbers.set4(2, [1; 4]),
                numbers.get4(usize::MAX - 3).is_some(),
                wide.get(wide.len()).is_some(),
                wide.set(usize::MAX, 1),
            ];
            let beyond = made.iter().fold(0, |bits, made| bits << 1 | u32::from(*made));
            let of_another = ctx.shared(MostShared::ALL).len() as u32;
            response.set_all(FoundShared {
                before, sum, of_fours, wide: halves, not_zero, beyond, of_another,
            });
            count.set(0, before.wrapping_add(1));
        }
        ctx.sync(); // before the next message's threads write
    }
}

ring_device::ring_kernel! {
    /// Has as much memory for its threads as there can be: each request says which word is read, and what is written there.
    pub struct MostShared {
        name: "most_shared",
        shared: {
            /// All of it.
            ALL: [u32; ring_device::MAX_SHARED_BYTES / 4],
        },
    }

    fn handle(ctx: &BlockContext, request: &[u32; 2], response: &Output<u32>) {
        let [at, value] = *request;
        let all = ctx.shared(MostShared::ALL);
        if ctx.thread() == 0 {
            response.set_all(all.get(at as usize).unwrap_or(u32::MAX));
            all.set(at as usize, value);
        }
        ctx.sync();
    }
}

/// Where to count, 52 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
pub struct CountRequest {
    /// What the numbers that are counted are made of.
    pub seed: u32,
    /// Three elements: a sum, the greatest and the least; behind them as many as are to be counted up by comparing.
    pub of_words: BufferRef<u32>,
    /// The same of signed numbers.
    pub of_signed: BufferRef<i32>,
    /// A sum.
    pub of_reals: BufferRef<f32>,
}

ring_device::ring_kernel! {
    /// Each thread brings a number, and all change the same elements; answers how many threads there are, or 0 if there are no such
    /// elements.
    pub struct Count { name: "count", uses_payload: true, }

    fn handle(ctx: &BlockContext, request: &CountRequest, response: &Output<u32>) {
        let words = ctx.view(&request.of_words);
        let (signed, reals) = (ctx.view(&request.of_signed), ctx.view(&request.of_reals));
        let (Some(words), Some(signed), Some(reals)) = (words, signed, reals) else { return };
        let own = number(request.seed, ctx.thread());
        let mut all = words.fetch_add(0, own).is_some();
        all &= words.fetch_max(1, own).is_some() & words.fetch_min(2, own).is_some();
        all &= signed.fetch_add(0, own as i32).is_some();
        all &= signed.fetch_max(1, own as i32).is_some();
        all &= signed.fetch_min(2, own as i32).is_some();
        all &= reals.fetch_add(0, (own & 0xff) as f32).is_some();
        let past_end = words.fetch_add(words.len(), 1).is_some()
            | words.compare_exchange(usize::MAX, 0, 1).is_some();
        let mut counts = 3;
        while counts < words.len() {
            let mut old = 0;
            while let Some(Err(now)) = words.compare_exchange(counts, old, old.wrapping_add(1)) {
                old = now;
            }
            counts += 1;
        }
        if ctx.thread() == 0 && all && !past_end {
            response.set_all(ctx.threads() as u32);
        }
    }
}
