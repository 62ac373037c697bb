//! What is not serialised as it is declared: a name where there is one to read, an error as what it says, and types of `ring-shared`.

use crate::device::image::NoCubin;
use crate::device::probe::{Cause, NoQuickPages};
use crate::device::{Device, NoPeer};
use crate::error::{DeviceFault, DriverError, NoPinned, Obstacle, OpenError};
use crate::mode::{Memory, Mode, PayloadMemory};
use ring_shared::layout::{Exit, State};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::Path;

#[cfg(test)]
mod tests;

/// Types that are serialised as what they say.
macro_rules! as_said {
    ($($t:ty),+ $(,)?) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}

/// Types that can be read from what they say, too.
macro_rules! by_name {
    ($($t:ty),+ $(,)?) => {
        as_said!($($t),+);
        $(impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$t, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
            }
        })+
    };
}

as_said!(
    Cause,
    DeviceFault,
    DriverError,
    NoCubin,
    NoPeer,
    NoPinned,
    NoQuickPages,
    Obstacle,
    OpenError
);
by_name!(Device, Memory, Mode, PayloadMemory);

/// A path, also one that is no Unicode: a report is not refused for it.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The names of a [`State`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "State", rename_all = "kebab-case")]
#[non_exhaustive]
pub(crate) enum StateName {
    Launched,
    Active,
    Inactive,
    Terminated,
    Faulted,
    Yielded,
}

/// The names of an [`Exit`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Exit", rename_all = "kebab-case")]
#[non_exhaustive]
pub(crate) enum ExitName {
    Running,
    Asked,
    BadConfig,
    CorruptRing,
    HandlerPanicked,
    TimeSpent,
    IterationsSpent,
    Idle,
    LeaseOver,
    EmittedTooMany,
    NoSuchChannel,
    MissedBarrier,
    OtherDevice,
}
