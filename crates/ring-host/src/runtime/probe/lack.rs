//! Why a probe has no measurement: the device does not do it, or there was no telling.

use crate::error::{
    ControlError, LaunchError, PayloadError, RecvTimeoutError, SendTimeoutError, TryRecvError,
};
use std::fmt;

/// Why there is no measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The device does not do it: it refused, or was seen not to.
    No(String),
    /// It could not be told: the host or the kernel did not get its turn in time, or other kernels
    /// were in the way. It is tried again when the device is opened anew, or at a later launch.
    Unknown(String),
}

impl Lack {
    /// Whether it is known that the device does not do it.
    pub fn is_certain(&self) -> bool {
        matches!(self, Lack::No(_))
    }

    /// What was seen.
    pub fn why(&self) -> &str {
        let (Lack::No(why) | Lack::Unknown(why)) = self;
        why
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::No(why) => f.write_str(why),
            Lack::Unknown(why) => write!(f, "not certain, the machine was too busy to tell: {why}"),
        }
    }
}

/// A lack of time proves nothing; all else that goes wrong is the device's answer.
macro_rules! lacks {
    ($($error:ty => $of_time:pat),+ $(,)?) => {
        $(impl From<$error> for Lack {
            fn from(error: $error) -> Lack {
                let why = error.to_string();
                match error {
                    $of_time => Lack::Unknown(why),
                    _ => Lack::No(why),
                }
            }
        })+
    };
}
lacks! {
    ControlError => ControlError::Timeout { .. } | ControlError::Staying { .. },
    TryRecvError => TryRecvError::Empty,
    RecvTimeoutError => RecvTimeoutError::Timeout { .. },
    PayloadError => PayloadError::Timeout { .. },
}

impl<T> From<SendTimeoutError<T>> for Lack {
    fn from(error: SendTimeoutError<T>) -> Lack {
        let error = error.without_message();
        match error {
            SendTimeoutError::Timeout { .. } => {
                Lack::Unknown("no request was taken in time".to_owned())
            }
            error => Lack::No(error.to_string()),
        }
    }
}

impl From<LaunchError> for Lack {
    /// What the driver refuses is its answer. What else a launch lacks (room beside the kernels that are
    /// there, say) it may have later.
    fn from(error: LaunchError) -> Lack {
        let why = error.to_string();
        match error {
            LaunchError::Driver(_) | LaunchError::Image { .. } | LaunchError::Fault(_) => {
                Lack::No(why)
            }
            _ => Lack::Unknown(why),
        }
    }
}
