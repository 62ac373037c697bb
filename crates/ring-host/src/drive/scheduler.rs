//! What drives a kernel that is not simply resident in mapped memory: launches that follow each
//! other, and transfers between staging and device. There is no thread behind it: every send and every
//! idle poll takes a step, which never waits.

use super::device_kernel::DeviceKernel;
use super::launches::{DriveConfig, Fallbacks, Launches};
use super::staged::Staged;
use crate::device::{LaunchSlot, RunState};
use crate::error::{DeviceFault, DriverError};
use crate::memory::region::Region;
use crate::mode::{Memory, Mode};
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, unless_locked, unpoisoned};
use std::sync::atomic::Ordering;

/// Steps at a time in staged memory: a device whose copies are over at once gets further in one call.
const STEPS: u32 = 3;

/// Drives one kernel.
#[derive(Debug)]
pub(crate) struct Scheduler {
    inner: Mutex<Inner>,
    /// Launches so far.
    launches: AtomicU64,
    /// Those who copy between launches.
    holds: AtomicU32,
}

#[derive(Debug)]
struct Inner {
    launches: Launches,
    /// Transfers, where memory is staged.
    staged: Option<Staged>,
}

impl Scheduler {
    /// Drives the kernel of that region and launch slot, which was not launched yet.
    pub fn new(
        config: DriveConfig,
        region: &Region,
        launch_slot: &dyn LaunchSlot,
    ) -> Result<Scheduler, DriverError> {
        let staged = match config.memory {
            Memory::Mapped => None,
            _ => Some(Staged::new(&config, region, launch_slot)?),
        };
        let inner = Mutex::new(Inner { launches: Launches::new(config), staged });
        Ok(Scheduler { inner, launches: AtomicU64::new(0), holds: AtomicU32::new(0) })
    }

    /// A step, after a message was accepted or a command written.
    pub fn step(&self, kernel: &DeviceKernel) -> Result<(), DeviceFault> {
        self.stepped(&mut self.lock(), kernel)
    }

    /// A step, unless another thread is at one.
    #[inline]
    pub fn try_step(&self, kernel: &DeviceKernel) -> Result<(), DeviceFault> {
        let inner = unless_locked(self.inner.try_lock());
        inner.map_or(Ok(()), |mut inner| self.stepped(&mut inner, kernel))
    }

    fn stepped(&self, inner: &mut Inner, kernel: &DeviceKernel) -> Result<(), DeviceFault> {
        if let Some(fault) = kernel.fault() {
            return Err(fault); // what is on the device leaves by its budgets
        }
        inner.launches.hold = self.holds.load(Ordering::Relaxed) > 0;
        let stepped = inner.step(kernel);
        self.launches.store(inner.launches.submitted, Ordering::Relaxed);
        stepped.map_err(|fault| kernel.fail(fault))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        unpoisoned(self.inner.lock())
    }

    /// A step; whether nothing is on the device and all that it answered is here.
    pub fn is_resting(&self, kernel: &DeviceKernel) -> Result<bool, DeviceFault> {
        let mut inner = self.lock();
        self.stepped(&mut inner, kernel)?;
        Ok(inner.is_resting(kernel))
    }

    /// Keeps launches away until it is dropped, if copies cannot be made beside one.
    pub fn hold(&self) -> Option<Hold<'_>> {
        let alone = self.lock().launches.are_alone();
        alone.then(|| Hold::new(&self.holds))
    }

    /// As [`Drive::refresh`](super::Drive::refresh).
    pub fn refresh(
        &self,
        kernel: &DeviceKernel,
        until: Option<u64>,
    ) -> Result<Option<u64>, DeviceFault> {
        let mut inner = self.lock();
        let Some(staged) = &mut inner.staged else { return Ok(None) };
        let until = until.unwrap_or(staged.delivered() + 2); // one may be under way, from before
        if staged.delivered() >= until || staged.is_resting() {
            return Ok(None);
        }
        staged.want_times();
        self.stepped(&mut inner, kernel)?;
        Ok(Some(until))
    }

    /// Nothing is on the device, the driver says. Whether the kernel has ended although some launch
    /// never said that it left; where that must be copied back first, a step will tell.
    pub fn ended_early(&self, kernel: &DeviceKernel) -> bool {
        let Ok(mut inner) = self.inner.try_lock() else { return false };
        let ended = kernel.launch_slot().state() == RunState::Ended; // none was launched meanwhile
        match &mut inner.staged {
            Some(staged) => {
                staged.ended = ended;
                false
            }
            None => ended && kernel.left() < inner.launches.submitted,
        }
    }

    /// Whether no launch is on the device and all answers are here; false if another thread is at it.
    pub fn has_come_to_rest(&self, kernel: &DeviceKernel) -> bool {
        self.inner.try_lock().is_ok_and(|inner| inner.is_resting(kernel))
    }

    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Mode and memory as they are now.
    pub fn now(&self) -> (Mode, Memory) {
        let config = self.lock().launches.config;
        (config.mode, config.memory)
    }

    pub fn fallbacks(&self) -> Fallbacks {
        self.lock().launches.fallbacks.clone()
    }
}

impl Inner {
    fn step(&mut self, kernel: &DeviceKernel) -> Result<(), DeviceFault> {
        let left = kernel.left_of(self.launches.submitted)?;
        let Some(staged) = &mut self.staged else { return self.launches.step(kernel, left) };
        for _ in 0..STEPS {
            if !staged.step(&mut self.launches, kernel)? {
                break;
            }
        }
        Ok(())
    }

    fn is_resting(&self, kernel: &DeviceKernel) -> bool {
        match &self.staged {
            Some(staged) => staged.is_resting(),
            None => self.launches.submitted <= kernel.left(),
        }
    }
}

/// Keeps launches away while it lives.
#[derive(Debug)]
pub(crate) struct Hold<'a>(&'a AtomicU32);

impl<'a> Hold<'a> {
    fn new(holds: &'a AtomicU32) -> Hold<'a> {
        holds.fetch_add(1, Ordering::Relaxed); // who launches reads it under the lock we take next
        Hold(holds)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
