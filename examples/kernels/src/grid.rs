//! Kernels that all blocks of a launch run together on one message.

use bytemuck::{Pod, Zeroable};
use core::mem::offset_of;
use ring_device::{BufferRef, Message, Output};

/// What a grid is to do with the numbers below `n`, and where it goes astray, for tests of that.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Numbers {
    /// How many there are.
    pub n: u64,
    /// Barriers before anything else.
    pub barriers: u32,
    /// Number of an [`Astray`].
    pub astray: u32,
}

/// Which block of a grid does something else than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Astray {
    /// None.
    None = 0,
    /// Block 0 returns before a barrier that the others wait at.
    FirstMisses = 1,
    /// The last block does.
    LastMisses = 2,
    /// The last block waits at a barrier that the others do not reach.
    LastWaits = 3,
    /// A thread of block 0 panics.
    FirstPanics = 4,
    /// A thread of the last block panics.
    LastPanics = 5,
}

/// What a grid has found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Found {
    /// The sum of the numbers.
    pub sum: u64,
    /// The greatest one.
    pub greatest: i64,
    /// The sum of their halves, in floating point.
    pub halves: f64,
    /// How many numbers were some block's share.
    pub shared: u64,
    /// Blocks, and threads of each.
    pub blocks: u32,
    /// Threads of each of them.
    pub threads: u32,
}

ring_device::ring_kernel! {
    /// Adds up the numbers below `n`, by all threads of a grid.
    pub struct GridSum { name: "grid_sum", }

    fn handle(ctx: &GridContext, request: &Numbers, response: &Output<Found>) {
        let (last, astray) = (ctx.blocks() - 1, request.astray);
        for _ in 0..request.barriers {
            ctx.sync();
        }
        let is = |way: Astray| astray == way as u32;
        if is(Astray::FirstMisses) && ctx.block() == 0 || is(Astray::LastMisses) && ctx.block() == last {
            return;
        }
        if ctx.thread() == ctx.threads() / 2 {
            let panics = is(Astray::FirstPanics) && ctx.block() == 0
                || is(Astray::LastPanics) && ctx.block() == last;
            assert!(!panics, "a request that the handler cannot bear");
        }
        let (mut sum, mut greatest, mut halves) = (0u64, i64::MIN, 0.0);
        for i in ctx.each(request.n as usize) {
            sum = sum.wrapping_add(i as u64);
            greatest = greatest.max(i as i64);
            halves += i as f64 / 2.0;
        }
        let share = if ctx.thread() == 0 { ctx.share(request.n as usize).len() as u64 } else { 0 };
        let (sum, greatest) = (ctx.sum(sum), ctx.max(greatest));
        let (halves, shared) = (ctx.sum(halves), ctx.sum(share));
        if is(Astray::LastWaits) && ctx.block() == last {
            ctx.sync();
        }
        if ctx.index() == 0 {
            set(response, offset_of!(Found, sum), sum);
            set(response, offset_of!(Found, greatest), greatest as u64);
            set(response, offset_of!(Found, halves), halves.to_bits());
            set(response, offset_of!(Found, shared), shared);
            response.set(offset_of!(Found, blocks), 0, ctx.blocks() as u32);
            response.set(offset_of!(Found, threads), 0, ctx.threads() as u32);
        }
    }
}

/// What blocks are to leave in a buffer, an element each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Leave {
    /// Where.
    pub left: BufferRef<u32>,
    /// What.
    pub value: u32,
    /// How long each takes for it, in nanoseconds.
    pub nanoseconds: u32,
    /// Number of an [`Astray`].
    pub astray: u32,
    /// Whether they first wait until the host has written something to the first element, for twenty seconds at most.
    pub waits: u32,
}

ring_device::ring_kernel! {
    /// Answers with the sum of what blocks have left for the messages before, and then leaves something else: all blocks but the
    /// first do, behind the answer.
    pub struct LeftBehind {
        name: "left_behind",
        first_block_answers: true,
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &Leave, response: &Output<u64>) {
        let mut own = 0u64;
        if let Some(left) = ctx.read_view(&request.left) {
            for i in ctx.each(left.len()) {
                own += u64::from(left.get(i).unwrap_or(0));
            }
        }
        let sum = ctx.sum(own);
        if ctx.block() == 0 {
            if ctx.thread() == 0 {
                set(response, 0, sum);
            }
            return;
        }
        let began = ctx.now();
        let has_taken = |nanoseconds: u64| ctx.now().wrapping_sub(began) >= nanoseconds;
        while !has_taken(request.nanoseconds.into()) {}
        while request.waits != 0 && !has_taken(20_000_000_000) {
            // Each view sees what was written before.
            let first = ctx.read_view(&request.left).and_then(|left| left.get(0));
            if first.is_some_and(|first| first != 0) {
                break;
            }
        }
        let is_last = ctx.block() == ctx.blocks() - 1;
        if is_last && request.astray == Astray::LastWaits as u32 {
            ctx.sync();
        }
        let panics = is_last && request.astray == Astray::LastPanics as u32;
        assert!(!panics || ctx.thread() > 0, "a request that the handler cannot bear");
        if ctx.thread() == 0
            && let Some(left) = ctx.view(&request.left)
        {
            left.set(ctx.block(), request.value);
        }
    }
}

