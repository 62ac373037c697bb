//! Rings with a head and a tail each, answered by a block a pair.

use crate::baselines::{HeadTail, Pair};
use crate::intrinsics::{
    block_dim, block_index, copy_plus_one, fence_system, global_timer, shared_words, sync_threads,
    thread_index,
};
use ring_shared::atomics::Ordering::{Acquire, Relaxed, Release};

/// Batches between two looks at the clock.
const BATCHES: u32 = 256;

/// Answers each message with its words, each increased by one: thread 0 learns how many there are,
/// all threads move them 16 bytes at a time. Launched with a block a pair.
///
/// # Safety
/// `of`, its pairs and its slots are valid until the kernel returns.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_head_tail(of: *const HeadTail) {
    // SAFETY: the caller's promise. What changes of it is atomic.
    let (of, block) = (unsafe { &*of }, u64::from(block_index()));
    let (capacity, most) = (of.capacity, of.most);
    // SAFETY: the caller's promise: as many pairs as blocks.
    let pair = unsafe { &*(of.pairs as usize as *const Pair).add(block as usize) };
    let requests = of.requests + block * capacity * 64;
    let responses = of.responses + block * capacity * 64;
    let [take, leave] = shared_words();
    let (thread, threads) = (u64::from(thread_index()), u64::from(block_dim()));
    let end = global_timer().saturating_add(of.limit);
    let (mut done, mut taken, mut batches) = (0u64, 0u64, 0u32);
    loop {
        if thread == 0 {
            // SYNC: acquires the host's release of the requests, for the whole block by the barrier.
            let there = pair.request_tail.0.load(Acquire);
            let mut n = there.wrapping_sub(done).min(most);
            if n > 0 && done + n - taken > capacity {
                // SYNC: acquires the host's release of the slots that it has read.
                taken = pair.response_head.0.load(Acquire);
                n = n.min(capacity.saturating_sub(done.wrapping_sub(taken)));
            }
            batches = batches.wrapping_add(1);
            let looks = n == 0 || batches.is_multiple_of(BATCHES);
            let over = looks && (global_timer() >= end || of.stop.0.load(Relaxed) != 0);
            take.store(n, Relaxed);
            leave.store(u64::from(over), Relaxed);
        }
        sync_threads();
        let (n, over) = (take.load(Relaxed), leave.load(Relaxed) != 0);
        sync_threads();
        if over {
            return;
        }
        if n == 0 {
            continue;
        }
        let (first, mask) = ((done & (capacity - 1)) * 4, capacity * 4 - 1);
        let mut atom = thread;
        while atom < n * 4 {
            let at = ((first + atom) & mask) * 16;
            // SAFETY: the mask keeps it in this pair's slots, which the host leaves alone until the
            // indices below tell it.
            unsafe { copy_plus_one(requests + at, responses + at) };
            atom += threads;
        }
        fence_system();
        sync_threads();
        done += n;
        if thread == 0 {
            // SYNC: both released to the host's acquires; the fences and the barrier before order
            // what the other threads wrote.
            pair.request_head.0.store(done, Release);
            pair.response_tail.0.store(done, Release);
        }
    }
}
