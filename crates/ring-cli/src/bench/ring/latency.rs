//! Round trips of single messages.

use crate::bench::context::{Context, ended, wrong};
use crate::bench::report::{Found, OnDevice, Stop};
use crate::bench::settings::TIMEOUT;
use crate::bench::stats::Times;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Histogram, Kernel, KernelHandle, LaunchConfig};
use std::time::{Duration, Instant};

/// Sends a request and waits for its answer; how long that took.
#[inline]
pub fn exchange<K: Kernel>(
    kernel: &mut KernelHandle<K>,
    request: K::Request,
) -> Found<(K::Response, Duration)> {
    let begun = Instant::now();
    kernel.send(request, TIMEOUT).map_err(wrong)?;
    let answer = kernel.recv(TIMEOUT).map_err(wrong)?;
    let time = begun.elapsed();
    Ok((answer, time))
}

/// Sends message `i` and waits for its answer; how long that took.
#[inline]
pub fn trip(kernel: &mut KernelHandle<Echo>, i: u64) -> Found<Duration> {
    let request = EchoMessage::from_seed(i);
    let (answer, time) = exchange(kernel, request)?;
    match answer == request.answer() {
        true => Ok(time),
        false => Err(wrong(format!("the answer to message {i} is wrong: {:x?}", answer.words))),
    }
}

/// Times `count` calls after `warm_up` that are not counted, but none begins after `limit`.
pub fn timed(
    (warm_up, count): (u64, u64),
    limit: Duration,
    times: &mut Times,
    mut call: impl FnMut(u64) -> Found<Duration>,
) -> Found<()> {
    let begun = Instant::now();
    for i in 0..warm_up + count {
        let time = call(i)?;
        if i >= warm_up {
            times.record(time);
        }
        // The clock is read between calls, now and then.
        if i % 64 == 63 && begun.elapsed() > limit {
            if times.count() == 0 {
                times.record(time);
            }
            return Ok(());
        }
    }
    Ok(())
}

/// A round of round trips by `echo` and the default launch, as [`round_of`] measures them.
pub fn round(context: &Context<'_>, pages: usize, times: &mut Times) -> Found<()> {
    round_of(context, pages, LaunchConfig::default(), times, trip)
}

/// A round of round trips by a kernel launched for that, from the host's first processor; so many
/// pages further on in the runtime's memory than the first kernel would be.
pub fn round_of<K: Kernel>(
    context: &Context<'_>,
    pages: usize,
    launch: LaunchConfig,
    times: &mut Times,
    mut trip: impl FnMut(&mut KernelHandle<K>, u64) -> Found<Duration> + Send,
) -> Found<()> {
    let spacer = context.spacer(pages)?;
    let mut kernel = context.resident::<K>(launch)?;
    context.timed(times, |i| trip(&mut kernel, i))?;
    ended(kernel)?;
    spacer.map_or(Ok(()), ended)
}

/// Round trips whose telemetry is read.
const DEVICE_TRIPS: u64 = 5_000;

/// Upper bounds, in powers of two, of how long messages wait on the device and how long their handler takes, by
/// the device's clock.
pub fn device_times(context: &Context<'_>) -> [OnDevice; 2] {
    let medians = || -> Found<[Found<f64>; 2]> {
        let mut kernel = context.active::<Echo>(LaunchConfig::default())?;
        for i in 0..DEVICE_TRIPS {
            trip(&mut kernel, i)?;
        }
        std::thread::sleep(Duration::from_millis(1)); // it is written now and then
        let telemetry = kernel.telemetry();
        let median = |times: &Histogram| match times.quantile(0.5) {
            Some(time) => Ok(time.as_secs_f64() * 1e6),
            None => Err(Stop::Refused("the device counted no message".to_owned())),
        };
        let both = [median(&telemetry.queueing), median(&telemetry.handler)];
        ended(kernel)?;
        Ok(both)
    };
    let [waited, took] = medians().unwrap_or_else(|stop| [Err(stop.clone()), Err(stop)]);
    let waits = "a message waits on the device, at most (median, power of 2)";
    let takes = "its handler takes, at most (median, power of 2)";
    [OnDevice { name: waits, us: waited }, OnDevice { name: takes, us: took }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_timed_is_bounded_by_count_and_by_time() {
        let mut times = Times::new();
        let call = |_| Ok(Duration::from_micros(1));
        timed((10, 100), Duration::from_secs(10), &mut times, call).unwrap();
        assert_eq!(times.count(), 100);
        let mut times = Times::new();
        timed((1 << 30, 5), Duration::ZERO, &mut times, call).unwrap();
        assert_eq!(times.count(), 1);
        let error = timed((0, 5), Duration::ZERO, &mut times, |_| Err(wrong("no")));
        assert_eq!(error, Err(wrong("no")));
    }
}