/// Rounds over so many words, which lie in the payload arena with as many behind them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Rounds {
    /// Words.
    pub words: u32,
    /// Rounds.
    pub rounds: u32,
}

ring_device::ring_kernel! {
    /// Replaces each word by the sum of itself and its neighbour, again and again: each round reads what other blocks have written
    /// in the round before. Answers the last round's sum, or zero if the arena has not so many words.
    pub struct Ripple {
        name: "ripple",
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &Rounds, response: &Output<u64>) {
        let n = u64::from(request.words);
        let halves = [ctx.payload().words::<u32>(0, n), ctx.payload().words::<u32>(4 * n, n)];
        let [Some(even), Some(odd)] = halves else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return; // in all blocks alike
        };
        let (mut from, mut to) = (even, odd);
        let mut sum = 0u64;
        for round in 0..request.rounds {
            for i in ctx.each(from.len()) {
                let (own, next) = (from.get(i), from.get((i + 1) % from.len()));
                if let (Some(own), Some(next)) = (own, next) {
                    let both = own.wrapping_add(next);
                    to.set(i, both);
                    if round + 1 == request.rounds {
                        sum += u64::from(both);
                    }
                }
            }
            ctx.sync();
            (from, to) = (to, from);
        }
        let sum = ctx.sum(sum);
        if ctx.thread() == 0 {
            set(response, 0, sum);
        }
    }
}

/// What the grids of several devices do together, and where they go astray, for tests of that.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Meeting {
    /// What the device brings to a sum.
    pub brings: u64,
    /// Barriers of all devices before anything else, each behind one of the device.
    pub barriers: u32,
    /// Number of an [`Astray`], in this device's grid.
    pub astray: u32,
}

/// What they have found.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
pub struct Met {
    /// The sum of what all devices bring.
    pub sum: u64,
    /// The greatest of it.
    pub greatest: u64,
    /// The blocks of all devices.
    pub blocks: u64,
    /// The number of the device.
    pub device: u32,
    /// How many there are.
    pub devices: u32,
}

ring_device::ring_kernel! {
    /// Adds up what several devices bring.
    pub struct Meetings { name: "meetings", }

    fn handle(ctx: &GridContext, request: &Meeting, response: &Output<Met>) {
        let is = |way: Astray, block: usize| request.astray == way as u32 && ctx.block() == block;
        let last = ctx.blocks() - 1;
        for _ in 0..request.barriers {
            ctx.sync();
            ctx.sync_devices();
        }
        if is(Astray::FirstMisses, 0) || is(Astray::LastMisses, last) {
            return;
        }
        if ctx.thread() == ctx.threads() / 2 {
            let panics = is(Astray::FirstPanics, 0) || is(Astray::LastPanics, last);
            assert!(!panics, "a request that the handler cannot bear");
        }
        if is(Astray::LastWaits, last) {
            ctx.sync(); // where the others meet other devices
        }
        let brings = if ctx.index() == 0 { request.brings } else { 0 };
        let sum = ctx.sum_devices(brings);
        let greatest = ctx.max_devices(brings);
        let blocks = ctx.sum_devices(u64::from(ctx.thread() == 0));
        if ctx.index() == 0 {
            set(response, offset_of!(Met, sum), sum);
            set(response, offset_of!(Met, greatest), greatest);
            set(response, offset_of!(Met, blocks), blocks);
            response.set(offset_of!(Met, device), 0, ctx.device() as u32);
            response.set(offset_of!(Met, devices), 0, ctx.devices() as u32);
        }
    }
}

/// Rounds in which each device passes words to the next one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Passes {
    /// The device's own words, and as many more, by turns.
    pub own: [BufferRef<u32>; 2],
    /// Those of the next device, lent to this one.
    pub next: [BufferRef<u32>; 2],
    /// Rounds.
    pub rounds: u64,
}

ring_device::ring_kernel! {
    /// Passes each word to the next device, by one more, again and again: each round reads what another device has written in the round
    /// before. Answers how many words there are; 0 if one of the devices does not see its words.
    pub struct Passing {
        name: "passing",
        uses_payload: true,
    }

    fn handle(ctx: &GridContext, request: &Passes, response: &Output<u64>) {
        let [own, next] = [request.own, request.next].map(|of| of.map(|of| ctx.view(&of)));
        let sees = own.iter().chain(&next).all(Option::is_some);
        let misses = ctx.max_devices(u32::from(!sees)) != 0;
        let ([Some(mut own), Some(mut other_own)], [Some(mut other_next), Some(mut next)], false) =
            (own, next, misses)
        else {
            if ctx.thread() == 0 {
                ctx.refuse();
            }
            return; // in all blocks of all devices alike
        };
        for _ in 0..request.rounds {
            for i in ctx.each(own.len()) {
                next.set(i, own.get(i).unwrap_or_default().wrapping_add(1));
            }
            ctx.sync_devices();
            (own, other_own) = (other_own, own);
            (next, other_next) = (other_next, next);
        }
        if ctx.thread() == 0 {
            set(response, 0, own.len() as u64);
        }
    }
}

/// Sets eight bytes of a response.
fn set<R: Message>(response: &Output<R>, offset: usize, value: u64) {
    response.set(offset, 0, value as u32);
    response.set(offset, 1, (value >> 32) as u32);
}
