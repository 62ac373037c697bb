//! Launches that follow each other: when one is wanted, and what becomes of the mode and the memory when
//! launches or copies fail.

use super::device_kernel::DeviceKernel;
use super::report::Fallback;
use crate::device::Launched;
use crate::device::retry::MOST_FAILURES;
use crate::error::{DeviceFault, DriverError};
use crate::mode::{Memory, Mode};
use ring_shared::layout::{Budgets, State};
use std::time::{Duration, Instant};

/// Launches, one after the other, before the driver is asked whether those before are over. Else a
/// device that only says so would fill the driver's queue, and the call that finds it full blocks.
const MOST_UNSEEN: u32 = 256;

/// Fallbacks that are remembered.
const MOST_FALLBACKS: usize = 4;

/// The fallbacks of a kernel.
pub(super) type Fallbacks = heapless::Vec<Fallback, MOST_FALLBACKS>;

/// How a kernel is driven: what was chosen, and what may be changed when an operation fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveConfig {
    pub mode: Mode,
    pub memory: Memory,
    pub mode_is_free: bool,
    pub memory_is_free: bool,
    /// Driver calls wait until what is on the device has left.
    pub calls_block: bool,
    /// What a launch may spend.
    pub budgets: Budgets,
    /// What it may spend after a change for the worse.
    pub fallback: Budgets,
}

impl DriveConfig {
    /// Whether it is launched once, in memory that both sides see.
    pub fn is_resident(&self) -> bool {
        (self.mode, self.memory) == (Mode::Persistent, Memory::Mapped)
    }
}

/// A kernel's launches.
#[derive(Debug)]
pub(super) struct Launches {
    pub config: DriveConfig,
    pub submitted: u64,
    /// Launches since the driver last said that nothing was on the device.
    unseen: u32,
    launched_at: Instant,
    /// No launch, for now: somebody copies between launches.
    pub hold: bool,
    /// Failures of the driver, one after the other.
    pub failures: u32,
    pub fallbacks: Fallbacks,
}

impl Launches {
    pub fn new(config: DriveConfig) -> Launches {
        Launches {
            config,
            submitted: 0,
            unseen: 0,
            launched_at: Instant::now(),
            hold: false,
            failures: 0,
            fallbacks: heapless::Vec::new(),
        }
    }

    /// Whether copies cannot be made beside a launch.
    pub fn are_alone(&self) -> bool {
        self.config.calls_block || self.config.memory == Memory::StagedSync
    }

    /// A step in mapped memory, with so many launches that have left.
    pub fn step(&mut self, kernel: &DeviceKernel, left: u64) -> Result<(), DeviceFault> {
        let wanted = match self.submitted - left {
            0 => self.is_wanted(kernel),
            1 => self.is_follow_up_wanted(kernel),
            _ => false,
        };
        if wanted { self.launch(kernel).map(drop) } else { Ok(()) }
    }

    /// Whether a kernel at rest has something to do: messages that it can answer, or a command to
    /// become active.
    pub fn is_wanted(&self, kernel: &DeviceKernel) -> bool {
        if self.hold || kernel.commanded().state != State::Active as u32 {
            return false;
        }
        if !kernel.has_acknowledged() {
            return true;
        }
        let region = kernel.region();
        (0..region.plan.channels).any(|channel| {
            let (pending, head) = region.pending(channel);
            pending > 0 && head.wrapping_sub(kernel.received(channel)) < region.plan.capacity.into()
        })
    }

    /// Whether another launch should stand behind the one on the device, so that the device does
    /// not idle between them: work is pending, and half of the launch's time, or nobody knows how
    /// much of its iterations, is spent.
    pub fn is_follow_up_wanted(&self, kernel: &DeviceKernel) -> bool {
        if self.config.mode == Mode::Persistent
            || self.are_alone()
            || self.hold
            || self.submitted.saturating_sub(kernel.left()) != 1
        {
            return false;
        }
        let budgets = &self.config.budgets;
        let (half, counted) =
            (Duration::from_nanos(budgets.time / 2), budgets.iterations != u64::MAX);
        let region = kernel.region();
        kernel.commanded().state == State::Active as u32
            && (0..region.plan.channels).any(|channel| region.pending(channel).0 > 0)
            && (counted || self.launched_at.elapsed() >= half)
    }

