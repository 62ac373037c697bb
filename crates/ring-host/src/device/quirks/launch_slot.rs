use super::copy_lane::QuirkyCopyLane;
use super::state::{Faults, State, Watched};
use crate::device::{
    CopyLane, Function, Grid, LaunchSlot, Launched, Limits, MemoryCopy, RunState, Sealed,
};
use crate::error::DriverError;
use crate::sync::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Launches that are held back; when there are more, they are let go.
const MOST_HELD: usize = 8;

#[derive(Debug)]
pub(super) struct QuirkyFunction {
    pub inner: Arc<dyn Function>,
    pub faults: Faults,
    pub state: Arc<State>,
    /// Whether its parameter is a control block.
    pub is_kernel: bool,
}

impl Sealed for QuirkyFunction {}

impl Function for QuirkyFunction {
    fn limits(&self, threads: u32) -> Result<Limits, DriverError> {
        self.inner.limits(threads)
    }

    fn launch_slot(
        &self,
        grid: Grid,
        parameter: u64,
        replay: bool,
    ) -> Result<Arc<dyn LaunchSlot>, DriverError> {
        self.state.count_launch(self.faults, "launch slot")?;
        self.state.enter(self.faults, "launch slot")?;
        if replay && self.faults.graphs {
            return Err(self.state.unsupported("there are no graphs"));
        }
        if grid.cooperative && self.faults.cooperative {
            return Err(self.state.unsupported("there is no cooperative launch"));
        }
        let id = self.state.number();
        // A course of its own for each place.
        let seed = self.faults.late.map(|seed| seed ^ id << 32);
        let inner = self.inner.launch_slot(grid, parameter, replay)?;
        let (faults, state) = (self.faults, Arc::clone(&self.state));
        let copies = QuirkyCopyLane::new(Arc::clone(&inner) as _, (faults, state), seed);
        let launch_slot = Arc::new(QuirkyLaunchSlot {
            inner,
            faults: self.faults,
            state: Arc::clone(&self.state),
            queue: Mutex::default(),
            copies,
            id,
            kernel: self.is_kernel.then_some((parameter, grid.blocks)),
            idle: (self.faults.idle && self.state.is_probed()).then(AtomicU64::default),
        });
        if self.state.table().is_pinned(parameter) {
            launch_slot.enter(); // device memory is laid out when it is launched
        }
        let watched: Arc<dyn Watched> = Arc::clone(&launch_slot) as _;
        self.state.add(Arc::downgrade(&watched));
        Ok(launch_slot)
    }
}

#[derive(Debug, Default)]
struct Queue {
    /// Launches that are held back: for each, whether it replays the graph.
    held: heapless::Vec<bool, MOST_HELD>,
    /// When the last one was let go.
    launched: Option<Instant>,
    /// Why one that was held back could not be made: the caller learns of it only afterwards.
    failed: Option<DriverError>,
}

#[derive(Debug)]
pub(super) struct QuirkyLaunchSlot {
    inner: Arc<dyn LaunchSlot>,
    faults: Faults,
    state: Arc<State>,
    queue: Mutex<Queue>,
    /// Its copies.
    copies: QuirkyCopyLane,
    /// Whose entry in the allocation table is whose.
    id: u64,
    /// Parameter and channels, if it has a control block.
    kernel: Option<(u64, u32)>,
    /// Launches on an idle device that have not ended.
    idle: Option<AtomicU64>,
}

impl Drop for QuirkyLaunchSlot {
    fn drop(&mut self) {
        self.state.table().remove(self.id);
    }
}

impl QuirkyLaunchSlot {
    /// Enters the kernel in the allocation table, if it is not there yet. Its memory is laid out.
    fn enter(&self) {
        if let Some(kernel) = self.kernel {
            self.state.table().enter(self.id, kernel, self.idle.is_some());
        }
    }

    /// How the inner launch slot's launches go; the watchdog looks too.
    fn look(&self, queue: &Queue) -> RunState {
        let idles = self.idle.as_ref().is_some_and(|n| n.load(Ordering::Relaxed) > 0);
        let state = if idles { RunState::Running } else { self.inner.state() };
        if let (RunState::Running, Some(limit), Some(launched)) =
            (&state, self.faults.watchdog, queue.launched)
            && launched.elapsed() > limit
        {
            self.state.time_out(limit);
        }
        state
    }

    /// Lets go what is held back; drops it if the device has faulted.
    fn let_go(&self, queue: &mut Queue) {
        while let Some(&replay) = queue.held.first() {
            if self.state.fault().is_some() {
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

impl Watched for QuirkyLaunchSlot {
    fn is_running(&self) -> bool {
        self.look(&lock(&self.queue)) == RunState::Running
    }

    fn end_launches(&self) {
        if let Some(launches) = &self.idle {
            launches.store(0, Ordering::Relaxed);
        }
    }
}

impl Sealed for QuirkyLaunchSlot {}

impl LaunchSlot for QuirkyLaunchSlot {
    unsafe fn launch(&self, replay: bool) -> Result<Launched, DriverError> {
        if self.state.is_loading() {
            return Ok(Launched::NotYet);
        }
        self.state.enter_launch(self.faults, replay)?;
        self.enter();
        let mut queue = lock(&self.queue);
        if let Some(launches) = &self.idle {
            launches.fetch_add(1, Ordering::Relaxed);
            queue.launched = Some(Instant::now());
            return Ok(Launched::Yes);
        }
        if self.faults.held_launches {
            tracing::debug!("a launch is held back");
            if queue.held.is_full() {
                self.let_go(&mut queue);
            }
            return match queue.held.push(replay) {
                Ok(()) => Ok(Launched::Yes),
                Err(_) => Ok(Launched::NotYet),
            };
        }
        // SAFETY: the caller's promise, to the launch slot that has the parameter.
        let launched = unsafe { self.inner.launch(replay) }?;
        if launched == Launched::Yes {
            queue.launched = Some(Instant::now());
            self.state.hold_up(self.faults, || self.look(&queue) == RunState::Running);
        }
        Ok(launched)
    }

    fn state(&self) -> RunState {
        drop(self.copies.late());
        let mut queue = lock(&self.queue);
        self.let_go(&mut queue);
        let state = self.look(&queue);
        match self.state.fault().or(queue.failed.as_ref()) {
            Some(fault) => RunState::Faulted(fault.clone()),
            None => state,
        }
    }

    /// Only if the inner launch slot says so, and no copy is to land, whatever faults were made up: memory is
    /// freed by it. So the kernel's lines are let go.
    fn is_over(&self) -> bool {
        self.let_go(&mut lock(&self.queue));
        let mut late = self.copies.late();
        let under_way = late.as_ref().is_some_and(|late| late.is_under_way());
        if let Some(late) = &mut late {
            late.land_all(&*self.inner); // nobody asks often: by the next time they are over
        }
        drop(late);
        let over = self.inner.is_over() && !under_way;
        if over {
            self.state.table().remove(self.id);
        }
        over
    }

    fn note_processed(&self, processed: u64) {
        self.inner.note_processed(processed);
        self.state.note_processed(self.faults, processed);
    }
}

impl CopyLane for QuirkyLaunchSlot {
    fn copies(&self) -> RunState {
        self.copies.copies()
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        // SAFETY: the caller's promise: `is_over` is not before the inner launch slot's.
        unsafe { self.copies.copy(copy) }?;
        if self.faults.late.is_none() {
            self.state.hold_up(self.faults, || self.is_running());
        }
        Ok(())
    }
}
