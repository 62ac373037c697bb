//! Sixteen kernels at once.

use super::latency::{timed, trip};
use crate::bench::bed::{Bed, ended, wrong};
use crate::bench::report::{Found, Many};
use crate::bench::stats::Times;
use ring_host::kernels::Echo;
use ring_host::{KernelHandle, LaunchConfig};
use std::sync::Barrier;
use std::time::Duration;

/// How many at once.
pub const KERNELS: usize = 16;

/// Steps of [`many`].
pub const STEPS: u64 = 2;

/// Measures one alone, then all.
pub fn many(bed: &Bed<'_>) -> Many {
    bed.steps.next("one kernel");
    // Each host thread serves as many kernels as any other.
    let hosts = KERNELS.div_ceil(KERNELS.div_ceil(KERNELS.min(bed.cores.count())));
    let alone = at_once(bed, 1, 1).map(|mut each| each.remove(0));
    bed.steps.next(&format!("{KERNELS} kernels at once"));
    Many { hosts, alone, each: at_once(bed, KERNELS, hosts) }
}

/// Times of so many kernels, dealt out to host threads, each of which sends to its kernels in turn.
fn at_once(bed: &Bed<'_>, kernels: usize, hosts: usize) -> Found<Vec<Times>> {
    let mut all: Vec<(KernelHandle<Echo>, Times)> = Vec::new();
    for _ in 0..kernels {
        all.push((bed.active::<Echo>(LaunchConfig::default())?, Times::new()));
    }
    let start = Barrier::new(hosts);
    let drive = |k: usize, mine: &mut [(KernelHandle<Echo>, Times)]| -> Found<()> {
        bed.cores.pin(k);
        start.wait();
        rounds(bed, mine)
    };
    let done: Vec<Found<()>> = std::thread::scope(|scope| {
        let drive = &drive;
        let shares = all.chunks_mut(kernels.div_ceil(hosts)).enumerate();
        let threads: Vec<_> = shares.map(|(k, mine)| scope.spawn(move || drive(k, mine))).collect();
        let lost = |_| Err(wrong("the thread that drove a kernel panicked"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    });
    done.into_iter().collect::<Found<()>>()?;
    let end = |(kernel, times)| ended(kernel).map(|()| times);
    all.into_iter().map(end).collect()
}

/// A round trip of each kernel in turn, until each has made enough.
fn rounds(bed: &Bed<'_>, mine: &mut [(KernelHandle<Echo>, Times)]) -> Found<()> {
    let (samples, limit) = match bed.settings.quick {
        true => (2_000, Duration::from_millis(500)),
        false => (20_000, Duration::from_secs(4)),
    };
    let mut longest = Times::new();
    timed((bed.settings.warm_up / 4, samples), limit, &mut longest, |i| {
        let mut sum = Duration::ZERO;
        for (kernel, times) in &mut *mine {
            let time = trip(kernel, i)?;
            sum += time;
            if i >= bed.settings.warm_up / 4 {
                times.record(time);
            }
        }
        Ok(sum)
    })
}
