//! A kernel that is launched again when it is lost.

use super::handle::KernelHandle;
use super::launch::LaunchConfig;
use super::snapshot::Snapshot;
use crate::deadline::Deadline;
use crate::error::{DeviceFault, RestartError};
use crate::runtime::Runtime;
use crate::setters::setters;
use ring_device::{HasState, Kernel};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};

/// How often a [`Supervisor`] launches a kernel again, and what with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    most: u32,
    within: Duration,
    pause: Duration,
    from_zero: bool,
}

impl Default for RestartPolicy {
    /// Five times within a minute, at once, from the last snapshot.
    fn default() -> RestartPolicy {
        let (most, within) = (5, Duration::from_secs(60));
        RestartPolicy { most, within, pause: Duration::ZERO, from_zero: false }
    }
}

setters! { of RestartPolicy;
    /// So often within such a time, and then no more. 0 never launches it again.
    at_most(times: u32, within: Duration) => most = times, within = within;
    /// How long it waits before each launch.
    pause(before: Duration) => pause = before;
    /// The kernel begins with a state of zeros, in place of the last [snapshot](Supervisor::snapshot).
    from_zero() => from_zero = true;
}

/// A kernel with all that is needed to launch it again after a fault: with the state of its last snapshot, and with a report of
/// what that state does not know of.
///
/// It has no thread: whoever sees the fault, as an error of a send or receive, calls [`restart`](Self::restart).
/// Channels and clients of the lost launch end with its fault; those of the new one are to be taken anew.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, RecvTimeoutError, RestartPolicy, Runtime, Supervisor};
/// # use std::time::Duration;
/// ring_device::ring_kernel! {
///     /// Adds up, but for 13.
///     pub struct Sum;
///     fn handle(sum: &mut u64, request: &u64) -> u64 {
///         assert_ne!(*request, 13);
///         *sum = sum.wrapping_add(*request);
///         *sum
///     }
/// }
/// # let second = Duration::from_secs(1);
/// let host = Runtime::open(Device::Cpu)?;
/// let policy = RestartPolicy::default();
/// let mut sum = Supervisor::<Sum>::launch(&host, LaunchConfig::default(), policy, second)?;
/// sum.kernel()?.send(3, second)?;
/// sum.kernel()?.recv(second)?;
/// sum.snapshot(second)?;
/// for number in [4, 13, 5] {
///     sum.kernel()?.send(number, second)?;
/// }
/// assert_eq!(sum.kernel()?.recv(second)?, 7);
/// assert!(matches!(sum.kernel()?.recv(second), Err(RecvTimeoutError::Fault(_))));
///
/// let lost = sum.restart(second)?.channels[0].clone();
/// assert_eq!(lost.not_in_state(), 1..4); // 4, which was answered, 13 and 5
/// assert_eq!(lost.not_received(), 2..4);
/// sum.kernel()?.send(5, second)?;
/// assert_eq!(sum.kernel()?.recv(second)?, 8);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Supervisor<K: Kernel> {
    host: Runtime,
    launch: LaunchConfig,
    policy: RestartPolicy,
    kernel: Supervised<K>,
    kept: Option<Kept<K>>,
    /// When it was launched again, of those times that count.
    restarts: VecDeque<Instant>,
}

/// The kernel, as it is.
#[derive(Debug)]
enum Supervised<K: Kernel> {
    /// It was launched, and may be lost.
    Launched(KernelHandle<K>),
    /// It was lost, and is not launched: why, and what was lost.
    Down { why: RestartError, fault: DeviceFault, channels: Vec<ChannelLoss> },
}

/// The last snapshot.
#[derive(Debug)]
struct Kept<K: Kernel> {
    snapshot: Snapshot<K>,
    /// It is of the launch that there is now, and not of one before.
    of_this_launch: bool,
}

/// What a [`Supervisor`] has done about a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Restart {
    /// What had happened.
    pub fault: DeviceFault,
    /// What became of the messages of each channel.
    pub channels: Vec<ChannelLoss>,
    /// The device had been reset, and was opened anew.
    pub reopened: bool,
}

