//! Going on after a fault.

use crate::deadline::{Deadline, Patience, wait};
use crate::drive::orphans::reap_of;
use crate::error::{LaunchError, RecoverError};
use crate::runtime::Runtime;

/// What [`Runtime::recover`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Recovery {
    /// The device had been reset by another user of the process and was opened anew. Kernels from before
    /// are lost, and other runtimes of the device have to recover too.
    pub reopened: bool,
    /// Kernels of the device that the process has dropped and that still run at the deadline. What they use
    /// stays set aside until they have left.
    pub set_aside: usize,
    /// The device was tried by a small kernel, and answered; not so if it is full of kernels.
    pub tried: bool,
}

impl Runtime {
    /// After a fault: makes sure that kernels can be launched again. Drop what was lost, recover, and
    /// launch anew.
    ///
    /// A device that was reset is opened anew, with the same [`RuntimeConfig`](crate::RuntimeConfig); then kernels
    /// of the device that the process has dropped but that still run are waited for until the deadline; and
    /// the device is tried by a small kernel, for 5 s at most.
    ///
    /// A kernel that *traps* on a GPU (an illegal address, a misaligned one) ends all that the
    /// process has there, and no call of the driver helps: that is
    /// [`OpenError::Lost`](crate::OpenError::Lost), and the process is to be started again. A handler that panics does not
    /// trap, except in PTX that Rust-CUDA made.
    ///
    /// ```
    /// use ring_host::{Device, Runtime};
    /// use std::time::Duration;
    ///
    /// let mut host = Runtime::open(Device::Cpu)?;
    /// let found = host.recover(Duration::from_secs(1))?;
    /// assert!(!found.reopened && found.set_aside == 0); // nothing was wrong
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn recover(&mut self, deadline: impl Into<Deadline>) -> Result<Recovery, RecoverError> {
        let deadline = deadline.into();
        let reopened = self.reopen_if_reset()?;
        let set_aside = || reap_of(self.core.driver.occupancy());
        let gone = || Ok::<_, RecoverError>((set_aside() == 0).then_some(()));
        wait(deadline, Patience::Yield, gone, || Ok(()))?;
        let tried = match self.layout_on_device() {
            Ok(_) => true,
            Err(LaunchError::Crowded(_)) => false,
            Err(error) => return Err(RecoverError::Silent(error)),
        };
        let found = Recovery { reopened, set_aside: set_aside(), tried };
        let device = self.core.driver.label();
        tracing::info!(device, reopened, set_aside = found.set_aside, tried, "device recovered");
        Ok(found)
    }
}
