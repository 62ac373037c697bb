//! What a send or a receive tells, whichever call it is: for tests of what must not depend on the call.

use ring_host::{
    ChannelError, DeviceFault, RecvTimeoutError, SendTimeoutError, State, TryRecvError,
    TrySendError, WaitedFor,
};
use std::fmt;

/// Why nothing was sent or received.
#[derive(Clone, Debug, PartialEq)]
pub enum Told<T = ()> {
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

impl<T> Told<T> {
    /// Without the message.
    pub fn without_message(self) -> Told {
        match self {
            Told::Full(_) => Told::Full(()),
            Told::Writing => Told::Writing,
            Told::Empty => Told::Empty,
            Told::Late { kernel } => Told::Late { kernel },
            Told::NotActive { kernel, state } => Told::NotActive { kernel, state },
            Told::Closed { kernel } => Told::Closed { kernel },
            Told::Channel(error) => Told::Channel(error),
            Told::Fault(fault) => Told::Fault(fault),
        }
    }
}

impl<T: fmt::Debug> fmt::Display for Told<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl<T> From<TrySendError<T>> for Told<T> {
    fn from(error: TrySendError<T>) -> Told<T> {
        match error {
            TrySendError::Full(message) => Told::Full(message),
            TrySendError::Writing { .. } => Told::Writing,
            TrySendError::NotActive { kernel, state, .. } => Told::NotActive { kernel, state },
            TrySendError::Closed { kernel, .. } => Told::Closed { kernel },
            TrySendError::Channel { error, .. } => Told::Channel(error),
            TrySendError::Fault { fault, .. } => Told::Fault(fault),
            error => panic!("{:?}", error.without_message()),
        }
    }
}

impl<T> From<SendTimeoutError<T>> for Told<T> {
    fn from(error: SendTimeoutError<T>) -> Told<T> {
        match error {
            SendTimeoutError::Timeout { waited_for: WaitedFor::Write, .. } => Told::Writing,
            SendTimeoutError::Timeout { message, .. } => Told::Full(message),
            SendTimeoutError::NotActive { kernel, state, .. } => Told::NotActive { kernel, state },
            SendTimeoutError::Closed { kernel, .. } => Told::Closed { kernel },
            SendTimeoutError::Channel { error, .. } => Told::Channel(error),
            SendTimeoutError::Fault { fault, .. } => Told::Fault(fault),
            error => panic!("{:?}", error.without_message()),
        }
    }
}

impl From<TryRecvError> for Told {
    fn from(error: TryRecvError) -> Told {
        match error {
            TryRecvError::Empty => Told::Empty,
            TryRecvError::Closed { kernel } => Told::Closed { kernel },
            TryRecvError::Channel(error) => Told::Channel(error),
            TryRecvError::Fault(fault) => Told::Fault(fault),
            error => panic!("{error:?}"),
        }
    }
}

impl From<RecvTimeoutError> for Told {
    fn from(error: RecvTimeoutError) -> Told {
        match error {
            RecvTimeoutError::Timeout { kernel, .. } => Told::Late { kernel },
            RecvTimeoutError::Closed { kernel } => Told::Closed { kernel },
            RecvTimeoutError::Channel(error) => Told::Channel(error),
            RecvTimeoutError::Fault(fault) => Told::Fault(fault),
            error => panic!("{error:?}"),
        }
    }
}
