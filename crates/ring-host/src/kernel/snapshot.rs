//! What a kernel keeps, of all channels at one moment, on the host and in a file.

pub(crate) mod file;

use self::file::{Expected, States};
use super::core::KernelCore;
use super::handle::KernelHandle;
use super::shared::SharedKernel;
use super::state::StateOf;
use crate::deadline::Deadline;
use crate::error::{RestoreError, SnapshotFileError, StateError};
use ring_device::{HasState, Kernel};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::Ordering;

/// The states of all channels of a kernel as they were at one moment, each between two messages. By
/// [`SharedKernel::snapshot`]; [`KernelHandle::restore`] gives them to another launch.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, Snapshot};
/// # use std::time::Duration;
/// ring_device::ring_kernel! {
///     /// Adds up.
///     pub struct Sum;
///     fn handle(sum: &mut u64, request: &u64) -> u64 {
///         *sum = sum.wrapping_add(*request);
///         *sum
///     }
/// }
/// # let second = Duration::from_secs(1);
/// # let folder = std::env::temp_dir().join(format!("ring-snapshot-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("sum.snapshot");
/// let host = Runtime::open(Device::Cpu)?;
/// let mut kernel = host.launch::<Sum>(LaunchConfig::default())?;
/// kernel.activate(second)?;
/// kernel.send(3, second)?;
/// kernel.recv(second)?;
/// kernel.share().snapshot(second)?.save(&path, 1)?; // it is active still
/// # kernel.terminate(second)?;
///
/// // Later, perhaps by another process.
/// let mut kernel = host.launch::<Sum>(LaunchConfig::default())?;
/// let snapshot = Snapshot::load(&path, 1)?;
/// kernel.restore(&snapshot, second)?;
/// kernel.activate(second)?;
/// kernel.send(4, second)?;
/// assert_eq!((snapshot.handled(0), kernel.recv(second)?), (Some(1), 7));
/// # kernel.terminate(second)?;
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Snapshot<K: Kernel> {
    states: States,
    of: PhantomData<fn() -> K>,
}

impl<K: Kernel> std::fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let States { state_bytes, handled, .. } = &self.states;
        let mut shown = f.debug_struct("Snapshot");
        shown.field("kernel", &K::NAME).field("state_bytes", state_bytes);
        shown.field("handled", handled).finish()
    }
}

impl<K: Kernel> Clone for Snapshot<K> {
    fn clone(&self) -> Snapshot<K> {
        Snapshot { states: self.states.clone(), of: PhantomData }
    }
}

impl<K: Kernel> Snapshot<K> {
    /// How many channels it is of.
    pub fn channels(&self) -> u32 {
        self.states.handled.len() as u32
    }

    /// How many messages the channel had handled since the launch of which this is, so the index of the first message that
    /// its state does not know of. None if there is no such channel.
    pub fn handled(&self, channel: u32) -> Option<u64> {
        self.states.handled.get(channel as usize).copied()
    }

    /// Puts the snapshot into a file, of which another one gives way as a whole: whoever opens the path finds the old or the new one, also
    /// after the power has failed. `version` says what the state means, and is the caller's: it is to change with the state's type.
    ///
    /// # Errors
    /// When the file cannot be written, as on a full disk. What was at the path stays.
    pub fn save(&self, path: impl AsRef<Path>, version: u32) -> Result<(), SnapshotFileError> {
        self.states.save(path.as_ref(), K::NAME, version)
    }
}

impl<K: Kernel> Snapshot<K>
where
    K::Scope: HasState<K>,
{
    /// The state of a channel. None if there is no such channel.
    pub fn state(&self, channel: u32) -> Option<StateOf<K>> {
        self.states.of_channel(channel).map(bytemuck::pod_read_unaligned)
    }

    /// A snapshot from a file. No more of the file is read than a snapshot of this kernel may have.
    ///
    /// # Errors
    /// When it cannot be read, is none, is damaged, or is of another kernel, another version, another
    /// size of the state, or another ABI.
    pub fn load(path: impl AsRef<Path>, version: u32) -> Result<Snapshot<K>, SnapshotFileError> {
        let state_bytes = size_of::<StateOf<K>>();
        let expected = Expected { kernel: K::NAME, version, state_bytes };
        Ok(Snapshot { states: States::load(path.as_ref(), &expected)?, of: PhantomData })
    }
}

impl<K: Kernel> SharedKernel<K>
where
    K::Scope: HasState<K>,
{
    /// The states of all channels at one moment, each between two messages. An active kernel takes no message meanwhile, as with
    /// [`read_state`](Self::read_state). Allocates what it gives.
    ///
    /// # Errors
    /// When the kernel is lost, or the deadline passes: the kernel then goes on too.
    pub fn snapshot(&self, deadline: impl Into<Deadline>) -> Result<Snapshot<K>, StateError> {
        let states = self.core().states(size_of::<StateOf<K>>(), deadline.into())?;
        Ok(Snapshot { states, of: PhantomData })
    }
}

impl<K: Kernel> KernelHandle<K> {
    /// Gives the channels the states of a snapshot. The kernel must not be active, as for
    /// [`write_state`](Self::write_state). Its counters and indices begin anew with each launch all the same.
    ///
    /// # Errors
    /// When the kernel is active or lost, has another number of channels, or the deadline passes: then some channels
    /// may have their new state and others not.
    pub fn restore(
        &mut self,
        snapshot: &Snapshot<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), RestoreError> {
        let (found, own) = (snapshot.channels(), self.channels());
        if found != own {
            return Err(RestoreError::Channels { kernel: K::NAME, found, own });
        }
        Ok(self.core().set_states(&snapshot.states, deadline.into())?)
    }
}

impl KernelCore {
    /// The states of all channels, each of so many bytes, at one moment.
    pub fn states(&self, state_bytes: usize, deadline: Deadline) -> Result<States, StateError> {
        let channels = self.device.region().plan.channels;
        let mut states = States::zeroed(channels, state_bytes);
        self.between_messages(deadline, |copying| {
            for (channel, (handled, state)) in (0..).zip(states.each_mut()) {
                // What each has handled it wrote before it said that it had stopped.
                let status = &self.device.region().channel(channel).status;
                *handled = status.processed.load(Ordering::Relaxed);
                self.copy_out(copying, self.device.region().state(channel), state, deadline)?;
            }
            Ok(())
        })?;
        Ok(states)
    }

    /// Gives the channels their states, as many as it has.
    pub fn set_states(&self, states: &States, deadline: Deadline) -> Result<(), StateError> {
        (0..).zip(states.each()).try_for_each(|(channel, state)| {
            let (_turn, copying, at) = self.quiet_state(channel, deadline)?;
            Ok(self.copy_in(&copying, at, state, deadline)?)
        })
    }
}
