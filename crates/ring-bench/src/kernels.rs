//! Ring kernels whose messages have the sizes that are measured. The 64-byte one is
//! [`ring_device::Echo`].

use bytemuck::{Pod, Zeroable};
use ring_device::{BufferRef, GridContext, Output, ring_kernel};

ring_kernel! {
    /// Answers 16 bytes, each word increased by one, by one thread.
    pub struct Echo16 {
        name: "echo_16",
        entry: "bench_echo_16",
    }

    fn handle(request: &[u64; 2]) -> [u64; 2] {
        request.map(|word| word.wrapping_add(1))
    }
}

macro_rules! echoes {
    ($($(#[$doc:meta])* $name:ident: $words:literal words, $text:literal, $entry:literal;)+) => {$(
        ring_kernel! {
            $(#[$doc])*
            pub struct $name {
                name: $text,
                entry: $entry,
            }

            fn handle(ctx: &WarpContext, request: &[u32; $words], response: &Output<[u32; $words]>) {
                // The compiler knows how many rounds these are, and needs no loop for a few.
                for round in 0..request.len().div_ceil(ctx.threads()) {
                    let i = round * ctx.threads() + ctx.thread();
                    if let Some(word) = request.get(i) {
                        response.set(0, i, word.wrapping_add(1));
                    }
                }
            }
        }
    )+};
}
echoes! {
    /// Answers 64 bytes as [`ring_device::Echo`] does, but by a warp: what a scope costs.
    Echo64Warp: 16 words, "echo_64_warp", "bench_echo_64_warp";
    /// Answers 256 bytes, each word increased by one, by a warp.
    Echo256: 64 words, "echo_256", "bench_echo_256";
    /// Answers 1024 bytes, each word increased by one, by a warp.
    Echo1024: 256 words, "echo_1024", "bench_echo_1024";
    /// Answers 4096 bytes, each word increased by one, by a warp.
    Echo4096: 1024 words, "echo_4096", "bench_echo_4096";
}

ring_kernel! {
    /// Answers 64 bytes as [`Echo64Warp`] does, but by the whole block.
    pub struct Echo64Block {
        name: "echo_64_block",
        entry: "bench_echo_64_block",
    }

    fn handle(ctx: &BlockContext, request: &[u32; 16], response: &Output<[u32; 16]>) {
        let mut i = ctx.thread();
        while let Some(word) = request.get(i) {
            response.set(0, i, word.wrapping_add(1));
            i += ctx.threads();
        }
    }
}

ring_kernel! {
    /// Answers 64 bytes by all blocks of a grid, behind as many barriers of it as the first word says, or, if the second word is not
    /// zero, behind as many sums, each of what the one before has come to: zero. No block reads memory that another one writes.
    pub struct Grid64 {
        name: "grid_64",
        entry: "bench_grid_64",
    }

    fn handle(ctx: &GridContext, request: &[u32; 16], response: &Output<[u32; 16]>) {
        let mut sum = 0u32;
        for _ in 0..request[0] {
            match request[1] {
                0 => ctx.sync(),
                _ => sum = ctx.sum(sum),
            }
        }
        increase(ctx, request, response, 1 + sum);
    }
}

ring_kernel! {
    /// Answers 64 bytes as [`Grid64`] does, behind as many barriers. Each block writes a word of the payload before each of them, and one
    /// before the answer: then there is something that the others, and the host, must see.
    pub struct Grid64Writes {
        name: "grid_64_writes",
        entry: "bench_grid_64_writes",
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &[u32; 16], response: &Output<[u32; 16]>) {
        let Some(words) = ctx.payload().words::<u32>(0, ctx.blocks() as u64) else { return };
        for round in 0..=request[0] {
            if ctx.thread() == 0 {
                words.set(ctx.block(), round);
            }
            if round < request[0] {
                ctx.sync();
            }
        }
        increase(ctx, request, response, 1);
    }
}

ring_kernel! {
    /// Answers 64 bytes by the grids of several devices, behind as many barriers of all of them as the first word says. No device reads
    /// memory that another one writes.
    pub struct Meet64 {
        name: "meet_64",
        entry: "bench_meet_64",
    }

    fn handle(ctx: &GridContext, request: &[u32; 16], response: &Output<[u32; 16]>) {
        for _ in 0..request[0] {
            ctx.sync_devices();
        }
        increase(ctx, request, response, 1);
    }
}

ring_kernel! {
    /// Answers 64 bytes as [`Meet64`] does, behind as many barriers. Each block writes a word of another device's before each of them, and
    /// one before the answer: words 4 to 7 are the reference of as many words as there are blocks.
    pub struct Meet64Writes {
        name: "meet_64_writes",
        entry: "bench_meet_64_writes",
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &[u32; 16], response: &Output<[u32; 16]>) {
        let reference: BufferRef<u32> = bytemuck::cast([request[4], request[5], request[6], request[7]]);
        let words = ctx.view(&reference);
        if ctx.max_devices(u32::from(words.is_none())) != 0 {
            return; // in all blocks of all devices alike: the answer is zeros
        }
        for round in 0..=request[0] {
            if ctx.thread() == 0 && let Some(words) = words {
                words.set(ctx.block(), round);
            }
            if round < request[0] {
                ctx.sync_devices();
            }
        }
        increase(ctx, request, response, 1);
    }
}

/// Answers each word increased by so much.
#[inline(always)]
fn increase(ctx: &GridContext<'_>, request: &[u32; 16], response: &Output<[u32; 16]>, by: u32) {
    let mut i = ctx.thread();
    while let Some(word) = request.get(i) {
        response.set(0, i, word.wrapping_add(by));
        i += ctx.threads();
    }
}

/// Words of a message for [`Digest`].
pub const DIGEST_WORDS: usize = 512;

ring_kernel! {
    /// Takes 4096 bytes and answers 16: the request's first word, and the sum of all its words. What a
    /// host needs to know that every byte arrived.
    pub struct Digest {
        name: "digest",
        entry: "bench_digest",
    }

    fn handle(ctx: &WarpContext, request: &[u64; DIGEST_WORDS], response: &Output<[u64; 2]>) {
        let (mut i, mut sum) = (ctx.thread(), 0u64);
        while let Some(word) = request.get(i) {
            sum = sum.wrapping_add(*word);
            i += ctx.threads();
        }
        let sum = ctx.sum(sum);
        if ctx.thread() == 0 {
            let [first, ..] = *request;
            let halves = |word: u64| [word as u32, (word >> 32) as u32];
            let ([a, b], [c, d]) = (halves(first), halves(sum));
            response.set(0, 0, a);
            response.set(0, 1, b);
            response.set(0, 2, c);
            response.set(0, 3, d);
        }
    }
}

impl Digest {
    /// The answer to a request.
    #[inline]
    pub fn answer(request: &[u64; DIGEST_WORDS]) -> [u64; 2] {
        let sum = request.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        [request[0], sum]
    }
}

/// Sums that [`Sum64`] keeps.
pub const KEPT_SUMS: usize = 4;

/// What a channel of [`Sum64`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Sums {
    /// Messages so far.
    pub messages: u64,
    /// The latest sums: that of `n` messages is number `n % KEPT_SUMS`.
    pub kept: [[u64; 8]; KEPT_SUMS],
}

ring_kernel! {
    /// Answers 64 bytes with the sum of each word over all messages so far, in order: each answer depends on all
    /// messages before.
    pub struct Sum64 {
        name: "sum_64",
        entry: "bench_sum_64",
    }

    fn handle(sums: &mut Sums, request: &[u64; 8]) -> [u64; 8] {
        sums.add(request)
    }
}

impl Sums {
    /// Adds a message; the sum with it.
    #[inline(always)]
    pub fn add(&mut self, request: &[u64; 8]) -> [u64; 8] {
        let place = |messages: u64| messages as usize % KEPT_SUMS;
        let before = self.kept[place(self.messages)];
        let sum = [0, 1, 2, 3, 4, 5, 6, 7].map(|k: usize| before[k].wrapping_add(request[k]));
        self.messages = self.messages.wrapping_add(1);
        self.kept[place(self.messages)] = sum;
        sum
    }
}

ring_kernel! {
    /// Passes 64 bytes on, each word increased by one: a kernel of a graph that emits one message for each.
    pub struct Pass64 {
        name: "pass_64",
        entry: "bench_pass_64",
        ports: {
            /// The messages.
            ON: [[u64; 8]; 1] by |message| message[0] as u32,
        },
    }

    fn handle(request: &[u64; 8], out: &mut Ports) {
        out.emit(Pass64::ON, request.map(|word| word.wrapping_add(1)));
    }
}

/// Messages that [`Times8`] makes of one.
pub const TIMES: u64 = 8;

ring_kernel! {
    /// Makes eight messages of 64 bytes of one: each word eight times as much, and as much more as the number of the
    /// message among them. What a word was is so told from any other, and the keys of the messages go round.
    pub struct Times8 {
        name: "times_8",
        entry: "bench_times_8",
        ports: {
            /// The messages.
            OUT: [[u64; 8]; 8] by |message| message[0] as u32,
        },
    }

    fn handle(request: &[u64; 8], out: &mut Ports) {
        for k in 0..TIMES {
            out.emit(Times8::OUT, request.map(|word| word.wrapping_mul(TIMES).wrapping_add(k)));
        }
    }
}

ring_kernel! {
    /// Takes 64 bytes whose words are equal, and tells of those that are not.
    pub struct Sink64 {
        name: "sink_64",
        entry: "bench_sink_64",
        ports: {
            /// The first word of each message that is wrong.
            WRONG: [u64; 1],
        },
    }

    fn handle(request: &[u64; 8], out: &mut Ports) {
        let [first, ..] = *request;
        if request.iter().fold(0, |differs, word| differs | (word ^ first)) != 0 {
            out.emit(Sink64::WRONG, first);
        }
    }
}
