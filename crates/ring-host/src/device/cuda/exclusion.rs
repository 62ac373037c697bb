//! Resident kernels on one side, and on the other side work that would block until they end, such as
//! loading code: one of the two at a time. Neither side holds a lock while it has the device.

use crate::sync::{lock, unpoisoned};
use std::sync::{Condvar, Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(super) struct Exclusion {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Kernels launched and not seen to have ended.
    resident: usize,
    /// Somebody does work that needs an idle device. Then no kernel is resident.
    working: bool,
}

impl Exclusion {
    /// Counts a kernel that is about to be launched, unless work is under way. Never waits for that.
    pub fn enter(&self) -> bool {
        let mut state = lock(&self.state);
        if !state.working {
            state.resident += 1;
        }
        !state.working
    }

    /// A kernel that was counted has ended.
    pub fn leave(&self) {
        lock(&self.state).resident -= 1;
    }

    /// Kernels that are counted.
    pub fn resident(&self) -> usize {
        lock(&self.state).resident
    }

    /// Does the work if no kernel is resident, after the work of others; or says how many are.
    pub fn work<T>(&self, work: impl FnOnce() -> T) -> Result<T, usize> {
        let mut state = lock(&self.state);
        while state.working {
            state = unpoisoned(self.changed.wait(state));
        }
        self.work_now(state, work)
    }

    /// The same, but not if others are at work.
    pub fn try_work<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let state = lock(&self.state);
        if state.working { None } else { self.work_now(state, work).ok() }
    }

    fn work_now<T>(
        &self,
        mut state: MutexGuard<'_, State>,
        work: impl FnOnce() -> T,
    ) -> Result<T, usize> {
        if state.resident > 0 {
            return Err(state.resident);
        }
        state.working = true;
        drop(state);
        let _done = Done(self);
        Ok(work())
    }
}

/// Work that is over when this is dropped, also by a panic.
struct Done<'a>(&'a Exclusion);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).working = false;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Who launches is told at once that code is being loaded, however long that takes.
    #[test]
    fn a_launch_does_not_wait_for_work() {
        let exclusion = Exclusion::default();
        let (begun, wait_begun) = mpsc::channel();
        let (end, wait_end) = mpsc::channel();
        std::thread::scope(|scope| {
            let work = move || {
                begun.send(()).unwrap();
                wait_end.recv().unwrap();
                7
            };
            let exclusion = &exclusion;
            let worker = scope.spawn(move || exclusion.work(work));
            wait_begun.recv().unwrap();
            assert!(!exclusion.enter()); // the work has not ended, and does not before `end`
            assert_eq!(exclusion.try_work(|| ()), None);
            assert_eq!(exclusion.resident(), 0);
            end.send(()).unwrap();
            assert_eq!(worker.join().unwrap(), Ok(7));
        });
        assert!(exclusion.enter());
        assert_eq!(exclusion.work(|| ()), Err(1));
        assert_eq!(exclusion.try_work(|| ()), None);
        exclusion.leave();
        assert_eq!(exclusion.work(|| 8), Ok(8));
    }

    #[test]
    fn work_that_panics_is_over() {
        let exclusion = Exclusion::default();
        let work = std::panic::AssertUnwindSafe(|| exclusion.work(|| panic!("on purpose")));
        assert!(std::panic::catch_unwind(work).is_err());
        assert!(exclusion.enter());
    }
}
