//! Why a message was not sent, or none was received.

use super::limit::words;
use super::{ChannelError, DeviceFault};
use ring_shared::layout::State;
use std::fmt;
use std::time::Duration;

/// Why a message was not sent at once. Each gives it back: see [`into_inner`](Self::into_inner).
///
/// For a batch, whose messages stay with the caller, `T` is `()`; a full ring is told as 0 messages sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrySendError<T> {
    /// The ring has no free slot now.
    #[error("the ring is full; receive answers, or send with a deadline")]
    Full(T),
    /// A write of the payload whose own wait ended early is still under way: a message sent now could be
    /// handled before it lands.
    #[error(
        "kernel {kernel}: a write of its payload that timed out is still under way, and messages wait \
         for it; send again, or by `send`, which waits"
    )]
    Writing {
        /// The message.
        message: T,
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel is not active, but may become so.
    #[error("kernel {kernel} is not active (it is {state:?}); {}", advice(*state))]
    NotActive {
        /// The message.
        message: T,
        /// The kernel.
        kernel: &'static str,
        /// The state it is in.
        state: State,
    },
    /// The kernel was told to terminate: it takes no message any more.
    #[error("kernel {kernel} is terminated; launch it again")]
    Closed {
        /// The message.
        message: T,
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel's own calls are those of its first channel, which it no longer has.
    #[error("{error}")]
    Channel {
        /// The message.
        message: T,
        /// Why there is no channel.
        error: ChannelError,
    },
    /// The kernel can answer no more.
    #[error("{fault}")]
    Fault {
        /// The message.
        message: T,
        /// What happened.
        fault: DeviceFault,
    },
}

/// Why a message was not sent before the deadline. Each gives it back: see
/// [`into_inner`](Self::into_inner).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendTimeoutError<T> {
    /// It could not be sent within the deadline.
    #[error("kernel {kernel}, channel {channel}: {waited_for} within {waited:?}; {}", waited_for.advice())]
    Timeout {
        /// The message.
        message: T,
        /// The kernel.
        kernel: &'static str,
        /// The channel.
        channel: u32,
        /// How long was waited.
        waited: Duration,
        /// What was waited for, when the wait ended.
        waited_for: WaitedFor,
    },
    /// The kernel is not active, but may become so.
    #[error("kernel {kernel} is not active (it is {state:?}); {}", advice(*state))]
    NotActive {
        /// The message.
        message: T,
        /// The kernel.
        kernel: &'static str,
        /// The state it is in.
        state: State,
    },
    /// The kernel was told to terminate: it takes no message any more.
    #[error("kernel {kernel} is terminated; launch it again")]
    Closed {
        /// The message.
        message: T,
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel's own calls are those of its first channel, which it no longer has.
    #[error("{error}")]
    Channel {
        /// The message.
        message: T,
        /// Why there is no channel.
        error: ChannelError,
    },
    /// The kernel can answer no more.
    #[error("{fault}")]
    Fault {
        /// The message.
        message: T,
        /// What happened.
        fault: DeviceFault,
    },
}

/// What a message waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitedFor {
    /// A free slot of the ring.
    Room,
    /// The end of a write of the payload whose own wait ended early.
    Write,
}

impl WaitedFor {
    fn advice(self) -> &'static str {
        match self {
            WaitedFor::Room => "receive answers, or wait longer",
            WaitedFor::Write => "wait longer",
        }
    }
}

words! {
    WaitedFor:
        Room "the ring had no room for a message",
        Write "a write of the payload that timed out did not end";
}

