//! The error of a send or a receive, whichever call it is: for tests of what must not depend on the call.

use ring_host::{
    ChannelError, DeviceFault, RecvTimeoutError, SendTimeoutError, State, TryRecvError,
    TrySendError, WaitedFor,
};
use std::fmt;

/// Why nothing was sent or received.
#[derive(Clone, Debug, PartialEq)]
pub enum CallError<T = ()> {
    /// No room, also not in time; the message is given back.
    Full(T),
    /// A write of the payload is under way, also after the wait.
    Writing,
    /// No answer is there.
    Empty,
    /// None came in time.
    Late {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel is not active.
    NotActive {
        /// The kernel.
        kernel: &'static str,
        /// Its state.
        state: State,
    },
    /// The kernel is terminated.
    Closed {
        /// The kernel.
        kernel: &'static str,
    },
    /// The channel was taken.
    Channel(ChannelError),
    /// The kernel is lost.
    Fault(DeviceFault),
}

impl<T> CallError<T> {
    /// Without the message.
    pub fn without_message(self) -> CallError {
        match self {
            CallError::Full(_) => CallError::Full(()),
            CallError::Writing => CallError::Writing,
            CallError::Empty => CallError::Empty,
            CallError::Late { kernel } => CallError::Late { kernel },
            CallError::NotActive { kernel, state } => CallError::NotActive { kernel, state },
            CallError::Closed { kernel } => CallError::Closed { kernel },
            CallError::Channel(error) => CallError::Channel(error),
            CallError::Fault(fault) => CallError::Fault(fault),
        }
    }
}

impl<T: fmt::Debug> fmt::Display for CallError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl<T> From<TrySendError<T>> for CallError<T> {
    fn from(error: TrySendError<T>) -> CallError<T> {
        match error {
            TrySendError::Full(message) => CallError::Full(message),
            TrySendError::Writing { .. } => CallError::Writing,
            TrySendError::NotActive { kernel, state, .. } => CallError::NotActive { kernel, state },
            TrySendError::Closed { kernel, .. } => CallError::Closed { kernel },
            TrySendError::Channel { error, .. } => CallError::Channel(error),
            TrySendError::Fault { fault, .. } => CallError::Fault(fault),
            error => panic!("{:?}", error.without_message()),
        }
    }
}

impl<T> From<SendTimeoutError<T>> for CallError<T> {
    fn from(error: SendTimeoutError<T>) -> CallError<T> {
        match error {
            SendTimeoutError::Timeout { waited_for: WaitedFor::Write, .. } => CallError::Writing,
            SendTimeoutError::Timeout { message, .. } => CallError::Full(message),
            SendTimeoutError::NotActive { kernel, state, .. } => {
                CallError::NotActive { kernel, state }
            }
            SendTimeoutError::Closed { kernel, .. } => CallError::Closed { kernel },
            SendTimeoutError::Channel { error, .. } => CallError::Channel(error),
            SendTimeoutError::Fault { fault, .. } => CallError::Fault(fault),
            error => panic!("{:?}", error.without_message()),
        }
    }
}

impl From<TryRecvError> for CallError {
    fn from(error: TryRecvError) -> CallError {
        match error {
            TryRecvError::Empty => CallError::Empty,
            TryRecvError::Closed { kernel } => CallError::Closed { kernel },
            TryRecvError::Channel(error) => CallError::Channel(error),
            TryRecvError::Fault(fault) => CallError::Fault(fault),
            error => panic!("{error:?}"),
        }
    }
}

impl From<RecvTimeoutError> for CallError {
    fn from(error: RecvTimeoutError) -> CallError {
        match error {
            RecvTimeoutError::Timeout { kernel, .. } => CallError::Late { kernel },
            RecvTimeoutError::Closed { kernel } => CallError::Closed { kernel },
            RecvTimeoutError::Channel(error) => CallError::Channel(error),
            RecvTimeoutError::Fault(fault) => CallError::Fault(fault),
            error => panic!("{error:?}"),
        }
    }
}
