//! Kernels of every scope, with messages that fit the doorbell line and such that do not.

use bytemuck::{Pod, Zeroable};

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
