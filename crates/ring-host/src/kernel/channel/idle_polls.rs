//! When a caller that finds nothing asks whether the kernel can still answer.

use crate::error::{DeviceFault, TryRecvError};
use crate::kernel::core::KernelCore;
use std::time::Instant;

/// Idle polls between two looks at the clock, to see whether the kernel should be checked.
const LOOKS_PER_CHECK: u32 = 256;

/// Counts idle polls: a caller that only ever tries must also learn of a fault.
#[derive(Debug)]
pub(crate) struct IdlePolls {
    looks: u32,
    pub(super) checked: Instant,
}

impl IdlePolls {
    pub fn new() -> IdlePolls {
        IdlePolls { looks: 0, checked: Instant::now() }
    }

    /// A look found nothing: a step of what drives the kernel, and now and then a check of it.
    #[inline]
    pub fn note(&mut self, core: &KernelCore) -> Result<(), DeviceFault> {
        core.after_idle_poll();
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_CHECK) { self.check(core) } else { Ok(()) }
    }

    /// Why a look found nothing: `Empty` for now, all else for ever.
    #[inline]
    pub fn nothing(&mut self, core: &KernelCore) -> TryRecvError {
        match self.note(core) {
            Err(fault) => fault.into(),
            Ok(()) if core.device.is_active() => TryRecvError::Empty,
            Ok(()) => core.device.end().unwrap_or(TryRecvError::Empty),
        }
    }

    /// The next idle poll looks at the clock: polls have become rare.
    pub fn force_check(&mut self) {
        self.looks |= LOOKS_PER_CHECK - 1;
    }

    #[cold]
    fn check(&mut self, core: &KernelCore) -> Result<(), DeviceFault> {
        let now = Instant::now();
        if now - self.checked < core.device.patience.check_every() {
            return Ok(());
        }
        self.checked = now;
        core.check()
    }
}
