//! A launched kernel: its life cycle.

use crate::deadline::{Deadline, wait};
use crate::drive::device_kernel::exit;
use crate::drive::report::{Fallback, Selection};
use crate::error::{
    ChannelError, ControlError, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError,
};
use crate::kernel::channel::{Channel, messages};
use crate::kernel::client::{Client, ClientConfig};
use crate::kernel::core::KernelCore;
use crate::memory::plan::Direction;
use crate::mode::{Memory, Mode};
use ring_device::Kernel;
use ring_shared::layout::{Exit, State};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a dropped kernel is waited for before its memory is set aside.
const DROP_WAIT: Duration = Duration::from_millis(40);

/// A kernel on the device, with its channels. Dropping it terminates it.
#[derive(Debug)]
pub struct KernelHandle<K: Kernel> {
    core: Arc<KernelCore>,
    channels: Vec<Option<Channel<K>>>,
    selection: Selection,
    /// It is the runtime's own, to find something out.
    of_probe: bool,
    /// `terminate` has returned a summary.
    terminated: bool,
}

/// Counters of a kernel, summed over its channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Summary {
    /// Messages handled.
    pub processed: u64,
    /// Messages accepted by `send` that no handler has seen.
    pub unhandled: u64,
}

/// What a kernel says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Status {
    /// The state that the host asked for and the device acknowledged, or `Faulted`.
    #[cfg_attr(feature = "serde", serde(with = "crate::serialised::StateName"))]
    pub state: State,
    /// Messages handled, as of the last heartbeat or acknowledgement.
    pub processed: u64,
    /// The oldest heartbeat of a channel, in nanoseconds of the device's clock; renewed at most every
    /// 100 us.
    pub heartbeat: u64,
    /// Launches so far.
    pub launches: u64,
    /// Why the last launch that left did, or `Running` before one has. Of several channels the gravest.
    #[cfg_attr(feature = "serde", serde(with = "crate::serialised::ExitName"))]
    pub exit: Exit,
}

impl<K: Kernel> KernelHandle<K> {
    pub(crate) fn new(
        core: Arc<KernelCore>,
        selection: Selection,
        of_probe: bool,
    ) -> KernelHandle<K> {
        let channels =
            (0..core.device.region().plan.channels).map(|i| Some(Channel::new(&core, i))).collect();
        KernelHandle { core, channels, selection, of_probe, terminated: false }
    }

    pub(crate) fn core(&self) -> &Arc<KernelCore> {
        &self.core
    }

