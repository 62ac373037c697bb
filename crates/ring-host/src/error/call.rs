//! Why a call was not made, or has no answer.

use super::{RecvTimeoutError, SendTimeoutError};
use std::time::Duration;

/// Why the request of a call was not sent before the deadline. Each gives it back: see [`into_inner`](Self::into_inner).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError<T> {
    /// All tickets of the channel are held: by calls that are not answered, or whose answers nobody has taken.
    #[error(
        "kernel {kernel}, channel {channel}: none of its {tickets} tickets was free within {waited:?}; take the answers of \
         tickets that are held, drop them, or ask for more by `ClientConfig::tickets`"
    )]
    NoTicket {
        /// The request.
        message: T,
        /// The kernel.
        kernel: &'static str,
        /// The channel.
        channel: u32,
        /// How many tickets it has.
        tickets: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// The channel did not take it.
    #[error(transparent)]
    NotSent(SendTimeoutError<T>),
}

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError<T> {
    /// The request was not sent.
    #[error(transparent)]
    NotSent(SubmitError<T>),
    /// The request was sent, and may be handled still; its answer is nobody's.
    #[error("{0}; the request was sent")]
    NotAnswered(RecvTimeoutError),
    /// One handler was asked, and the response says that it is from another: the device has written what no handler writes.
    #[error(
        "kernel {kernel}: handler {handler} was asked, and the response is not from it; memory of the kernel was overwritten"
    )]
    NotFromHandler {
        /// The kernel.
        kernel: &'static str,
        /// The handler.
        handler: &'static str,
    },
}

impl<T> SubmitError<T> {
    /// The request that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SubmitError::NoTicket { message, .. } => message,
            SubmitError::NotSent(error) => error.into_inner(),
        }
    }
}

impl<T> CallError<T> {
    /// The request, if it was not sent.
    pub fn into_inner(self) -> Option<T> {
        match self {
            CallError::NotSent(error) => Some(error.into_inner()),
            CallError::NotAnswered(_) | CallError::NotFromHandler { .. } => None,
        }
    }
}

impl<T> From<SubmitError<T>> for CallError<T> {
    fn from(error: SubmitError<T>) -> CallError<T> {
        CallError::NotSent(error)
    }
}
