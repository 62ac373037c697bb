//! Kernels of every scope, with messages that fit the doorbell line and such that do not.

use bytemuck::{Pod, Zeroable};
use ring_device::{BufferRef, GridContext, View};

ring_device::ring_kernel! {
    /// By a thread: a small request, a small answer.
    pub struct Small;

    fn handle(ctx: &ThreadContext, request: &[u32; 4]) -> [u32; 4] {
        if request[0] == 0 {
            ctx.refuse();
        }
        request.map(|word| word.wrapping_add(1))
    }
}

ring_device::ring_kernel! {
    /// By a thread: a request that fits the doorbell line, an answer that does not.
    pub struct Wider;

    fn handle(request: &[u32; 3]) -> [u32; 33] {
        core::array::from_fn(|k| request[k % 3])
    }
}

ring_device::ring_kernel! {
    /// By a thread: a request that does not fit the doorbell line.
    pub struct Narrower;

    fn handle(request: &[u64; 16]) -> u64 {
        request.iter().fold(0, |sum: u64, word| sum.wrapping_add(*word))
    }
}

ring_device::ring_kernel! {
    /// By a warp: a request and an answer that fit the doorbell line.
    pub struct ByWarp;

    fn handle(ctx: &WarpContext, request: &[u32; 21], response: &Output<[u32; 21]>) {
        let mut i = ctx.thread();
        while let Some(word) = request.get(i) {
            response.set(0, i, word.wrapping_add(1));
            i += ctx.threads();
        }
    }
}

ring_device::ring_kernel! {
    /// By a warp: the largest request there may be.
    pub struct Largest;

    fn handle(ctx: &WarpContext, request: &[u64; 1024], response: &Output<[u32; 5]>) {
        if ctx.thread() == 0 {
            // Where it may write, and where it may not.
            let at = request[0] as usize;
            response.set(at, request[1] as usize, 1u32);
            response.set(at % 24, 0, request[1023] as u32);
        }
    }
}

/// What [`Counter`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Counts {
    /// Messages.
    pub seen: u64,
    /// Their sum.
    pub sum: u64,
}

ring_device::ring_kernel! {
    /// In order, with a state; reads and writes the payload where the request says.
    pub struct Counter { uses_payload: true, }

    fn handle(ctx: &ThreadContext, counts: &mut Counts, request: &[u64; 2]) -> Counts {
        counts.seen = counts.seen.wrapping_add(1);
        counts.sum = counts.sum.wrapping_add(request[0]);
        let [offset, count] = *request;
        match ctx.payload().words::<u32>(offset, count) {
            Some(words) => {
                assert_eq!(words.len(), count as usize);
                let (last, behind) = (words.len().wrapping_sub(1), words.len());
                if let Some(word) = words.get(last) {
                    assert!(words.set(0, word.wrapping_add(1)));
                    assert!(words.get(0).is_some_and(|first| words.set(last, first)));
                }
                assert!(!words.set(behind, 1) && words.get(behind).is_none(), "behind the words");
            }
            None => ctx.refuse(),
        }
        *counts
    }
}

ring_device::ring_kernel! {
    /// In order, without a state.
    pub struct Stateless;

    fn handle(_: &mut (), request: &u64) -> u64 {
        request.wrapping_mul(*request)
    }
}

ring_device::ring_kernel! {
    /// By the whole block, with answers larger than requests.
    pub struct ByBlock;

    fn handle(ctx: &BlockContext, request: &u32, response: &Output<[u32; 40]>) {
        let mut i = ctx.thread();
        while i < 40 {
            response.set(0, i, request.wrapping_add(i as u32));
            i += ctx.threads();
        }
    }
}

