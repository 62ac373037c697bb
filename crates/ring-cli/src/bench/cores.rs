//! Host threads pinned to processors.

use super::context::wrong;
use super::report::Found;
use core_affinity::CoreId;
use std::sync::Barrier;
use std::thread;

/// Host threads for so many jobs: no more than there are processors, and each has as many jobs as any other.
pub fn hosts(jobs: usize, processors: usize) -> usize {
    jobs.div_ceil(jobs.div_ceil(jobs.min(processors)))
}

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

    /// Runs `work` on all items at once, each on a processor of its own as long as there are some.
    pub fn at_once<I: Send, T: Send>(
        &self,
        items: impl ExactSizeIterator<Item = I>,
        work: impl Fn(I) -> Found<T> + Sync,
    ) -> Found<Vec<T>> {
        let start = Barrier::new(items.len());
        let one = |(k, item)| {
            self.pin(k);
            start.wait();
            work(item)
        };
        let ended: Vec<_> = thread::scope(|scope| {
            let spawn = |item| scope.spawn(|| one(item));
            let threads: Vec<_> = items.enumerate().map(spawn).collect();
            let lost = |_| Err(wrong("a host thread panicked while it measured"));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
        });
        ended.into_iter().collect()
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
