//! What became of each message and when: read from the trace rings of a kernel's channels.

pub(crate) mod clock;
#[cfg(feature = "perfetto")]
pub(crate) mod file;
mod join;
pub(crate) mod times;

use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use clock::{DeviceClock, Measured};
use join::Joined;
use ring_device::Kernel;
use std::sync::Arc;
use std::time::Instant;
use times::{DeviceTimes, MessageTimes};

/// Records that were overwritten before they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TraceLosses {
    /// Of senders.
    pub sent: u64,
    /// Of devices.
    pub handled: u64,
    /// Of receivers. Their messages are not told at all.
    pub received: u64,
}

/// What the channels of a kernel noted of their messages: by [`KernelHandle::trace`].
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// ring_device::ring_kernel! {
///     /// Squares a number.
///     pub struct Square { traced: true, }
///
///     fn handle(request: &u64) -> u64 {
///         request.wrapping_mul(*request)
///     }
/// }
/// let launch = LaunchConfig::default().trace(1024);
/// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Square>(launch)?;
/// let mut trace = kernel.trace().expect("it was asked for");
/// kernel.activate(second)?;
/// kernel.send(7, second)?;
/// assert_eq!(kernel.recv(second)?, 49);
/// kernel.terminate(second)?;
/// trace.read(|message| {
///     let device = message.device.unwrap();
///     println!("handled after {} ns, +- {}", device.began - message.accepted.unwrap(), device.error);
/// });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Trace {
    core: Arc<KernelCore>,
    channels: Vec<Joined>,
    clock: DeviceClock,
    /// A heartbeat and the ticks at it, by which ticks are measured.
    first_beat: Option<[u64; 2]>,
}

impl<K: Kernel> KernelHandle<K> {
    /// What its channels note of their messages, from the first that is still there on, if that was asked for
    /// ([`LaunchConfig::trace`](crate::LaunchConfig::trace)). Each such reader reads all of it.
    pub fn trace(&self) -> Option<Trace> {
        let core = self.core();
        let rings = |channel| {
            let traces = &core.device.traces;
            Some([
                *traces.sent(channel)?.ring(),
                core.device.region().trace(channel)?,
                *traces.received(channel)?.ring(),
            ])
        };
        let channels = 0..core.device.region().plan.channels;
        let channels =
            channels.map(|channel| Some(Joined::new(rings(channel)?))).collect::<Option<_>>()?;
        Some(Trace {
            core: Arc::clone(core),
            channels,
            clock: DeviceClock::of(core.device.ticks()),
            first_beat: None,
        })
    }
}

impl Trace {
    /// Shows `each` the messages that were received since the last call, channel after channel, in order. A message whose sender or device
    /// has not noted it yet comes with a later call, as do those behind it.
    ///
    /// It is to be called often enough: a ring of `records` records holds as many batches of messages, or as many messages where each
    /// goes by itself.
    pub fn read(&mut self, mut each: impl FnMut(MessageTimes)) {
        let Trace { core, channels, clock, first_beat } = self;
        let (device, start) = (&core.device, core.device.region().plan.start);
        let over = device.has_ended() || device.fault().is_some();
        let ticks = Measured::of(first_beat, core);
        for (channel, joined) in (0..).zip(channels) {
            joined.read(ticks, clock, over, |index, accepted, handled, received| {
                each(MessageTimes {
                    channel,
                    index: index.wrapping_sub(start),
                    accepted,
                    device: handled.map(|device| DeviceTimes {
                        first: device.first.wrapping_sub(start),
                        ..device
                    }),
                    received,
                });
            });
        }
    }

    /// Records that were overwritten before they were read.
    pub fn losses(&self) -> TraceLosses {
        self.channels.iter().fold(TraceLosses::default(), |all, one| {
            let [sent, handled, received] = one.lost();
            TraceLosses {
                sent: all.sent.saturating_add(sent),
                handled: all.handled.saturating_add(handled),
                received: all.received.saturating_add(received),
            }
        })
    }

    /// How often the clocks of host and device drifted apart faster than 1 in 1000, or a message's own times contradicted each
    /// other: the mapping then began anew.
    pub fn clock_resets(&self) -> u64 {
        self.clock.resets()
    }

    /// The zero of all times.
    pub fn epoch(&self) -> Instant {
        self.core.device.traces.epoch()
    }
}
