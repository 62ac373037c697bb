//! What any thread may ask of a kernel, beside the one that has its handle.

use super::core::KernelCore;
use super::handle::{KernelHandle, Status, Summary};
use super::state::StateOf;
use super::telemetry::Telemetry;
use crate::deadline::Deadline;
use crate::error::{ChannelError, PayloadError, StateError};
use bytemuck::Zeroable;
use ring_device::{HasState, Kernel, Word};
use std::marker::PhantomData;
use std::sync::Arc;

/// A kernel as any number of threads see it: its counters, its payload arena, and its state, also while it is active. By
/// [`KernelHandle::share`]; clones are of the same kernel. Commands are the handle's.
///
/// It may outlive the kernel, whose memory is given back after the last of them.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Echo>(LaunchConfig::default())?;
/// kernel.activate(second)?;
/// let shared = kernel.share();
/// let watching = std::thread::spawn(move || {
///     while shared.telemetry().processed < 10 {
///         std::thread::yield_now();
///     }
/// });
/// for i in 0..10 {
///     kernel.send(EchoMessage::from_seed(i), second)?;
///     kernel.recv(second)?;
/// }
/// watching.join().unwrap();
/// # kernel.terminate(second)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedKernel<K: Kernel> {
    core: Arc<KernelCore>,
    of: PhantomData<fn() -> K>,
}

impl<K: Kernel> Clone for SharedKernel<K> {
    fn clone(&self) -> SharedKernel<K> {
        SharedKernel { core: Arc::clone(&self.core), of: PhantomData }
    }
}

impl<K: Kernel> KernelHandle<K> {
    /// The same kernel for any number of threads: all but its commands and channels.
    pub fn share(&self) -> SharedKernel<K> {
        SharedKernel { core: Arc::clone(self.core()), of: PhantomData }
    }
}

impl<K: Kernel> SharedKernel<K> {
    pub(super) fn core(&self) -> &Arc<KernelCore> {
        &self.core
    }

    /// See [`KernelHandle::telemetry`].
    pub fn telemetry(&self) -> Telemetry {
        self.core.telemetry()
    }

    /// See [`KernelHandle::channel_telemetry`].
    ///
    /// # Errors
    /// When there is no such channel.
    pub fn channel_telemetry(&self, channel: u32) -> Result<Telemetry, ChannelError> {
        self.core.channel_telemetry(channel)
    }

    /// See [`KernelHandle::status`].
    pub fn status(&self) -> Status {
        self.core.status()
    }

    /// See [`KernelHandle::summary`].
    pub fn summary(&self) -> Summary {
        self.core.summary()
    }

    /// See [`KernelHandle::write_payload`]. Where the arena is in device memory, threads copy one after the other.
    ///
    /// # Errors
    /// As there.
    pub fn write_payload<T: Word>(
        &self,
        offset: u64,
        words: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        self.core.write_payload(offset, words, deadline)
    }

    /// See [`KernelHandle::read_payload`].
    ///
    /// # Errors
    /// As there.
    pub fn read_payload<T: Word>(
        &self,
        offset: u64,
        words: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        self.core.read_payload(offset, words, deadline)
    }
}

impl<K: Kernel> SharedKernel<K>
where
    K::Scope: HasState<K>,
{
    /// The state of a channel as it is between two messages. An active kernel takes no message while it is copied, on any channel, and
    /// then goes on; what is sent meanwhile waits in the rings, and no send is refused for it. One that is not active is read as
    /// [`KernelHandle::read_state`] does.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime};
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
    /// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Sum>(LaunchConfig::default())?;
    /// kernel.activate(second)?;
    /// kernel.send(3, second)?;
    /// kernel.recv(second)?;
    /// assert_eq!(kernel.share().read_state(0, second)?, 3);
    /// kernel.send(4, second)?; // it is active still
    /// assert_eq!(kernel.recv(second)?, 7);
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such channel, the kernel is lost, or the deadline passes: the kernel then goes on too.
    pub fn read_state(
        &self,
        channel: u32,
        deadline: impl Into<Deadline>,
    ) -> Result<StateOf<K>, StateError> {
        let mut state = StateOf::<K>::zeroed();
        self.read_state_into(channel, &mut state, deadline)?;
        Ok(state)
    }

    /// The same, into room of the caller's: for a state that is too large for the stack.
    ///
    /// # Errors
    /// As for [`read_state`](Self::read_state).
    pub fn read_state_into(
        &self,
        channel: u32,
        state: &mut StateOf<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), StateError> {
        self.core.read_state_between(channel, bytemuck::bytes_of_mut(state), deadline.into())
    }
}
