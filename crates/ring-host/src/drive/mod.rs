//! What keeps a kernel answering: modes and how one is chosen, launches that follow each other, copies
//! between the host's memory and the device's, and what becomes of a kernel that does not leave.

pub(crate) mod device_kernel;
pub(crate) mod gate;
mod launches;
pub(crate) mod lease;
pub(crate) mod orphans;
pub(crate) mod report;
pub(crate) mod scheduler;
pub(crate) mod selection;
pub(crate) mod send_counts;
mod staged;
pub(crate) mod staging;
pub(crate) mod traces;

pub(crate) use launches::DriveConfig;

use crate::device::LaunchSlot;
use crate::error::{DeviceFault, DriverError};
use crate::memory::region::Region;
use crate::mode::{Memory, Mode};
use device_kernel::DeviceKernel;
use report::Fallback;
use ring_shared::layout::State;
use scheduler::{Hold, Scheduler};

/// What the host does, beside sending and receiving, for a kernel to answer.
#[derive(Debug)]
pub(crate) enum Drive {
    /// Nothing: launched once, in memory that both sides see, it stays until it is told to leave.
    Resident,
    /// Launches, and copies where memory is staged.
    Scheduled(Box<Scheduler>),
}

impl Drive {
    /// For the kernel of that region and launch slot, which was not launched yet.
    pub fn new(
        config: DriveConfig,
        region: &Region,
        launch_slot: &dyn LaunchSlot,
    ) -> Result<Drive, DriverError> {
        match config.is_resident() {
            true => Ok(Drive::Resident),
            false => Ok(Drive::Scheduled(Box::new(Scheduler::new(config, region, launch_slot)?))),
        }
    }

    /// Who drives the kernel, unless it is resident.
    #[inline]
    fn scheduler(&self) -> Option<&Scheduler> {
        match self {
            Drive::Resident => None,
            Drive::Scheduled(scheduler) => Some(scheduler),
        }
    }

    /// After a message was accepted: a kernel at rest is launched for it. A fault is remembered and
    /// returned by the next call: this message was accepted.
    #[inline]
    pub fn after_send(&self, kernel: &DeviceKernel) {
        if let Some(scheduler) = self.scheduler() {
            let _ = scheduler.step(kernel);
        }
    }

    /// After a look that found nothing. A fault is remembered, and the caller's check returns it.
    #[inline]
    pub fn after_idle_poll(&self, kernel: &DeviceKernel) {
        if let Some(scheduler) = self.scheduler() {
            let _ = scheduler.try_step(kernel);
        }
    }

    /// A step; whether the kernel is between launches, and all that it answered is here. A resident one
    /// never is.
    pub fn rests(&self, kernel: &DeviceKernel) -> Result<bool, DeviceFault> {
        self.scheduler().map_or(Ok(false), |scheduler| scheduler.is_resting(kernel))
    }

    /// A step; whether no launch is on the device, as far as the host knows.
    pub fn is_off_device(&self, kernel: &DeviceKernel) -> bool {
        match self {
            Drive::Resident => kernel.has_ended(),
            Drive::Scheduled(scheduler) => scheduler.is_resting(kernel).unwrap_or(false),
        }
    }

    /// A step; whether all that the kernel answered before it left is here, or will be by itself.
    pub fn is_delivered(&self, kernel: &DeviceKernel) -> Result<bool, DeviceFault> {
        self.scheduler().map_or(Ok(true), |scheduler| scheduler.is_resting(kernel))
    }

    /// The same without a step; false if another thread is at one.
    pub fn was_delivered(&self, kernel: &DeviceKernel) -> bool {
        self.scheduler().is_none_or(|scheduler| scheduler.has_come_to_rest(kernel))
    }

    /// Whether the kernel is between launches, without a step; false if another thread is at one. A resident one never is.
    pub fn is_between_launches(&self, kernel: &DeviceKernel) -> bool {
        self.scheduler().is_some_and(|scheduler| scheduler.has_come_to_rest(kernel))
    }

    /// Nothing is on the device, the driver says. Whether the kernel has ended without being asked and
    /// without a reason.
    pub fn ended_early(&self, kernel: &DeviceKernel) -> bool {
        match self {
            Drive::Resident => kernel.state() != State::Terminated, // it never began to poll
            Drive::Scheduled(scheduler) => scheduler.ended_early(kernel),
        }
    }

    /// A step; whether it was launched at least once.
    pub fn is_launched(&self, kernel: &DeviceKernel) -> Result<bool, DeviceFault> {
        let Some(scheduler) = self.scheduler() else { return Ok(true) };
        scheduler.is_resting(kernel).map(|_| scheduler.launches() > 0)
    }

    /// A step towards fresh counters, from `None` on and on with the number that it gives; `None` when they
    /// are there.
    pub fn refresh(
        &self,
        kernel: &DeviceKernel,
        until: Option<u64>,
    ) -> Result<Option<u64>, DeviceFault> {
        self.scheduler().map_or(Ok(None), |scheduler| scheduler.refresh(kernel, until))
    }

    /// Keeps launches away until it is dropped, if copies cannot be made beside one. They can be made
    /// once the kernel [rests](Self::rests).
    pub fn hold(&self) -> Option<Hold<'_>> {
        self.scheduler()?.hold()
    }

    /// Launches so far.
    pub fn launches(&self) -> u64 {
        self.scheduler().map_or(1, Scheduler::launches)
    }

    /// Mode and memory as they are now.
    pub fn now(&self) -> (Mode, Memory) {
        self.scheduler().map_or((Mode::Persistent, Memory::Mapped), Scheduler::now)
    }

    /// Changes for the worse after operations failed, the first few.
    pub fn fallbacks(&self) -> impl Iterator<Item = Fallback> + use<> {
        self.scheduler().map(Scheduler::fallbacks).into_iter().flatten()
    }
}