/// What became of the messages of a channel whose kernel was lost. They are counted from the launch that was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ChannelLoss {
    /// The channel.
    pub channel: u32,
    /// Messages that were sent.
    pub sent: u64,
    /// Messages whose answers were received.
    pub received: u64,
    /// Messages that the state knows of with which the kernel was launched again.
    pub in_state: u64,
}

impl ChannelLoss {
    /// Indices of the messages that the state does not know of. Those whose answers were received were handled, and what they changed is
    /// lost; the others may have been.
    pub fn not_in_state(&self) -> Range<u64> {
        self.in_state..self.sent
    }

    /// Indices of the messages whose answers were not received, and will not be.
    pub fn not_received(&self) -> Range<u64> {
        self.received..self.sent
    }
}

impl<K: Kernel> Supervisor<K> {
    /// Launches a kernel and activates it. A deadline that is a duration begins when it is launched, for which a driver may have to compile
    /// PTX first.
    ///
    /// # Errors
    /// When it cannot be launched or activated.
    pub fn launch(
        host: &Runtime,
        launch: LaunchConfig,
        policy: RestartPolicy,
        deadline: impl Into<Deadline>,
    ) -> Result<Supervisor<K>, RestartError> {
        Supervisor::begin(host, launch, policy, None, deadline)
    }