impl<T> TrySendError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            TrySendError::Full(message)
            | TrySendError::Writing { message, .. }
            | TrySendError::NotActive { message, .. }
            | TrySendError::Closed { message, .. }
            | TrySendError::Channel { message, .. }
            | TrySendError::Fault { message, .. } => message,
        }
    }

    /// The same error with what `f` makes of the message.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> TrySendError<U> {
        use TrySendError::*;
        match self {
            Full(message) => Full(f(message)),
            Writing { message, kernel } => Writing { message: f(message), kernel },
            NotActive { message, kernel, state } => {
                NotActive { message: f(message), kernel, state }
            }
            Closed { message, kernel } => Closed { message: f(message), kernel },
            Channel { message, error } => Channel { message: f(message), error },
            Fault { message, fault } => Fault { message: f(message), fault },
        }
    }

    /// The same error without the message.
    pub fn without_message(self) -> TrySendError<()> {
        self.map(drop)
    }

    /// What a send with a deadline waits for after this refusal; or the error that ends it.
    pub(crate) fn waits_for(self) -> Result<WaitedFor, SendTimeoutError<T>> {
        use SendTimeoutError as E;
        Err(match self {
            TrySendError::Full(_) => return Ok(WaitedFor::Room),
            TrySendError::Writing { .. } => return Ok(WaitedFor::Write),
            TrySendError::NotActive { message, kernel, state } => {
                E::NotActive { message, kernel, state }
            }
            TrySendError::Closed { message, kernel } => E::Closed { message, kernel },
            TrySendError::Channel { message, error } => E::Channel { message, error },
            TrySendError::Fault { message, fault } => E::Fault { message, fault },
        })
    }
}

impl<T> SendTimeoutError<T> {
    /// The message that was not sent.
    pub fn into_inner(self) -> T {
        match self {
            SendTimeoutError::Timeout { message, .. }
            | SendTimeoutError::NotActive { message, .. }
            | SendTimeoutError::Closed { message, .. }
            | SendTimeoutError::Channel { message, .. }
            | SendTimeoutError::Fault { message, .. } => message,
        }
    }

    /// The same error with what `f` makes of the message.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> SendTimeoutError<U> {
        use SendTimeoutError::*;
        match self {
            Timeout { message, kernel, channel, waited, waited_for } => {
                Timeout { message: f(message), kernel, channel, waited, waited_for }
            }
            NotActive { message, kernel, state } => {
                NotActive { message: f(message), kernel, state }
            }
            Closed { message, kernel } => Closed { message: f(message), kernel },
            Channel { message, error } => Channel { message: f(message), error },
            Fault { message, fault } => Fault { message: f(message), fault },
        }
    }

    /// The same error without the message.
    pub fn without_message(self) -> SendTimeoutError<()> {
        self.map(drop)
    }
}

impl From<DeviceFault> for TrySendError<()> {
    fn from(fault: DeviceFault) -> TrySendError<()> {
        TrySendError::Fault { message: (), fault }
    }
}

impl From<ChannelError> for TrySendError<()> {
    fn from(error: ChannelError) -> TrySendError<()> {
        TrySendError::Channel { message: (), error }
    }
}

/// Why no message was received at once. For a batch an empty ring is told as 0 messages received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TryRecvError {
    /// No answer is there now.
    #[error("no answer is there now; try again, or receive with a deadline")]
    Empty,
    /// The kernel is terminated and all its answers have been received.
    #[error("kernel {kernel} is terminated and has no more answers")]
    Closed {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel's own calls are those of its first channel, which it no longer has.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The kernel can answer no more.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
}

/// Why no message was received before the deadline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecvTimeoutError {
    /// Nothing came within the deadline. A kernel that is not active answers nothing; another thread may
    /// activate it while this one waits, so that is told only at the end.
    #[error("kernel {kernel}, channel {channel}: no message within {waited:?}{}", WhyNone(*state))]
    Timeout {
        /// The kernel.
        kernel: &'static str,
        /// The channel.
        channel: u32,
        /// How long was waited.
        waited: Duration,
        /// The state that the kernel was in when the wait ended.
        state: State,
    },
    /// The kernel is terminated and all its answers have been received.
    #[error("kernel {kernel} is terminated and has no more answers")]
    Closed {
        /// The kernel.
        kernel: &'static str,
    },
    /// The kernel's own calls are those of its first channel, which it no longer has.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The kernel can answer no more.
    #[error(transparent)]
    Fault(#[from] DeviceFault),
}

