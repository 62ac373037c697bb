//! A kernel of a launched graph.

use crate::deadline::Deadline;
use crate::error::{ChannelError, ControlError, PayloadError, StateError};
use crate::kernel::core::KernelCore;
use crate::kernel::handle::{KernelHandle, Status, Summary};
use crate::kernel::state::StateOf;
use crate::kernel::telemetry::Telemetry;
use ring_device::{HasState, Kernel, WithPorts, Word};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A kernel of a launched graph, whatever its type.
pub(super) trait GraphKernel: Send {
    fn core(&self) -> &Arc<KernelCore>;
    fn activate(&mut self, deadline: Deadline) -> Result<(), ControlError>;
    fn deactivate(&mut self, deadline: Deadline) -> Result<(), ControlError>;
    fn terminate(&mut self, deadline: Deadline) -> Result<Summary, ControlError>;
    /// The same of a kernel that may be lost, or terminated before.
    fn leave(&mut self, deadline: Deadline) -> Result<Summary, ControlError>;
    fn summary(&self) -> Summary;
    fn status(&self) -> Status;
    fn as_any(&mut self) -> &mut dyn Any;
}

impl fmt::Debug for dyn GraphKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core().fmt(f)
    }
}

impl<K: WithPorts> GraphKernel for KernelHandle<K> {
    fn core(&self) -> &Arc<KernelCore> {
        KernelHandle::core(self)
    }

    fn activate(&mut self, deadline: Deadline) -> Result<(), ControlError> {
        KernelHandle::activate(self, deadline)
    }

    fn deactivate(&mut self, deadline: Deadline) -> Result<(), ControlError> {
        KernelHandle::deactivate(self, deadline)
    }

    fn terminate(&mut self, deadline: Deadline) -> Result<Summary, ControlError> {
        KernelHandle::terminate(self, deadline)
    }

    fn leave(&mut self, deadline: Deadline) -> Result<Summary, ControlError> {
        KernelHandle::leave(self, deadline)
    }

    fn summary(&self) -> Summary {
        KernelHandle::summary(self)
    }

    fn status(&self) -> Status {
        KernelHandle::status(self)
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// A kernel of a launched graph. The graph commands it; what is here is its own.
#[derive(Debug)]
pub struct GraphNode<'a, K: Kernel> {
    handle: &'a mut KernelHandle<K>,
}

impl<'a, K: WithPorts> GraphNode<'a, K> {
    pub(super) fn new(handle: &'a mut KernelHandle<K>) -> GraphNode<'a, K> {
        GraphNode { handle }
    }

    /// Number of channels.
    pub fn channels(&self) -> u32 {
        self.handle.channels()
    }

    /// Counters as of now, exact when the graph is drained or terminated and nobody sends.
    pub fn summary(&self) -> Summary {
        self.handle.summary()
    }

    /// State and heartbeat.
    pub fn status(&self) -> Status {
        self.handle.status()
    }

    /// What its channels count; see [`KernelHandle::telemetry`].
    pub fn telemetry(&self) -> Telemetry {
        self.handle.telemetry()
    }

    /// The same of one channel.
    pub fn channel_telemetry(&self, channel: u32) -> Result<Telemetry, ChannelError> {
        self.handle.channel_telemetry(channel)
    }

    /// Writes to its payload arena; see [`KernelHandle::write_payload`].
    pub fn write_payload<T: Word>(
        &mut self,
        offset: u64,
        words: &[T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        self.handle.write_payload(offset, words, deadline)
    }

    /// Reads from its payload arena; see [`KernelHandle::read_payload`].
    pub fn read_payload<T: Word>(
        &mut self,
        offset: u64,
        words: &mut [T],
        deadline: impl Into<Deadline>,
    ) -> Result<(), PayloadError> {
        self.handle.read_payload(offset, words, deadline)
    }
}

impl<K: WithPorts> GraphNode<'_, K>
where
    K::Scope: HasState<K>,
{
    /// The state of a channel, while the graph is not active; see [`KernelHandle::read_state`].
    pub fn read_state(
        &mut self,
        channel: u32,
        deadline: impl Into<Deadline>,
    ) -> Result<StateOf<K>, StateError> {
        self.handle.read_state(channel, deadline)
    }

    /// The same, into room of the caller's: for a state that is too large for the stack.
    pub fn read_state_into(
        &mut self,
        channel: u32,
        state: &mut StateOf<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), StateError> {
        self.handle.read_state_into(channel, state, deadline)
    }

    /// Replaces it, likewise; see [`KernelHandle::write_state`].
    pub fn write_state(
        &mut self,
        channel: u32,
        state: &StateOf<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), StateError> {
        self.handle.write_state(channel, state, deadline)
    }
}
