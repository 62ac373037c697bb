use super::late::{Late, Way};
use super::world::{Taken, World};
use crate::device::{Cells, Function, Grid, Launched, Limits, RunState, Sealed, Station};
use crate::error::DriverError;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Launches that are held back; when there are more, they are let go.
const MOST_HELD: usize = 8;

#[derive(Debug)]
pub(super) struct QuirkyFunction {
    pub inner: Arc<dyn Function>,
    pub taken: Taken,
    pub world: Arc<World>,
    /// Whether its parameter is a control block.
    pub is_kernel: bool,
}

impl Sealed for QuirkyFunction {}

impl Function for QuirkyFunction {
    fn limits(&self, threads: u32) -> Result<Limits, DriverError> {
        self.inner.limits(threads)
    }

    fn station(
        &self,
        grid: Grid,
        parameter: u64,
        replay: bool,
    ) -> Result<Arc<dyn Station>, DriverError> {
        self.world.count_launch(self.taken, "station")?;
        self.world.enter(self.taken, "station")?;
        if replay && self.taken.graphs {
            return Err(self.world.unsupported("there are no graphs"));
        }
        if grid.cooperative && self.taken.cooperative {
            return Err(self.world.unsupported("there is no cooperative launch"));
        }
        let id = self.world.number();
        // A course of its own for each place.
        let late = self.taken.late.map(|seed| Mutex::new(Late::new(seed ^ id << 32)));
        let station = Arc::new(QuirkyStation {
            inner: self.inner.station(grid, parameter, replay)?,
            taken: self.taken,
            world: Arc::clone(&self.world),
            queue: Mutex::default(),
            late,
            id,
            kernel: self.is_kernel.then_some((parameter, grid.channels)),
            idle: (self.taken.idle && self.world.is_probed()).then(AtomicU64::default),
        });
        if self.world.ledger().is_pinned(parameter) {
            station.enter(); // device memory is laid out when it is launched
        }
        self.world.add(Arc::downgrade(&station));
        Ok(station)
    }
}

#[derive(Debug, Default)]
struct Queue {
    /// Launches that are held back: for each, whether it replays the graph.
    held: heapless::Vec<bool, MOST_HELD>,
    /// When the last one was let go.
    launched: Option<Instant>,
    /// Why one that was held back could not be made: it can be told only afterwards.
    failed: Option<DriverError>,
}

#[derive(Debug)]
pub(super) struct QuirkyStation {
    inner: Arc<dyn Station>,
    taken: Taken,
    world: Arc<World>,
    queue: Mutex<Queue>,
    /// Copies that land late.
    late: Option<Mutex<Late>>,
    /// Whose entry in the ledger is whose.
    id: u64,
    /// Parameter and channels, if it has a control block.
    kernel: Option<(u64, u32)>,
    /// Launches on an idle device that have not ended.
    idle: Option<AtomicU64>,
}

impl Drop for QuirkyStation {
    fn drop(&mut self) {
        self.world.ledger().remove(self.id);
    }
}

impl QuirkyStation {
    /// Enters the kernel in the ledger, if it is not there yet. Its memory is laid out.
    fn enter(&self) {
        if let Some(kernel) = self.kernel {
            self.world.ledger().enter(self.id, kernel, self.idle.is_some());
        }
    }