    /// The same with the state of a snapshot, as of a file that an earlier process saved.
    ///
    /// # Errors
    /// When it cannot be launched or activated, or the snapshot is of another number of channels.
    pub fn launch_from(
        host: &Runtime,
        launch: LaunchConfig,
        policy: RestartPolicy,
        snapshot: Snapshot<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<Supervisor<K>, RestartError> {
        let kept = Kept { snapshot, of_this_launch: false };
        Supervisor::begin(host, launch, policy, Some(kept), deadline)
    }

    fn begin(
        host: &Runtime,
        launch: LaunchConfig,
        policy: RestartPolicy,
        kept: Option<Kept<K>>,
        deadline: impl Into<Deadline>,
    ) -> Result<Supervisor<K>, RestartError> {
        let kernel = host.launch(launch.clone())?;
        let kernel = Supervised::Launched(ready(kernel, kept.as_ref(), deadline.into())?);
        let restarts = VecDeque::new();
        Ok(Supervisor { host: host.clone(), launch, policy, kernel, kept, restarts })
    }

    /// The kernel of the last launch.
    ///
    /// # Errors
    /// Why there is none, after a [`restart`](Self::restart) that failed.
    pub fn kernel(&mut self) -> Result<&mut KernelHandle<K>, RestartError> {
        match &mut self.kernel {
            Supervised::Launched(kernel) => Ok(kernel),
            Supervised::Down { why, .. } => Err(why.clone()),
        }
    }

    /// The kernel of the last launch, which from now on nobody launches again.
    ///
    /// # Errors
    /// As for [`kernel`](Self::kernel).
    pub fn into_kernel(self) -> Result<KernelHandle<K>, RestartError> {
        match self.kernel {
            Supervised::Launched(kernel) => Ok(kernel),
            Supervised::Down { why, .. } => Err(why),
        }
    }

    /// Launches the kernel again if it is lost, with the state of the last snapshot unless the policy says
    /// [otherwise](RestartPolicy::from_zero), activates it, and reports what was lost. Answers that were not received before are
    /// among that. Where the device does not take a launch, it is [recovered](Runtime::recover) first.
    ///
    /// # Errors
    /// When it is not lost, or was too often: then it stays as it is. Or when the device, the launch, the state or the activation
    /// fails; then this may be called again, which counts as another time.
    pub fn restart(&mut self, deadline: impl Into<Deadline>) -> Result<Restart, RestartError> {
        let deadline = deadline.into();
        let (fault, channels) = self.lost()?;
        let told = |error: &RestartError| {
            tracing::error!(kernel = K::NAME, %fault, %error, "not launched again");
        };
        self.count(&fault).inspect_err(told)?;
        // What the lost launch has of the device is given back before another one asks for it.
        self.kernel = Supervised::Down {
            why: RestartError::Lost(fault.clone()),
            fault: fault.clone(),
            channels: channels.clone(),
        };
        let (kernel, reopened) = self.launched_again(deadline).inspect_err(|error| {
            told(error);
            if let Supervised::Down { why, .. } = &mut self.kernel {
                *why = error.clone();
            }
        })?;
        self.kernel = Supervised::Launched(kernel);
        self.kept.iter_mut().for_each(|kept| kept.of_this_launch = false);
        tracing::warn!(kernel = K::NAME, %fault, restarts = self.restarts.len(), "launched again");
        Ok(Restart { fault, channels, reopened })
    }

    /// The fault, and what is lost by it.
    fn lost(&self) -> Result<(DeviceFault, Vec<ChannelLoss>), RestartError> {
        match &self.kernel {
            Supervised::Launched(kernel) => {
                let fault = kernel.core().check().err();
                let fault = fault.ok_or(RestartError::NotLost { kernel: K::NAME })?;
                let kept = self.kept.as_ref().filter(|kept| kept.of_this_launch);
                let kept = kept.filter(|_| !self.policy.from_zero);
                let device = &kernel.core().device;
                let loss = |channel| ChannelLoss {
                    channel,
                    sent: device.sends(channel).sent.get(),
                    received: device.received_since_launch(channel),
                    in_state: kept.and_then(|kept| kept.snapshot.handled(channel)).unwrap_or(0),
                };
                Ok((fault, (0..kernel.channels()).map(loss).collect()))
            }
            Supervised::Down { fault, channels, .. } => Ok((fault.clone(), channels.clone())),
        }
    }

    /// Counts another time, unless there were as many as are allowed.
    fn count(&mut self, fault: &DeviceFault) -> Result<(), RestartError> {
        let RestartPolicy { most, within, .. } = self.policy;
        let now = Instant::now();
        self.restarts.retain(|then| now.saturating_duration_since(*then) < within);
        if self.restarts.len() >= most as usize {
            let fault = fault.clone();
            return Err(RestartError::GaveUp { fault, restarts: most, within });
        }
        self.restarts.push_back(now);
        Ok(())
    }

    /// A new launch, and whether the device was opened anew for it.
    fn launched_again(
        &mut self,
        deadline: Deadline,
    ) -> Result<(KernelHandle<K>, bool), RestartError> {
        std::thread::sleep(
            deadline.left().map_or(self.policy.pause, |left| left.min(self.policy.pause)),
        );
        let (kernel, reopened) = match self.host.launch(self.launch.clone()) {
            Ok(kernel) => (kernel, false),
            Err(error) => {
                tracing::warn!(kernel = K::NAME, %error, "the device is recovered first");
                let reopened = self.host.recover(deadline)?.reopened;
                (self.host.launch(self.launch.clone())?, reopened)
            }
        };
        let kept = self.kept.as_ref().filter(|_| !self.policy.from_zero);
        Ok((ready(kernel, kept, deadline)?, reopened))
    }
}

impl<K: Kernel> Supervisor<K>
where
    K::Scope: HasState<K>,
{
    /// Takes a [snapshot](crate::SharedKernel::snapshot) and keeps it, in place of the last, for the next launch. It may be
    /// [saved](Snapshot::save), too.
    ///
    /// # Errors
    /// When there is no kernel, it is lost, or the deadline passes; the last snapshot is kept then.
    pub fn snapshot(
        &mut self,
        deadline: impl Into<Deadline>,
    ) -> Result<&Snapshot<K>, RestartError> {
        let snapshot = self.kernel()?.share().snapshot(deadline)?;
        Ok(&self.kept.insert(Kept { snapshot, of_this_launch: true }).snapshot)
    }
}

/// Gives a kernel its state and activates it.
fn ready<K: Kernel>(
    mut kernel: KernelHandle<K>,
    kept: Option<&Kept<K>>,
    deadline: Deadline,
) -> Result<KernelHandle<K>, RestartError> {
    if let Some(kept) = kept {
        kernel.restore(&kept.snapshot, deadline)?;
    }
    kernel.activate(deadline)?;
    Ok(kernel)
}