    /// Launches the kernel once more; whether that could be done now. If not, a later step does it.
    pub fn launch(&mut self, kernel: &DeviceKernel) -> Result<bool, DeviceFault> {
        kernel.check_channels()?; // a lost channel is not run again
        if self.unseen >= MOST_UNSEEN {
            if !kernel.is_over(kernel.launch_slot().state())? {
                return Ok(false);
            }
            self.unseen = 0;
        }
        let replay = self.config.mode == Mode::Graph;
        // SAFETY: the region is laid out for this kernel, and stays until the launch slot is over
        // (`DeviceKernel::drop`).
        match unsafe { kernel.launch_slot().launch(replay) } {
            Ok(Launched::NotYet) => Ok(false),
            Ok(Launched::Yes) => {
                self.submitted += 1;
                self.unseen += 1;
                self.failures = 0;
                self.launched_at = Instant::now();
                // Some drivers begin nothing before they are asked how it goes.
                let _ = kernel.launch_slot().state();
                Ok(true)
            }
            Err(error) => self.launch_failed(kernel, error).map(|()| false),
        }
    }

    /// A launch failed: no more graphs, if nobody asked for them.
    #[cold]
    fn launch_failed(
        &mut self,
        kernel: &DeviceKernel,
        error: DriverError,
    ) -> Result<(), DeviceFault> {
        let from = self.before_fallback(kernel)?;
        if self.config.mode == Mode::Graph && self.config.mode_is_free {
            self.config.mode = Mode::EventDriven;
        }
        self.fall_back_or_retry(kernel, from, error)
    }

    /// A copy failed: no more copies beside launches, if nobody asked for them. Whether launches have new
    /// budgets by that.
    #[cold]
    pub fn copy_failed(
        &mut self,
        kernel: &DeviceKernel,
        error: DriverError,
    ) -> Result<bool, DeviceFault> {
        let from = self.before_fallback(kernel)?;
        let config = &mut self.config;
        let falls = config.memory == Memory::StagedAsync && config.memory_is_free;
        if falls && config.mode == Mode::Persistent && config.mode_is_free {
            config.mode = Mode::EventDriven; // it leaves by itself when nothing reaches it
        }
        let falls = falls && config.mode != Mode::Persistent;
        if falls {
            config.memory = Memory::StagedSync;
            config.budgets = Budgets { idle: 0, ..config.fallback };
            kernel.region().set_budgets(config.budgets);
        }
        self.fall_back_or_retry(kernel, from, error).map(|()| falls)
    }

    /// Mode and memory; or the fault, if it was the device that failed.
    fn before_fallback(&self, kernel: &DeviceKernel) -> Result<(Mode, Memory), DeviceFault> {
        kernel.is_over(kernel.launch_slot().state())?;
        Ok((self.config.mode, self.config.memory))
    }

    /// Remembers a fallback; without one what failed is tried again a few times. Nothing is lost: what was
    /// sent is in the host's ring until it was answered.
    fn fall_back_or_retry(
        &mut self,
        kernel: &DeviceKernel,
        from: (Mode, Memory),
        error: DriverError,
    ) -> Result<(), DeviceFault> {
        let (to, name) = ((self.config.mode, self.config.memory), kernel.name);
        if from != to {
            self.failures = 0;
            tracing::warn!(kernel = name, mode = %to.0, memory = %to.1, %error, "fell back");
            let _ = self.fallbacks.push(Fallback { from, to, why: error });
            return Ok(());
        }
        self.failures += 1;
        if self.failures >= MOST_FAILURES {
            return Err(DeviceFault::Driver { kernel: name, source: Box::new(error) });
        }
        tracing::warn!(kernel = name, failures = self.failures, %error, "will be retried");
        Ok(())
    }
}