    /// Lets the kernel take messages. Returns when every channel has acknowledged. Waits first for a write of
    /// payload or state that timed out.
    pub fn activate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        self.check_commandable()?;
        self.core.writes_are_over(deadline)?;
        self.ask(State::Active, deadline)?;
        self.core.device.set_state(State::Active);
        Ok(())
    }

    /// Stops the kernel from taking messages; those not taken stay in the rings until it is
    /// activated again. Sends are refused from now on, answers can still be received.
    pub fn deactivate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        self.check_commandable()?;
        self.core.device.set_state(State::Inactive);
        self.ask(State::Inactive, deadline.into())
    }

    /// Makes the kernel leave the device, and waits until it has. A channel finishes the batch it is
    /// at; requests behind that are counted as unhandled. Answers can still be received. After a
    /// timeout it may be called again. A call on another thread that was sending may go on after this returns: what it
    /// sent is unhandled too, and in a later [`summary`](Self::summary).
    pub fn terminate(&mut self, deadline: impl Into<Deadline>) -> Result<Summary, ControlError> {
        let deadline = deadline.into();
        self.check_alive()?;
        self.core.device.set_state(State::Terminated);
        self.ask(State::Terminated, deadline)?;
        self.core.left_device(deadline)?;
        self.core.device.set_ended();
        self.terminated = true;
        let summary = self.summary();
        let Summary { processed, unhandled } = summary;
        match self.of_probe {
            true => tracing::debug!(kernel = K::NAME, processed, unhandled, "terminated"),
            false => tracing::info!(kernel = K::NAME, processed, unhandled, "terminated"),
        }
        Ok(summary)
    }

    /// As [`terminate`](Self::terminate), of a kernel that may have been terminated before, or be lost: of those channels that
    /// are not, each leaves.
    pub(crate) fn leave(&mut self, deadline: Deadline) -> Result<Summary, ControlError> {
        if self.terminated {
            return Ok(self.summary());
        }
        let left = self.terminate(deadline);
        let Err(ControlError::Fault(_)) = left else { return left };
        self.leave_lost(deadline)?;
        self.core.device.set_ended();
        self.terminated = true;
        Ok(self.summary())
    }

    /// One channel is lost, but the others still wait for commands.
    fn leave_lost(&self, deadline: Deadline) -> Result<(), ControlError> {
        self.core.device.publish_command(State::Terminated);
        self.core.left_device(deadline)
    }

    fn check_alive(&self) -> Result<(), ControlError> {
        match self.terminated {
            true => Err(ControlError::Terminated { kernel: K::NAME }),
            false => Ok(self.core.check()?),
        }
    }

    /// There is no way back from `terminate`, even if it timed out: a channel may have left.
    fn check_commandable(&self) -> Result<(), ControlError> {
        self.check_alive()?;
        match self.core.device.state() {
            State::Terminated => Err(ControlError::Terminated { kernel: K::NAME }),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, asked: State, deadline: Deadline) -> Result<(), ControlError> {
        self.check_alive()?;
        // Whoever has the turn learns of it, and gives it up.
        let terminates = asked == State::Terminated;
        let _turn = if terminates { None } else { Some(self.core.turn(asked, deadline)?) };
        self.core.command(asked, deadline)?;
        tracing::debug!(kernel = K::NAME, ?asked, waited = ?deadline.waited(), "acknowledged");
        Ok(())
    }

    /// Counters as of now; exact when the kernel is inactive or terminated and nobody sends.
    pub fn summary(&self) -> Summary {
        self.core.summary()
    }

    /// State and heartbeat, without a driver call while all is well.
    pub fn status(&self) -> Status {
        self.core.status()
    }

    /// How the kernel was chosen to be run when it was launched, and why so.
    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Mode and memory as they are now: not those chosen at first if an operation has failed since.
    pub fn runs_as(&self) -> (Mode, Memory) {
        self.core.drive.now()
    }

    /// Changes of mode or memory after operations failed, the first few.
    pub fn fallbacks(&self) -> impl Iterator<Item = Fallback> + use<K> {
        self.core.drive.fallbacks()
    }

    /// Launches so far: 1 for a persistent kernel, which may be launched again in staged memory.
    pub fn launches(&self) -> u64 {
        self.core.launches()
    }

    /// Whether no launch is on the device, as far as the host knows: so is an event-driven kernel
    /// when there was nothing to do for a while.
    pub fn is_resting(&self) -> bool {
        self.core.drive.is_off_device(&self.core.device)
    }

    /// Waits until no launch is on the device. A persistent kernel rests once terminated.
    pub fn rest(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        let look = || Ok(self.is_resting().then_some(()));
        let rests = wait(deadline, self.core.device.patience, look, || self.core.check())?;
        let (kernel, waited) = (K::NAME, deadline.waited());
        rests.ok_or(ControlError::Staying { kernel, waited })
    }

    /// Blocks that are launched: one for each channel, or those of a grid.
    pub fn blocks(&self) -> u32 {
        self.core.device.grid.blocks
    }

    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.core.device.grid.threads
    }

    /// Number of channels.
    pub fn channels(&self) -> u32 {
        self.core.device.region().plan.channels
    }

    /// How many messages may be inline and unread at once in a channel, each way
    /// ([`LaunchConfig::window`](crate::LaunchConfig::window)).
    pub fn window(&self) -> u32 {
        self.core.device.region().plan.lines
    }

    /// Bytes of pinned memory that this kernel occupies.
    pub fn pinned_bytes(&self) -> usize {
        self.core.device.region().pinned_bytes()
    }

    /// A channel, to send and receive on.
    pub fn channel(&mut self, channel: u32) -> Result<&mut Channel<K>, ChannelError> {
        self.slot(channel)?.as_mut().ok_or(ChannelError::Taken(channel))
    }

    /// Answers of channel 0 that are there and not received, as far as the host knows; none if it was taken out.
    pub(crate) fn answers_there(&self) -> u64 {
        let channel = self.channels.first().and_then(Option::as_ref);
        channel.map_or(0, |channel| channel.receiver.len() as u64)
    }

    /// Takes a channel out, to use it on another thread.
    pub fn take_channel(&mut self, channel: u32) -> Result<Channel<K>, ChannelError> {
        self.slot(channel)?.take().ok_or(ChannelError::Taken(channel))
    }

    /// Takes all channels out that are there, for calls from any number of threads. As
    /// [`client_with`](Self::client_with) with the defaults.
    ///
    /// # Errors
    /// When every channel was taken out before.
    pub fn client(&mut self) -> Result<Client<K>, ChannelError> {
        self.client_with(ClientConfig::default())
    }

    /// The same, as chosen. Take channels out before, to keep them for other use.
    ///
    /// # Errors
    /// When every channel was taken out before.
    pub fn client_with(&mut self, config: ClientConfig) -> Result<Client<K>, ChannelError> {
        Client::new(&self.core, self.channels.iter_mut().filter_map(Option::take), config)
    }

    fn slot(&mut self, channel: u32) -> Result<&mut Option<Channel<K>>, ChannelError> {
        self.core.check_channel(channel)?;
        Ok(&mut self.channels[channel as usize])
    }
}

