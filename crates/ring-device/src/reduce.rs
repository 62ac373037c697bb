//! What the threads of a warp, and of a block, make together of what each of them brings. All of them call each of these, at one place of
//! the kernel.

use crate::block::cell::Cell;
use crate::block::{Cooperate, MOST_WARPS, Threads};
use crate::number::Number;
use crate::thread_block::ThreadBlock;

/// Words by which warps of a block tell each other.
pub(crate) type Kept = [Cell<u64>; MOST_WARPS];

/// A warp: the number that the thread of that lane brings, counted on around the warp.
#[inline(always)]
pub(crate) fn shuffle<T: Number>(threads: Threads, value: T, lane: u32) -> T {
    value.passed(|word| threads.shuffle32(word, lane & (Threads::WARP - 1)))
}

/// A warp: what each `count` threads side by side bring, taken together two by two, for all of them. `count` is a power of two, 32 at most.
#[inline(always)]
pub(crate) fn lanes<T: Number>(
    threads: Threads,
    mut value: T,
    count: u32,
    both: &impl Fn(T, T) -> T,
) -> T {
    let mut step = count / 2;
    while step > 0 {
        value = both(value, shuffle(threads, value, threads.lane() ^ step));
        step /= 2;
    }
    value
}

/// A warp: what its threads bring, taken together.
#[inline(always)]
pub(crate) fn warp<T: Number>(threads: Threads, value: T, both: &impl Fn(T, T) -> T) -> T {
    lanes(threads, value, Threads::WARP, both)
}

/// A warp: for each thread the sum of what those before it bring, and itself, if it is `INCLUSIVE`.
#[inline(always)]
pub(crate) fn warp_scan<T: Number, const INCLUSIVE: bool>(threads: Threads, value: T) -> T {
    let inclusive = inclusive_scan(threads, value);
    if INCLUSIVE { inclusive } else { behind(threads, inclusive) }
}

#[inline(always)]
fn inclusive_scan<T: Number>(threads: Threads, mut value: T) -> T {
    let mut step = 1;
    while step < Threads::WARP {
        let other = shuffle(threads, value, threads.lane().wrapping_sub(step));
        if threads.lane() >= step {
            value = other.plus(value);
        }
        step *= 2;
    }
    value
}

/// A warp: what the thread before brings, or zero. No sum is taken back: of floating-point numbers that would be another one.
#[inline(always)]
fn behind<T: Number>(threads: Threads, value: T) -> T {
    let before = shuffle(threads, value, threads.lane().wrapping_sub(1));
    if threads.is_lane_0() { T::ZERO } else { before }
}

/// The thread of a warp for which `tells` holds: keeps what the warp brings.
#[inline(always)]
pub(crate) fn keep<T: Number>(threads: Threads, kept: &Kept, value: T, tells: bool) {
    if tells && let Some(word) = kept.get(threads.warp() as usize) {
        word.set(value.to_word());
    }
}

/// A warp, behind a barrier of the block: what the first `n` warps have kept, taken together. There are no more warps than a warp
/// has threads on a GPU, and on a CPU there is one.
#[inline(always)]
pub(crate) fn warps<T: Number>(
    threads: Threads,
    kept: &Kept,
    n: u32,
    nothing: T,
    both: &impl Fn(T, T) -> T,
) -> T {
    // So many threads side by side take together what all `n` warps have kept; each such group of the warp does, so all threads have it.
    let count = n.next_power_of_two();
    lanes(threads, kept_by(kept, threads.lane() % count, n, nothing), count, both)
}

/// What warp `k` of the first `n` has kept, or `nothing`.
#[inline(always)]
fn kept_by<T: Number>(kept: &Kept, k: u32, n: u32, nothing: T) -> T {
    match kept.get(k as usize) {
        Some(word) if k < n => T::from_word(word.get()),
        _ => nothing,
    }
}

/// A block: what its threads bring, taken together, for all of them. A barrier.
#[inline(always)]
pub(crate) fn block<T: Number>(
    block: ThreadBlock<'_>,
    value: T,
    nothing: T,
    both: &impl Fn(T, T) -> T,
) -> T {
    let [kept, _] = &block.memory().grid.sums;
    let of_warp = warp(*block, value, both);
    keep(*block, kept, of_warp, block.is_lane_0());
    block.sync();
    let of_block = warps(*block, kept, block.warps(), nothing, both);
    block.sync(); // before another one is kept
    of_block
}

/// A block: for each thread the sum of what those before it bring, and itself, if it is `INCLUSIVE`. A barrier.
#[inline(always)]
pub(crate) fn block_scan<T: Number, const INCLUSIVE: bool>(block: ThreadBlock<'_>, value: T) -> T {
    let [kept, _] = &block.memory().grid.sums;
    let inclusive = inclusive_scan(*block, value);
    keep(*block, kept, inclusive, block.lane() == Threads::WARP - 1);
    block.sync();
    // The threads of each warp have what the warps before it bring.
    let before = kept_by(kept, block.lane(), block.warp(), T::ZERO);
    let before = warp(*block, before, &T::plus);
    block.sync(); // before another one is kept
    before.plus(if INCLUSIVE { inclusive } else { behind(*block, inclusive) })
}
