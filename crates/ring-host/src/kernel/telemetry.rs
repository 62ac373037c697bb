//! What a kernel's channels count on both sides, and how long messages took on the device.

use crate::deadline::{Deadline, Patience, wait};
use crate::drive::device_kernel::DeviceKernel;
use crate::error::{ChannelError, DeviceFault};
use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use ring_device::Kernel;
use ring_shared::atomics::{AtomicU64, Ordering};
use ring_shared::layout::BUCKETS;
use std::time::Duration;

/// How long fresh counters are waited for where they are copied.
const FRESH_WAIT: Duration = Duration::from_millis(5);

/// Counts of messages by how long they took, in powers of two.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Histogram {
    /// Bucket `k` counts messages of `2^k..2^(k + 1)` ticks; the first also those of none, the last
    /// all that took longer.
    pub buckets: [u64; BUCKETS],
    /// Nanoseconds a tick.
    pub nanoseconds_per_tick: f64,
}

impl Histogram {
    /// All messages counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Upper end of the bucket below or in which that part of all messages lies; 0.5 is the median.
    /// `None` without messages.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let rank = (self.count() as f64 * part.clamp(0.0, 1.0)).ceil().max(1.0) as u64;
        let mut seen = 0u64;
        let at = self.buckets.iter().position(|n| {
            seen = seen.saturating_add(*n);
            seen >= rank
        })?;
        Some(self.upper_end(at))
    }

    /// The time of all messages together, as far as it is known: each counts with the middle of its bucket, which is at most half
    /// more than it took and at most a quarter less; one in the last bucket may have taken longer.
    pub fn sum(&self) -> Duration {
        let ticks =
            self.buckets.iter().zip(0..).map(|(n, k)| *n as f64 * 1.5 * f64::from(k).exp2());
        self.in_time(ticks.sum())
    }

    /// Upper end of bucket `k`.
    pub fn upper_end(&self, k: usize) -> Duration {
        self.in_time((1u64 << (k.min(BUCKETS - 1) + 1)) as f64)
    }

    fn in_time(&self, ticks: f64) -> Duration {
        let seconds = ticks * self.nanoseconds_per_tick * 1e-9;
        let beyond = if seconds > 0.0 { Duration::MAX } else { Duration::ZERO };
        Duration::try_from_secs_f64(seconds).unwrap_or(beyond)
    }
}

/// What a channel counts, or several channels together. What the device counts it writes at most every 100 us.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Telemetry {
    /// Requests that the host has sent.
    pub sent: u64,
    /// Of those, how many went through slots; the others were inline.
    pub in_slots: u64,
    /// How often a sender found no room; those until it sends something count as one.
    pub stalls: u64,
    /// Responses that the host has received.
    pub received: u64,
    /// Messages handled.
    pub processed: u64,
    /// Messages that the handler refused, and commands that were not understood.
    pub refused: u64,
    /// Indices that could not be.
    pub errors: u64,
    /// Requests in the rings, as far as the device has looked: of those that are inline it sees the next.
    pub depth: u64,
    /// The oldest heartbeat of a channel, in nanoseconds of the device's clock.
    pub heartbeat: u64,
    /// Launches that every channel has left.
    pub launches: u64,
    /// How long handlers ran.
    pub handler: Histogram,
    /// How long messages waited before they were handled, at most: from the last look that did not
    /// show them.
    pub queueing: Histogram,
}

impl Telemetry {
    fn of(kernel: &DeviceKernel, channel: u32) -> Telemetry {
        let (block, rate) = (kernel.region().channel(channel), kernel.nanoseconds_per_tick());
        let sends = kernel.sends(channel);
        let read = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let histogram = |buckets: &[AtomicU64; BUCKETS]| Histogram {
            buckets: std::array::from_fn(|k| read(&buckets[k])),
            nanoseconds_per_tick: rate,
        };
        let status = &block.status;
        Telemetry {
            sent: sends.sent.get(),
            in_slots: sends.in_slots.get(),
            stalls: sends.stalls.get(),
            received: kernel.received_since_launch(channel),
            processed: read(&status.processed),
            refused: read(&status.refused),
            errors: read(&status.errors),
            depth: read(&status.depth),
            heartbeat: read(&status.heartbeat),
            launches: read(&status.launches_left),
            handler: histogram(&block.times.handler),
            queueing: histogram(&block.times.queueing),
        }
    }

