//! Host threads pinned to processors.

use core_affinity::CoreId;
use std::thread;

/// Processors that this process may use.
#[derive(Clone, Debug)]
pub struct Cores {
    ids: Vec<CoreId>,
    pinned: bool,
}

impl Cores {
    /// Asks the system, and tries whether it lets threads be pinned.
    pub fn find() -> Cores {
        let ids = core_affinity::get_core_ids().unwrap_or_default();
        let try_it = |id: CoreId| thread::spawn(move || core_affinity::set_for_current(id)).join();
        let pinned = ids.first().is_some_and(|id| try_it(*id).unwrap_or(false));
        Cores { ids, pinned }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ids.len().max(1)
    }

    /// Whether threads are pinned; else the system moves them as it likes.
    pub fn pinned(&self) -> bool {
        self.pinned
    }

    /// Puts the calling thread on the `k`-th processor, counted round from the second: the first is
    /// where systems like to handle interrupts.
    pub fn pin(&self, k: usize) {
        if self.pinned
            && let Some(id) = self.ids.get((k + 1) % self.count())
        {
            core_affinity::set_for_current(*id);
        }
    }

    /// Runs `work` on the `k`-th processor. Threads that it begins stay there, too.
    pub fn on<T: Send>(&self, k: usize, work: impl FnOnce() -> T + Send) -> T {
        let pinned = || {
            self.pin(k);
            work()
        };
        thread::scope(|scope| match scope.spawn(pinned).join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_on_any_processor_by_another_thread() {
        let cores = Cores::find();
        let here = thread::current().id();
        for k in 0..2 * cores.count() {
            assert_ne!(cores.on(k, || thread::current().id()), here);
        }
    }
}
