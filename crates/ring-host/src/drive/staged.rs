//! Launches of a kernel in staged memory, and the transfers before, beside and after each.

use super::device_kernel::DeviceKernel;
use super::launches::{DriveConfig, Launches};
use super::staging::{Pull, PullError, Sides, StagingCopier};
use crate::device::{LaunchSlot, RunState};
use crate::error::{DeviceFault, DriverError};
use crate::memory::region::Region;
use crate::mode::{Memory, Mode};
use ring_shared::layout::State;

/// Where a kernel in staged memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing on the device, and all that it answered is here.
    Resting,
    /// As `Resting`, but something is copied to the device, and a launch follows.
    Loading,
    /// Launched.
    Running,
    /// The launch has left; its last answers are being copied back.
    Landing,
}

/// The transfers of a kernel in staged memory.
#[derive(Debug)]
pub(super) struct Staged {
    phase: Phase,
    copier: StagingCopier,
    /// New budgets are to be copied to the device.
    budgets_changed: bool,
    /// Somebody wants the channels' times: with the next transfer back.
    times_wanted: bool,
    /// The driver says that nothing is on the device.
    pub ended: bool,
}

impl Staged {
    /// Begins to copy the kernel's memory to the device.
    pub fn new(
        config: &DriveConfig,
        region: &Region,
        launch_slot: &dyn LaunchSlot,
    ) -> Result<Staged, DriverError> {
        let mut copier = StagingCopier::new(region);
        copier.push_all(Sides { region, launch_slot })?;
        Ok(Staged {
            phase: if config.mode == Mode::Persistent { Phase::Loading } else { Phase::Resting },
            copier,
            budgets_changed: false,
            times_wanted: false,
            ended: false,
        })
    }

    pub fn is_resting(&self) -> bool {
        self.phase == Phase::Resting
    }

    /// Transfers back that have been delivered.
    pub fn delivered(&self) -> u64 {
        self.copier.delivered
    }

    /// The next transfer back brings the channels' times.
    pub fn want_times(&mut self) {
        self.times_wanted = true;
    }

    /// A step; whether another one may get further at once.
    pub fn step(
        &mut self,
        launches: &mut Launches,
        kernel: &DeviceKernel,
    ) -> Result<bool, DeviceFault> {
        if !self.copier.is_idle() {
            return self.advance(launches, kernel);
        }
        let begun = match self.phase {
            Phase::Resting if self.budgets_changed => {
                self.copier.push_budgets(sides(kernel)).map(|()| self.budgets_changed = false)
            }
            Phase::Resting => {
                if !launches.is_wanted(kernel) {
                    return Ok(false);
                }
                let received = |channel| kernel.received(channel);
                let pushed = self.copier.push(sides(kernel), received, true);
                pushed.map(|_| self.phase = Phase::Loading)
            }
            Phase::Loading if launches.hold || is_told_to_leave(kernel) => {
                self.phase = Phase::Resting;
                Ok(())
            }
            Phase::Loading => return self.launch(launches, kernel).map(|()| false),
            Phase::Running => {
                let left = self.has_left(launches, kernel);
                if !left && launches.is_follow_up_wanted(kernel) {
                    self.launch(launches, kernel)?;
                }
                match self.run_on(launches, kernel, left) {
                    Ok(more) => return Ok(more),
                    failed => failed.map(drop),
                }
            }
            Phase::Landing => {
                if kernel.left() < launches.submitted {
                    kernel.check_channels()?;
                    return Err(kernel.refused());
                }
                tracing::trace!(kernel = kernel.name, launches = launches.submitted, "at rest");
                self.phase = Phase::Resting;
                return Ok(true);
            }
        };
        match begun {
            Ok(()) => Ok(true),
            Err(error) => self.copy_failed(launches, kernel, error).map(|()| false),
        }
    }

    /// Goes on with the transfer that is under way.
    fn advance(
        &mut self,
        launches: &mut Launches,
        kernel: &DeviceKernel,
    ) -> Result<bool, DeviceFault> {
        match kernel.launch_slot().copies() {
            RunState::Running => return Ok(false),
            RunState::Faulted(error) => return Err(kernel.device_fault(&error)),
            RunState::Ended => {}
        }
        let delivered = self.copier.delivered;
        match self.copier.advance(sides(kernel)) {
            Ok(()) => {}
            Err(PullError::Corrupt(channel, found)) => return Err(kernel.corrupt(channel, found)),
            Err(PullError::Driver(error)) => {
                if self.phase == Phase::Landing {
                    self.phase = Phase::Running; // the last answers are still to be fetched
                }
                return self.copy_failed(launches, kernel, error).map(|()| false);
            }
        }
        if self.copier.delivered > delivered {
            launches.failures = 0; // there and back: copies work
        }
        Ok(true)
    }

    fn launch(
        &mut self,
        launches: &mut Launches,
        kernel: &DeviceKernel,
    ) -> Result<(), DeviceFault> {
        if launches.launch(kernel)? {
            self.ended = false;
            self.phase = Phase::Running;
        }
        Ok(())
    }

    fn copy_failed(
        &mut self,
        launches: &mut Launches,
        kernel: &DeviceKernel,
        error: DriverError,
    ) -> Result<(), DeviceFault> {
        self.budgets_changed |= launches.copy_failed(kernel, error)?;
        Ok(())
    }

    /// Whether all launches have left, as far as can be known now.
    fn has_left(&self, launches: &Launches, kernel: &DeviceKernel) -> bool {
        let left = kernel.left() >= launches.submitted || self.ended;
        let asks = launches.config.mode != Mode::Persistent;
        left || asks && kernel.launch_slot().state() == RunState::Ended
    }

    /// The next transfer while a launch is on the device, or the last one after it has left.
    fn run_on(
        &mut self,
        launches: &Launches,
        kernel: &DeviceKernel,
        left: bool,
    ) -> Result<bool, DriverError> {
        let sides = sides(kernel);
        if left {
            self.copier.pull(sides, Pull { times: true, last: true })?;
            self.phase = Phase::Landing;
            self.times_wanted = false;
            return Ok(true);
        }
        if launches.config.memory == Memory::StagedSync {
            return Ok(false);
        }
        if self.copier.push(sides, |channel| kernel.received(channel), false)? {
            // Straight back, twice: the first copy takes about as long as the device needs for an
            // answer, which the second one then brings.
            self.copier.pull(sides, Pull { times: false, last: false })?;
            self.copier.pull(sides, Pull { times: false, last: false })?;
            return Ok(true);
        }
        let expects = self.copier.awaits_answers()
            || is_told_to_leave(kernel)
            || self.times_wanted
            || self.copier.has_unpublished()
            || !kernel.has_acknowledged();
        if expects {
            self.copier.pull(sides, Pull { times: self.times_wanted, last: false })?;
            self.times_wanted = false;
        }
        Ok(expects)
    }
}

fn sides(kernel: &DeviceKernel) -> Sides<'_> {
    Sides { region: kernel.region(), launch_slot: kernel.launch_slot() }
}

fn is_told_to_leave(kernel: &DeviceKernel) -> bool {
    kernel.commanded().state == State::Terminated as u32
}
