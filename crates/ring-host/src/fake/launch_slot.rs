//! The place for launches on a device that does what a test says.

use crate::device::{
    Cells, CopyKind, CopyLane, LaunchSlot, Launched, MemoryCopy, RunState, Sealed,
};
use crate::error::{DriverError, DriverReason};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the driver says of an error that a test asked for.
pub(super) fn refused() -> DriverError {
    DriverError {
        call: "fake",
        code: 304,
        reason: DriverReason::Words("refused by the test".into()),
    }
}

/// What a test lets happen on every launch, or on every look at the state of launches.
type Act = Box<dyn FnMut() + Send>;

/// A copy that was asked for and not made: addresses and length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy {
    pub to: usize,
    pub from: usize,
    pub bytes: usize,
    /// To the device.
    pub is_in: bool,
}

#[derive(Default)]
struct Script {
    /// Launches that were made, and whether each replays the graph.
    launches: Vec<bool>,
    /// Launches that have not ended.
    running: u64,
    /// The device has stopped.
    fault: Option<DriverError>,
    /// Whatever is asked, its memory may still be touched.
    stays: bool,
    /// Copies wait until they are let go.
    late: bool,
    waiting: VecDeque<Copy>,
    /// Copies that were asked for.
    copies: Vec<Copy>,
    /// So many launches are refused, and so many copies.
    refuse_launches: u32,
    refuse_copies: u32,
    /// Of copies, those from which on `refuse_copies` counts.
    spare_copies: u32,
    on_launch: Option<Act>,
    on_state: Option<Act>,
    /// What was told of messages handled.
    processed: Option<u64>,
}

/// A place for launches that does what a test says.
#[derive(Default)]
pub(crate) struct Fake(Mutex<Script>);

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

impl Fake {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All launches end.
    pub fn end(&self) {
        self.script().running = 0;
    }

    /// Whether its memory may still be touched, when all handles are gone.
    pub fn stays(&self, stays: bool) {
        self.script().stays = stays;
    }

    /// The device stops.
    pub fn fault(&self) {
        self.script().fault = Some(refused());
    }

    /// The next `n` launches are refused.
    pub fn refuse_launches(&self, n: u32) {
        self.script().refuse_launches = n;
    }

    /// After `spared` more, `n` copies are refused.
    pub fn refuse_copies(&self, spared: u32, n: u32) {
        let mut script = self.script();
        (script.spare_copies, script.refuse_copies) = (spared, n);
    }

    /// Copies from now on are not over before [`land`](Self::land).
    pub fn late(&self) {
        self.script().late = true;
    }

    /// Copies from now on are over at once again.
    pub fn prompt(&self) {
        self.script().late = false;
    }

    /// All copies that were asked for are made; how many.
    pub fn land(&self) -> usize {
        let waiting = std::mem::take(&mut self.script().waiting);
        waiting.iter().for_each(|copy| copy.make());
        waiting.len()
    }

    /// Called by every launch, before it is made.
    pub fn on_launch(&self, act: impl FnMut() + Send + 'static) {
        self.script().on_launch = Some(Box::new(act));
    }

    /// Called by every look at how launches go, before the answer.
    pub fn on_state(&self, act: impl FnMut() + Send + 'static) {
        self.script().on_state = Some(Box::new(act));
    }

    /// Nothing is called any more.
    pub fn forget(&self) {
        let acts = {
            let mut script = self.script();
            (script.on_launch.take(), script.on_state.take())
        };
        drop(acts); // not under the lock: what they hold may look here
    }

    /// Launches that were made: whether each replays the graph.
    pub fn launches(&self) -> Vec<bool> {
        self.script().launches.clone()
    }

    /// Copies that were asked for since the last call of this.
    pub fn copies_made(&self) -> Vec<Copy> {
        std::mem::take(&mut self.script().copies)
    }

    /// What was last told of messages handled.
    pub fn processed(&self) -> Option<u64> {
        self.script().processed
    }

    fn take(&self, copy: Copy, cells: Cells) -> Result<(), DriverError> {
        let cell = if cells == Cells::Atoms { 16 } else { 4 };
        assert!(
            [copy.to, copy.from, copy.bytes].iter().all(|n| n.is_multiple_of(cell)),
            "{copy:?}"
        );
        let mut script = self.script();
        if script.spare_copies > 0 {
            script.spare_copies -= 1;
        } else if script.refuse_copies > 0 {
            script.refuse_copies -= 1;
            return Err(refused());
        }
        script.copies.push(copy);
        match script.late {
            true => script.waiting.push_back(copy),
            false => copy.make(),
        }
        Ok(())
    }
}

impl Copy {
    fn make(self) {
        let from = std::ptr::with_exposed_provenance::<u8>(self.from);
        let to = std::ptr::with_exposed_provenance_mut::<u8>(self.to);
        // SAFETY: the promise to `copy`: both ranges are that long and stay. Tests
        // touch them from one thread.
        unsafe { from.copy_to(to, self.bytes) };
    }
}

impl Sealed for Fake {}

impl LaunchSlot for Fake {
    unsafe fn launch(&self, replay: bool) -> Result<Launched, DriverError> {
        let act = {
            let mut script = self.script();
            if script.refuse_launches > 0 {
                script.refuse_launches -= 1;
                return Err(refused());
            }
            script.on_launch.take()
        };
        if let Some(mut act) = act {
            act();
            self.script().on_launch.get_or_insert(act);
        }
        let mut script = self.script();
        if let Some(error) = &script.fault {
            return Err(error.clone());
        }
        script.launches.push(replay);
        script.running += 1;
        Ok(Launched::Yes)
    }

    fn state(&self) -> RunState {
        let act = self.script().on_state.take();
        if let Some(mut act) = act {
            act();
            self.script().on_state.get_or_insert(act);
        }
        let script = self.script();
        match &script.fault {
            Some(error) => RunState::Faulted(error.clone()),
            None if script.running > 0 => RunState::Running,
            None => RunState::Ended,
        }
    }

    fn is_over(&self) -> bool {
        !self.script().stays
    }

    fn note_processed(&self, processed: u64) {
        self.script().processed = Some(processed);
    }
}

impl CopyLane for Fake {
    fn copies(&self) -> RunState {
        let script = self.script();
        match &script.fault {
            Some(error) => RunState::Faulted(error.clone()),
            None if script.waiting.is_empty() => RunState::Ended,
            None => RunState::Running,
        }
    }

    unsafe fn copy(&self, copy: MemoryCopy) -> Result<(), DriverError> {
        let (to, from) = copy.ends();
        let (to, from) = (to.expose_provenance(), from.expose_provenance());
        let is_in = copy.kind == CopyKind::HostToDevice;
        self.take(Copy { to, from, bytes: copy.bytes, is_in }, copy.cells)
    }
}
