//! Why a probe has no measurement: the device does not do it, or there was no telling.

use crate::device::Crowded;
use crate::device::image::ImageError;
use crate::error::{
    ArenaKind, ControlError, DeviceFault, DriverError, NoPinned, PayloadError, RecvTimeoutError,
    SendTimeoutError, TryRecvError,
};
use std::time::Duration;

/// Why there is no measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum Lack {
    /// The device does not do it: it refused, or was seen not to.
    #[error("{0}")]
    No(Cause),
    /// It could not be told: the host or the kernel did not get its turn in time, or other kernels
    /// were in the way. It is tried again when the device is opened anew, or at a later launch.
    #[error("not certain, the machine was too busy to tell: {0}")]
    Unknown(Cause),
}

/// What was seen in place of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// It was not tried.
    #[error("it was not tried")]
    NotTried,
    /// There is no pinned memory to try it in.
    #[error("there is no pinned memory: {0}")]
    NoPinned(NoPinned),
    /// The device says that it does not map host memory.
    #[error("the device does not map host memory")]
    NotMapped,
    /// The driver refused.
    #[error(transparent)]
    Driver(DriverError),
    /// It refused the built-in kernels.
    #[error(transparent)]
    Image(ImageError),
    /// The kernel was lost when it was launched.
    #[error(transparent)]
    Fault(DeviceFault),
    /// Other kernels may keep this one from the device.
    #[error(transparent)]
    Crowded(Crowded),
    /// There was no room in an arena.
    #[error("{needed} bytes of {which} memory are needed, and {free} are free")]
    NoRoom {
        /// Which memory.
        which: ArenaKind,
        /// Bytes needed.
        needed: usize,
        /// Bytes free.
        free: usize,
    },
    /// The kernel did not change its state.
    #[error(transparent)]
    Control(ControlError),
    /// A message was not sent.
    #[error(transparent)]
    Send(SendTimeoutError<()>),
    /// A look for an answer failed.
    #[error(transparent)]
    TryRecv(TryRecvError),
    /// No answer came.
    #[error(transparent)]
    Recv(RecvTimeoutError),
    /// A copy was not made.
    #[error(transparent)]
    Copy(PayloadError),
    /// An answer is wrong.
    #[error("the answer to message {message} is wrong")]
    WrongAnswer {
        /// The message.
        message: u32,
    },
    /// No answer came to a message that was sent while the kernel stayed.
    #[error("message {message} was not answered within {waited:?}")]
    NoAnswer {
        /// The message.
        message: u32,
        /// How long was waited.
        waited: Duration,
    },
    /// The kernel looked again and again, and did not see the message.
    #[error(
        "it did not see what the host wrote while it looked: message {message} took another launch"
    )]
    Blind {
        /// The message.
        message: u32,
    },
    /// The kernel left before it was looked often enough.
    #[error("it left before host and kernel got their turn: message {message} took another launch")]
    LeftEarly {
        /// The message.
        message: u32,
    },
    /// A call came back only when the kernel had left.
    #[error("the call returned after {took:.1?}, when the kernel had left")]
    CallWaited {
        /// How long it took.
        took: Duration,
    },
}

impl Lack {
    /// The device does not do it, if that is `certain`.
    pub(crate) fn of(certain: bool, cause: Cause) -> Lack {
        if certain { Lack::No(cause) } else { Lack::Unknown(cause) }
    }

    /// Whether it is known that the device does not do it.
    pub fn is_certain(&self) -> bool {
        matches!(self, Lack::No(_))
    }

    /// What was seen.
    pub fn cause(&self) -> &Cause {
        let (Lack::No(cause) | Lack::Unknown(cause)) = self;
        cause
    }
}

/// A lack of time proves nothing; all else that goes wrong is the device's answer.
macro_rules! lacks {
    ($($error:ty as $cause:ident: $of_time:pat),+ $(,)?) => {
        $(impl From<$error> for Lack {
            fn from(error: $error) -> Lack {
                Lack::of(!matches!(error, $of_time), Cause::$cause(error))
            }
        })+
    };
}
lacks! {
    ControlError as Control: ControlError::Timeout { .. } | ControlError::Staying { .. },
    SendTimeoutError<()> as Send: SendTimeoutError::Timeout { .. },
    TryRecvError as TryRecv: TryRecvError::Empty,
    RecvTimeoutError as Recv: RecvTimeoutError::Timeout { .. },
    PayloadError as Copy: PayloadError::Timeout { .. },
}
