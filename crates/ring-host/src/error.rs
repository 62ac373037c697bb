//! Errors, one enum an operation. Each names what, which value, which limit, and what to do.

mod buffer;
mod call;
mod command;
mod driver;
mod fault;
mod graph;
mod grids;
mod host_calls;
mod launch;
mod limit;
mod message;
mod obstacle;
mod open;
mod snapshot;

pub use buffer::BufferError;
pub use call::{CallError, SubmitError};
pub use command::{ControlError, PayloadError, QuiesceError, StateError};
pub use driver::{DriverError, DriverReason, Needed, NoPinned};
pub use fault::{ChannelError, DeviceFault};
pub use graph::{DevicesError, GraphError, RecoverGraphError};
pub use grids::GridsError;
pub use host_calls::{HostCallsError, NextCallError};
pub use launch::LaunchError;
pub use limit::{
    ArenaKind, BlockLimit, Budget, ChannelLimit, Requirement, Resource, ThreadLimit, WindowLimit,
};
pub use message::{RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError, WaitedFor};
pub use obstacle::{Obstacle, Refusal};
pub use open::OpenError;
pub use snapshot::{RestartError, RestoreError, SnapshotFileError};

pub(crate) use limit::words;

use crate::device::UnknownName;

/// Why a device does not serve again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecoverError {
    /// It cannot be opened: after a trap, only by another process.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It was tried by a small kernel, and did not answer.
    #[error("the device was tried, and does not answer: {0}")]
    Silent(LaunchError),
}

/// Any of them, for `?` in programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Opening a device.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Recovering from a fault.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// Launching a kernel.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Launching a graph, or naming its ends.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Recovering a graph.
    #[error(transparent)]
    RecoverGraph(#[from] RecoverGraphError),
    /// Launching grids on several devices.
    #[error(transparent)]
    Grids(#[from] GridsError),
    /// Opening several devices.
    #[error(transparent)]
    Devices(#[from] DevicesError),
    /// Changing a kernel's state.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Keeping kernels off their device.
    #[error(transparent)]
    Quiesce(#[from] QuiesceError),
    /// Sending at once; the message is not kept.
    #[error(transparent)]
    TrySend(TrySendError<()>),
    /// Sending; the message is not kept.
    #[error(transparent)]
    Send(SendTimeoutError<()>),
    /// Receiving at once.
    #[error(transparent)]
    TryRecv(#[from] TryRecvError),
    /// Receiving.
    #[error(transparent)]
    Recv(#[from] RecvTimeoutError),
    /// Naming a channel.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// Taking out a kernel's calls to the host.
    #[error(transparent)]
    HostCalls(#[from] HostCallsError),
    /// Waiting for a call to the host.
    #[error(transparent)]
    NextCall(#[from] NextCallError),
    /// Using the payload arena.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Making, reading or writing a buffer.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// Reading or writing a kernel's state.
    #[error(transparent)]
    State(#[from] StateError),
    /// Writing or reading a snapshot.
    #[error(transparent)]
    SnapshotFile(#[from] SnapshotFileError),
    /// Giving a kernel the states of a snapshot.
    #[error(transparent)]
    Restore(#[from] RestoreError),
    /// Launching a kernel again.
    #[error(transparent)]
    Restart(#[from] RestartError),
    /// Naming a device.
    #[error(transparent)]
    Device(#[from] crate::device::UnknownDevice),
    /// Naming a mode, a memory or a quirk.
    #[error(transparent)]
    Name(#[from] UnknownName),
}

impl<T> From<TrySendError<T>> for Error {
    fn from(error: TrySendError<T>) -> Error {
        Error::TrySend(error.without_message())
    }
}

impl<T> From<SendTimeoutError<T>> for Error {
    fn from(error: SendTimeoutError<T>) -> Error {
        Error::Send(error.without_message())
    }
}