impl RecvTimeoutError {
    /// The error that ends a wait for a message, unless there is only none yet.
    pub(crate) fn unless_empty(error: TryRecvError) -> Result<(), RecvTimeoutError> {
        Err(match error {
            TryRecvError::Empty => return Ok(()),
            TryRecvError::Closed { kernel } => RecvTimeoutError::Closed { kernel },
            TryRecvError::Channel(error) => RecvTimeoutError::Channel(error),
            TryRecvError::Fault(fault) => RecvTimeoutError::Fault(fault),
        })
    }
}

fn advice(state: State) -> &'static str {
    match state {
        State::Terminated | State::Faulted => "launch it again",
        _ => "call activate first",
    }
}

/// What a wait that ended without a message adds, if the kernel was not active then.
struct WhyNone(State);

impl fmt::Display for WhyNone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            State::Active => Ok(()),
            state => write!(f, "; it is not active (it is {state:?}), {}", advice(state)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "echo";

    /// What it says, in full.
    fn says(error: &impl fmt::Display, text: &str) {
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn each_refusal_gives_the_message_back_and_says_what_to_do() {
        let (message, kernel, state) = (7, KERNEL, State::Inactive);
        let refusals = [
            (
                TrySendError::Full(message),
                "the ring is full; receive answers, or send with a deadline",
            ),
            (
                TrySendError::Writing { message, kernel },
                "kernel echo: a write of its payload that timed out is still under way, and messages \
                 wait for it; send again, or by `send`, which waits",
            ),
            (
                TrySendError::NotActive { message, kernel, state },
                "kernel echo is not active (it is Inactive); call activate first",
            ),
            (
                TrySendError::Closed { message, kernel },
                "kernel echo is terminated; launch it again",
            ),
            (
                TrySendError::Channel { message, error: ChannelError::Taken(0) },
                "channel 0 was taken out of this kernel by take_channel; use it there",
            ),
            (
                TrySendError::Fault { message, fault: DeviceFault::Refused { kernel } },
                "kernel echo ended at once without an acknowledgement: its PTX was built for another \
                 ABI; rebuild it with this version of ring-device",
            ),
        ];
        for (refusal, text) in refusals {
            says(&refusal, text);
            says(&refusal.clone().without_message(), text);
            match refusal.clone().waits_for() {
                Ok(_) => {}
                Err(error) => {
                    says(&error, text);
                    assert_eq!(error.into_inner(), message);
                }
            }
            assert_eq!(refusal.into_inner(), message);
        }
    }

    #[test]
    fn a_send_that_was_late_says_what_it_waited_for() {
        let late = |waited_for| SendTimeoutError::Timeout {
            message: 7,
            kernel: KERNEL,
            channel: 3,
            waited: Duration::from_millis(20),
            waited_for,
        };
        says(
            &late(WaitedFor::Room),
            "kernel echo, channel 3: the ring had no room for a message within 20ms; receive answers, or \
             wait longer",
        );
        says(
            &late(WaitedFor::Write),
            "kernel echo, channel 3: a write of the payload that timed out did not end within 20ms; wait \
             longer",
        );
        assert_eq!(late(WaitedFor::Room).map(|message| message + 1).into_inner(), 8);
        assert_eq!(TrySendError::Full(7).waits_for(), Ok(WaitedFor::Room));
        let writing = TrySendError::Writing { message: 7, kernel: KERNEL };
        assert_eq!(writing.waits_for(), Ok(WaitedFor::Write));
    }

    #[test]
    fn why_nothing_was_received_is_said() {
        says(&TryRecvError::Empty, "no answer is there now; try again, or receive with a deadline");
        let ended = "kernel echo is terminated and has no more answers";
        let closed = TryRecvError::Closed { kernel: KERNEL };
        says(&closed, ended);
        says(&RecvTimeoutError::unless_empty(closed).unwrap_err(), ended);
        assert_eq!(RecvTimeoutError::unless_empty(TryRecvError::Empty), Ok(()));
        let late = |state| RecvTimeoutError::Timeout {
            kernel: KERNEL,
            channel: 3,
            waited: Duration::from_millis(20),
            state,
        };
        says(&late(State::Active), "kernel echo, channel 3: no message within 20ms");
        says(
            &late(State::Launched),
            "kernel echo, channel 3: no message within 20ms; it is not active (it is Launched), call \
             activate first",
        );
    }
}
