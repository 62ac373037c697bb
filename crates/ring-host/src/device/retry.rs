//! Calls of the driver that fail now and then, or cannot be made just now.

use super::{LaunchSlot, Launched};
use crate::deadline::{Deadline, Patience, wait};
use crate::error::DriverError;

/// Failures of a call, one after the other, after which it is given up.
pub(crate) const MOST_FAILURES: u32 = 3;

/// Tries a call of the driver a few times: some fail now and then.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, DriverError>) -> Result<T, DriverError> {
    let mut done = call();
    for _ in 1..MOST_FAILURES {
        if done.is_ok() {
            break;
        }
        done = call();
    }
    done
}

/// Launches once the driver has done what keeps it from that; whether it was launched in time.
///
/// # Safety
/// As for [`LaunchSlot::launch`].
pub(crate) unsafe fn launch_within(
    deadline: Deadline,
    launch_slot: &dyn LaunchSlot,
) -> Result<bool, DriverError> {
    // SAFETY: the caller's promise.
    let once = || match retry(|| unsafe { launch_slot.launch(false) })? {
        Launched::Yes => Ok(Some(())),
        Launched::NotYet => Ok(None),
    };
    wait(deadline, Patience::Yield, once, || Ok(())).map(|launched| launched.is_some())
}
