//! Kernels of one thread or two that answer without a ring.

use crate::baselines::{Between, Count, Flags, Line, STOP};
use crate::intrinsics::{block_index, global_timer, thread_index};
use ring_shared::atomics::Ordering::{Acquire, Relaxed, Release};

/// Polls between two looks at the clock: the clock is not what is measured.
const POLLS: u32 = 1024;

/// Copies each new request into the response, until that is [`STOP`] or the time is over. Launched
/// with one thread.
///
/// # Safety
/// `flags` is valid until the kernel returns.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_flag(flags: *const Flags) {
    // SAFETY: the caller's promise; it holds atomics only.
    let flags = unsafe { &*flags };
    let end = global_timer().saturating_add(flags.limit.0.load(Relaxed));
    let (mut last, mut polls) = (0, 0u32);
    loop {
        // SYNC: acquires the host's release of the request.
        let request = flags.request.0.load(Acquire);
        if request != last {
            last = request;
            // SYNC: released to the host's acquire.
            flags.response.0.store(request, Release);
        }
        polls = polls.wrapping_add(1);
        if request == STOP || (polls.is_multiple_of(POLLS) && global_timer() >= end) {
            return;
        }
    }
}

/// Reads the request and answers it with one more. Launched with one thread for each answer.
///
/// # Safety
/// `flags` is valid until the kernel returns.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_once(flags: *const Flags) {
    // SAFETY: the caller's promise; it holds atomics only.
    let flags = unsafe { &*flags };
    // Relaxed: the launch orders it behind the host's store, and the answer depends on it.
    let request = flags.request.0.load(Relaxed);
    flags.response.0.store(request.wrapping_add(1), Relaxed);
}

/// Answers without reading the request: with how often it was launched. Launched with one thread.
///
/// # Safety
/// `count` and its flags are valid until the kernel returns, and nothing else touches the count.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_count(count: *mut Count) {
    // SAFETY: the caller's promise; launches of it follow each other.
    let count = unsafe { &mut *count };
    count.launches = count.launches.wrapping_add(1);
    // SAFETY: the caller's promise; it holds atomics only.
    let flags = unsafe { &*(count.flags as usize as *const Flags) };
    flags.response.0.store(count.launches, Relaxed);
}

/// Adds one to each of the eight words at `words`, in device memory. Launched with 32 threads.
///
/// # Safety
/// Eight words that nothing else touches until the kernel returns.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_add(words: *mut u64) {
    let i = thread_index();
    if i < 8 {
        // SAFETY: one of the eight words, which no other thread touches.
        unsafe {
            let at = words.add(i as usize);
            *at = (*at).wrapping_add(1);
        }
    }
}

/// Two blocks answer each other through device memory, `trips` times or until the time is over.
/// Launched with two blocks of one thread.
///
/// # Safety
/// `between` and its lines, which hold 0, are valid until the kernel returns.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_between(between: *const Between) {
    // SAFETY: the caller's promise; what the kernel writes of it is atomic.
    let (between, block) = (unsafe { &*between }, block_index());
    let lines = between.lines as usize as *const Line;
    // SAFETY: the caller's two lines.
    let (mine, other) =
        unsafe { (&*lines.add(block as usize & 1), &*lines.add(1 ^ block as usize & 1)) };
    let begun = global_timer();
    let end = begun.saturating_add(between.limit);
    let mut trip = 0;
    'trips: while trip < between.trips {
        trip += 1;
        if block == 0 {
            mine.0.store(trip, Release); // SYNC: to the other block's acquire below
        }
        let mut polls = 0u32;
        while other.0.load(Acquire) < trip {
            polls = polls.wrapping_add(1);
            if polls.is_multiple_of(POLLS) && global_timer() >= end {
                trip -= 1;
                break 'trips;
            }
        }
        if block != 0 {
            mine.0.store(trip, Release); // SYNC: to the first block's acquire above
        }
    }
    if block == 0 {
        between.took.0.store(global_timer().wrapping_sub(begun), Relaxed);
        between.made.0.store(trip, Release); // SYNC: the host reads it after the kernel has ended
    }
}
