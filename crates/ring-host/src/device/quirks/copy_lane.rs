use super::late::Late;
use super::state::{Faults, State};
use crate::device::{CopyLane, MemoryCopy, RunState, Sealed};
use crate::error::DriverError;
use crate::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard};

/// Copies that are no kernel's: they fail, block and land late as those of kernels do.
#[derive(Debug)]
pub(super) struct QuirkyCopyLane {
    pub inner: Arc<dyn CopyLane>,
    pub faults: Faults,
    pub state: Arc<State>,
    /// Copies that land late.
    pub late: Option<Mutex<Late>>,
}

impl QuirkyCopyLane {
    /// The copies that land late, if any do, after what is due has landed.
    fn late(&self) -> Option<MutexGuard<'_, Late>> {
        let mut late = lock(self.late.as_ref()?);
        match self.state.fault() {
            Some(_) => late.give_up(),
            None => late.pass(&*self.inner),
        }
        Some(late)
    }
}

impl Sealed for QuirkyCopyLane {}

impl CopyLane for QuirkyCopyLane {
    fn copies(&self) -> RunState {
        let late = self.late();
        let failed = late.as_ref().and_then(|late| late.failed());
        match self.state.fault().or(failed) {
            Some(fault) => RunState::Faulted(fault.clone()),
            None if late.as_ref().is_some_and(|late| late.is_under_way()) => RunState::Running,
            None => self.inner.copies(),
        }
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        self.state.enter_copy(self.faults)?;
        if let Some(mut late) = self.late() {
            late.begin(copy);
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { self.inner.copy(copy) }
    }
}