impl KernelCore {
    /// See [`KernelHandle::summary`].
    pub fn summary(&self) -> Summary {
        let region = self.device.region();
        let pending = |channel: u32| {
            let ring = region.ring(channel, Direction::Requests);
            let pending = ring.told_from(self.device.taken(channel));
            u64::from(pending.min(region.plan.capacity)) // the device's word: bounded
        };
        let unhandled = (0..region.plan.channels).map(pending).sum();
        Summary { processed: self.device.processed(), unhandled }
    }

    /// See [`KernelHandle::status`].
    pub fn status(&self) -> Status {
        let blocks = || self.device.region().blocks();
        let beats = blocks().map(|block| block.status.heartbeat.load(Ordering::Relaxed));
        let exits = blocks().map(|block| exit(&block.status));
        Status {
            state: self.device.state(),
            processed: self.device.processed(),
            heartbeat: beats.min().unwrap_or(0),
            launches: self.launches(),
            exit: exits.max_by_key(|exit| *exit as u32).unwrap_or(Exit::Running),
        }
    }

    /// An error if there is no such channel.
    pub fn check_channel(&self, channel: u32) -> Result<(), ChannelError> {
        let channels = self.device.region().plan.channels;
        if channel < channels {
            Ok(())
        } else {
            Err(ChannelError::OutOfRange { channel, channels })
        }
    }
}

impl<K: Kernel> Drop for KernelHandle<K> {
    fn drop(&mut self) {
        if self.terminated {
            return;
        }
        let mut left = self.terminate(DROP_WAIT).map(drop);
        if let Err(ControlError::Fault(_)) = left {
            left = self.leave_lost(DROP_WAIT.into());
        }
        if let Err(error) = left {
            tracing::warn!(kernel = K::NAME, %error, "dropped kernel did not leave in time");
        }
    }
}

messages! {
    /// On channel 0. If it was taken out by [`take_channel`](KernelHandle::take_channel), each of these is a
    /// [`ChannelError::Taken`].
    impl KernelHandle, by |kernel| kernel.channel(0)
}