/// Reads and writes elements that a request names, and tries what is behind them. `each` has the calling thread's indices.
fn touch(view: &View<'_, u32>, length: usize, each: impl Iterator<Item = usize>) -> u32 {
    assert_eq!(view.len(), length);
    let mut sum = 0u32;
    for i in each {
        let word = view.get(i).expect("an element");
        sum = sum.wrapping_add(word);
        assert!(view.set(i, word.wrapping_add(1)));
        if let Some(four) = view.get4(i) {
            assert!(i + 4 <= length && view.set4(i, four), "four elements");
        }
    }
    for i in [length, length + 1, 1 << 30, 1 << 61, 1 << 62, usize::MAX / 4, usize::MAX] {
        assert!(view.get(i).is_none() && !view.set(i, 7), "behind the elements");
        assert!(view.get4(i).is_none() && !view.set4(i, [7; 4]), "behind the elements");
    }
    if let Some(fours) = view.fours() {
        let last = length as u32 / 4 - 1;
        let four = fours.nearest(u32::MAX);
        assert!(fours.set(last, four) && !fours.set(last + 1, four) && !fours.set(u32::MAX, four));
        sum = sum.wrapping_add(four[3]);
    }
    sum
}

/// What all blocks of a grid do with the elements: whether there are some, and their sum.
fn by_grid(ctx: &GridContext<'_>, what: &BufferRef<u32>) -> [u32; 2] {
    let words = ctx.view(what);
    let longs = what.cast::<u64>().and_then(|longs| ctx.view(&longs));
    // A lie may have come between the blocks.
    let missing = [words.is_none(), longs.is_none()].map(|is| ctx.max(u32::from(is)) > 0);
    let (Some(words), [false, _]) = (words, missing) else {
        if ctx.index() == 0 {
            ctx.refuse();
        }
        return [0; 2];
    };
    let sum = ctx.sum(touch(&words, what.len(), ctx.each(words.len())));
    let mut count = 1;
    if let (Some(longs), [_, false]) = (longs, missing) {
        assert_eq!(2 * longs.len(), words.len());
        assert!(
            ctx.each(longs.len()).all(|i| longs.add(i, u64::MAX)) && !longs.add(longs.len(), 1)
        );
        assert!(longs.get(longs.len()).is_none());
        count += longs.len() as u32;
    }
    assert_eq!(ctx.sum(count), count * ctx.blocks() as u32);
    [1, sum]
}

ring_device::ring_kernel! {
    /// By all blocks of a grid: a reference to a buffer.
    pub struct ByGrid { uses_payload: true, }

    fn handle(ctx: &GridContext, request: &BufferRef<u32>, response: &Output<[u32; 2]>) {
        let found = by_grid(ctx, request);
        response.set(0, 0, found[0]);
        response.set(0, 1, found[1]);
    }
}

/// A reference, and what makes the message long.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Long {
    /// The reference.
    pub what: BufferRef<u32>,
    /// The rest.
    pub rest: [u32; 101],
}

ring_device::ring_kernel! {
    /// By all blocks of a grid: a request of more atoms than a warp has threads, an answer that does not fit the doorbell line.
    pub struct ByGridLong { uses_payload: true, }

    fn handle(ctx: &GridContext, request: &Long, response: &Output<[u32; 40]>) {
        let found = by_grid(ctx, &request.what);
        let of_rest = request.rest.iter().fold(0, |sum: u32, word| sum.wrapping_add(*word));
        assert_eq!(ctx.sum(of_rest), of_rest.wrapping_mul(ctx.blocks() as u32), "each block has it");
        for i in 0..40 {
            response.set(0, i, found[i % 2]);
        }
    }
}

ring_device::ring_kernel! {
    /// By a thread: a reference to a buffer, by which it reads, writes and adds.
    pub struct ByReference { uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u32>) -> [u32; 2] {
        let longs = request.cast::<u64>();
        let adder = longs.and_then(|longs| ctx.adder(&longs));
        if let Some(adder) = adder {
            assert!((0..adder.len()).all(|i| adder.add(i, 1)));
            assert!(!adder.add(adder.len(), 1) && !adder.add(usize::MAX, 1));
        }
        match ctx.view(request) {
            Some(view) => [1, touch(&view, request.len(), 0..view.len())],
            None => {
                ctx.refuse();
                [u32::from(adder.is_some()) << 1, 0]
            }
        }
    }
}
