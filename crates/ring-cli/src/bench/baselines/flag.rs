//! A flag there and a flag back, without payload: eight bytes, acquired and released.

use super::gpu::Entry;
use crate::bench::context::{Context, PAGE, wrong};
use crate::bench::report::Found;
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::Times;
use ring_bench::baselines::{Flags, STOP};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Looks between two looks at the clock.
const LOOKS: u32 = 4096;

/// Waits until the device has written `expected`.
#[inline]
pub fn wait(response: &AtomicU64, expected: u64, begun: Instant) -> Found<()> {
    let mut looks = 0u32;
    // SYNC: acquires the device's release of the response.
    while response.load(Ordering::Acquire) != expected {
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) && begun.elapsed() > TIMEOUT {
            let found = response.load(Ordering::Acquire);
            let why = format!("{found} came within {TIMEOUT:?}, where {expected} was expected");
            return Err(wrong(why));
        }
    }
    Ok(())
}

/// A round of round trips by a kernel launched for that, from the host's first processor, in that page
/// of the memory.
pub fn round(context: &Context<'_>, page: usize, times: &mut Times) -> Found<()> {
    let mut gpu = context.gpu()?;
    gpu.bind()?;
    gpu.clear((page + 1) * PAGE);
    let gpu = &*gpu;
    // SAFETY: zeros are flags; the device writes atomics.
    let (flags, address) = unsafe { gpu.shared::<Flags>(page * PAGE) };
    flags.limit.0.store(context.settings.kernel_limit().as_nanos() as u64, Ordering::Release);
    // SAFETY: flags that stay.
    unsafe { gpu.launch(Entry::Flag, 1, 1, address) }?;
    gpu.nudge();
    let done = context.timed(times, |i| {
        let begun = Instant::now();
        flags.request.0.store(i + 1, Ordering::Release); // SYNC: to the device's acquire
        wait(&flags.response.0, i + 1, begun)?;
        Ok(begun.elapsed())
    });
    flags.request.0.store(STOP, Ordering::Release);
    done.and(gpu.finish(context.settings.kernel_limit()))
}