    /// Launches of an idle device end.
    pub fn end_launches(&self) {
        if let Some(launches) = &self.idle {
            launches.store(0, Ordering::Relaxed);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The copies that land late, if any do, after what is due has landed.
    fn late(&self) -> Option<MutexGuard<'_, Late>> {
        let mut late = self.late.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        match self.world.fault() {
            Some(_) => late.give_up(),
            None => late.pass(&*self.inner),
        }
        Some(late)
    }

    /// Whether a launch is on the device. What is held back is not.
    pub fn is_running(&self) -> bool {
        self.look(&self.queue()) == RunState::Running
    }

    /// How the inner station's launches go; the watchdog looks too.
    fn look(&self, queue: &Queue) -> RunState {
        let idles = self.idle.as_ref().is_some_and(|n| n.load(Ordering::Relaxed) > 0);
        let state = if idles { RunState::Running } else { self.inner.state() };
        if let (RunState::Running, Some(limit), Some(launched)) =
            (&state, self.taken.watchdog, queue.launched)
            && launched.elapsed() > limit
        {
            self.world.time_out(limit);
        }
        state
    }

    /// Lets go what is held back; drops it if the device has faulted.
    fn let_go(&self, queue: &mut Queue) {
        while let Some(&replay) = queue.held.first() {
            if self.world.fault().is_some() {
                return queue.held.clear();
            }
            // SAFETY: the promise to `launch`, which put it here, holds until `is_over`, which is
            // not before the queue is empty.
            match unsafe { self.inner.launch(replay) } {
                Ok(Launched::Yes) => queue.launched = Some(Instant::now()),
                Ok(Launched::NotYet) => return, // held back until the next look
                Err(error) => drop(queue.failed.get_or_insert(error)),
            }
            queue.held.remove(0);
        }
    }
}

impl Sealed for QuirkyStation {}

impl Station for QuirkyStation {
    unsafe fn launch(&self, replay: bool) -> Result<Launched, DriverError> {
        if self.world.is_loading() {
            return Ok(Launched::NotYet);
        }
        self.world.enter_launch(self.taken, replay)?;
        self.enter();
        let mut queue = self.queue();
        if let Some(launches) = &self.idle {
            launches.fetch_add(1, Ordering::Relaxed);
            queue.launched = Some(Instant::now());
            return Ok(Launched::Yes);
        }
        if self.taken.held_launches {
            tracing::debug!("a launch is held back");
            if queue.held.is_full() {
                self.let_go(&mut queue);
            }
            return match queue.held.push(replay) {
                Ok(()) => Ok(Launched::Yes),
                Err(_) => Ok(Launched::NotYet),
            };
        }
        // SAFETY: the caller's promise, to the station that has the parameter.
        let launched = unsafe { self.inner.launch(replay) }?;
        if launched == Launched::Yes {
            queue.launched = Some(Instant::now());
            self.world.hold_up(self.taken, || self.look(&queue) == RunState::Running);
        }
        Ok(launched)
    }

    fn state(&self) -> RunState {
        drop(self.late());
        let mut queue = self.queue();
        self.let_go(&mut queue);
        let state = self.look(&queue);
        match self.world.fault().or(queue.failed.as_ref()) {
            Some(fault) => RunState::Faulted(fault.clone()),
            None => state,
        }
    }

    fn copies(&self) -> RunState {
        let late = self.late();
        let failed = late.as_ref().and_then(|late| late.failed());
        match self.world.fault().or(failed) {
            Some(fault) => RunState::Faulted(fault.clone()),
            None if late.as_ref().is_some_and(|late| late.is_under_way()) => RunState::Running,
            None => self.inner.copies(),
        }
    }

    /// Only if the inner station says so, and no copy is to land, whatever faults were made up: memory is
    /// freed by it. So the kernel's lines are let go.
    fn is_over(&self) -> bool {
        self.let_go(&mut self.queue());
        let mut late = self.late();
        let under_way = late.as_ref().is_some_and(|late| late.is_under_way());
        if let Some(late) = &mut late {
            late.land_all(&*self.inner); // nobody asks often: by the next time they are over
        }
        drop(late);
        let over = self.inner.is_over() && !under_way;
        if over {
            self.world.ledger().remove(self.id);
        }
        over
    }

    fn note_processed(&self, processed: u64) {
        self.inner.note_processed(processed);
        self.world.note_processed(self.taken, processed);
    }

    unsafe fn copy_in(
        &self,
        to: u64,
        from: NonNull<u8>,
        bytes: usize,
        cells: Cells,
    ) -> Result<(), DriverError> {
        self.world.enter_copy(self.taken)?;
        if let Some(mut late) = self.late() {
            late.begin(Way::In { to, from }, bytes, cells);
            return Ok(());
        }
        // SAFETY: the caller's promise: `is_over` is not before the inner station's.
        unsafe { self.inner.copy_in(to, from, bytes, cells) }?;
        self.world.hold_up(self.taken, || self.is_running());
        Ok(())
    }

    unsafe fn copy_out(
        &self,
        to: NonNull<u8>,
        from: u64,
        bytes: usize,
        cells: Cells,
    ) -> Result<(), DriverError> {
        self.world.enter_copy(self.taken)?;
        if let Some(mut late) = self.late() {
            late.begin(Way::Out { to, from }, bytes, cells);
            return Ok(());
        }
        // SAFETY: the caller's promise: `is_over` is not before the inner station's.
        unsafe { self.inner.copy_out(to, from, bytes, cells) }?;
        self.world.hold_up(self.taken, || self.is_running());
        Ok(())
    }
}
