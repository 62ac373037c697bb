use super::late::Late;
use super::state::{Faults, State};
use crate::device::{CopyLane, MemoryCopy, RunState, Sealed};
use crate::error::DriverError;
use crate::sync::lock;
use std::sync::{Arc, Mutex, MutexGuard};

/// Copies that fail and land late: those of a kernel, or those that are no kernel's.
#[derive(Debug)]
pub(super) struct QuirkyCopyLane {
    inner: Arc<dyn CopyLane>,
    faults: Faults,
    state: Arc<State>,
    /// Copies that land late.
    late: Option<Mutex<Late>>,
}

impl QuirkyCopyLane {
    /// Copies over `inner`; `seed` is that of their course, if they land late.
    pub fn new(
        inner: Arc<dyn CopyLane>,
        (faults, state): (Faults, Arc<State>),
        seed: Option<u64>,
    ) -> QuirkyCopyLane {
        let late = seed.map(|seed| Mutex::new(Late::new(seed)));
        QuirkyCopyLane { inner, faults, state, late }
    }

    /// The copies that land late, if any do, after what is due has landed.
    pub fn late(&self) -> Option<MutexGuard<'_, Late>> {
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
