//! Round trips of sixteen kernels that are resident at once.

use super::latency::{timed, trip};
use crate::bench::context::{Context, ended};
use crate::bench::cores::hosts;
use crate::bench::report::{Found, Many};
use crate::bench::stats::Times;
use ring_host::kernels::Echo;
use ring_host::{KernelHandle, LaunchConfig};
use std::time::Duration;

/// How many at once.
pub const KERNELS: usize = 16;

/// Steps of [`many`].
pub const STEPS: u64 = 2;

/// Measures one alone, then all.
pub fn many(context: &Context<'_>) -> Many {
    context.steps.next("one kernel");
    let hosts = hosts(KERNELS, context.cores.count());
    let alone = at_once(context, 1, 1).map(|mut each| each.remove(0));
    context.steps.next(&format!("{KERNELS} kernels at once"));
    Many { hosts, alone, each: at_once(context, KERNELS, hosts) }
}

/// Times of so many kernels, dealt out to host threads, each of which sends to its kernels in turn.
fn at_once(context: &Context<'_>, kernels: usize, hosts: usize) -> Found<Vec<Times>> {
    let mut all: Vec<(KernelHandle<Echo>, Times)> = Vec::new();
    for _ in 0..kernels {
        all.push((context.active::<Echo>(LaunchConfig::default())?, Times::new()));
    }
    let shares = all.chunks_mut(kernels.div_ceil(hosts));
    context.cores.at_once(shares, |mine| rounds(context, mine))?;
    let end = |(kernel, times)| ended(kernel).map(|()| times);
    all.into_iter().map(end).collect()
}

/// A round trip of each kernel in turn, until each has made enough.
fn rounds(context: &Context<'_>, mine: &mut [(KernelHandle<Echo>, Times)]) -> Found<()> {
    let (samples, limit) = match context.settings.quick {
        true => (2_000, Duration::from_millis(500)),
        false => (20_000, Duration::from_secs(4)),
    };
    let mut longest = Times::new();
    timed((context.settings.warm_up / 4, samples), limit, &mut longest, |i| {
        let mut sum = Duration::ZERO;
        for (kernel, times) in &mut *mine {
            let time = trip(kernel, i)?;
            sum += time;
            if i >= context.settings.warm_up / 4 {
                times.record(time);
            }
        }
        Ok(sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;
    use crate::interrupt::Interrupt;

    #[test]
    fn each_of_several_kernels_is_measured() {
        example::with(Interrupt::never(), |context| {
            let each = at_once(context, 4, 2).unwrap();
            assert_eq!(each.len(), 4);
            assert!(each.iter().all(|times| times.count() > 0), "{each:?}");
        });
    }
}