    /// Of all channels of a kernel, which has one at least.
    pub(crate) fn together(channels: impl IntoIterator<Item = Telemetry>) -> Telemetry {
        channels.into_iter().reduce(Telemetry::add).expect("a kernel has a channel")
    }

    fn add(self, other: Telemetry) -> Telemetry {
        let sum = |a: Histogram, b: Histogram| Histogram {
            buckets: std::array::from_fn(|k| a.buckets[k].wrapping_add(b.buckets[k])),
            ..a
        };
        Telemetry {
            sent: self.sent.wrapping_add(other.sent),
            in_slots: self.in_slots.wrapping_add(other.in_slots),
            stalls: self.stalls.wrapping_add(other.stalls),
            received: self.received.wrapping_add(other.received),
            processed: self.processed.wrapping_add(other.processed),
            refused: self.refused.wrapping_add(other.refused),
            errors: self.errors.wrapping_add(other.errors),
            depth: self.depth.wrapping_add(other.depth),
            heartbeat: self.heartbeat.min(other.heartbeat),
            launches: self.launches.min(other.launches),
            handler: sum(self.handler, other.handler),
            queueing: sum(self.queueing, other.queueing),
        }
    }
}

impl<K: Kernel> KernelHandle<K> {
    /// What all channels count, together. In mapped memory it is read in place; else what the device counts is as it came back
    /// last, after a wait of up to 5 ms for it to come back anew.
    pub fn telemetry(&self) -> Telemetry {
        self.core().telemetry()
    }

    /// What one channel counts; see [`telemetry`](Self::telemetry).
    pub fn channel_telemetry(&self, channel: u32) -> Result<Telemetry, ChannelError> {
        self.core().channel_telemetry(channel)
    }
}

impl KernelCore {
    /// See [`KernelHandle::telemetry`].
    pub fn telemetry(&self) -> Telemetry {
        Telemetry::together(self.telemetry_of_channels())
    }

    /// What each of its channels counts.
    pub fn telemetry_of_channels(&self) -> impl Iterator<Item = Telemetry> + '_ {
        self.refresh();
        (0..self.device.region().plan.channels).map(|channel| Telemetry::of(&self.device, channel))
    }

    /// See [`KernelHandle::channel_telemetry`].
    pub fn channel_telemetry(&self, channel: u32) -> Result<Telemetry, ChannelError> {
        self.check_channel(channel)?;
        self.refresh();
        Ok(Telemetry::of(&self.device, channel))
    }

    fn refresh(&self) {
        let mut until = None;
        let look = || {
            until = self.drive.refresh(&self.device, until)?;
            Ok::<_, DeviceFault>(until.is_none().then_some(()))
        };
        // What came back last has to do if nothing comes in time.
        let _ = wait(Deadline::from(FRESH_WAIT), Patience::Yield, look, || Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_ends() {
        let mut h = Histogram { buckets: [0; BUCKETS], nanoseconds_per_tick: 0.5 };
        assert_eq!(h.quantile(0.5), None);
        (h.buckets[0], h.buckets[10]) = (99, 1);
        assert_eq!(h.count(), 100);
        assert_eq!(h.quantile(0.5), Some(Duration::from_nanos(1)));
        assert_eq!(h.quantile(0.99), Some(Duration::from_nanos(1)));
        assert_eq!(h.quantile(1.0), Some(Duration::from_nanos(1024)));
        assert_eq!(h.quantile(7.0), h.quantile(1.0));
        assert_eq!(h.sum(), Duration::from_nanos(842), "99 of 0.75 ns, and one of 768");
        h.buckets = [u64::MAX; BUCKETS];
        assert!(h.quantile(0.5).is_some());
        assert_eq!(h.sum(), Duration::MAX);
    }
}
