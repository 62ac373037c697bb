//! What drives a kernel that is not simply resident in mapped memory: launches that follow each
//! other, and trips between staging and device. There is no thread behind it: every send and every
//! fruitless receive takes a step, which never waits.

use crate::device::{Launched, RunState, Station};
use crate::drive::mode::{Memory, Mode};
use crate::drive::report::Change;
use crate::drive::staging::{Back, Courier};
use crate::error::{DeviceFault, DriverError};
use crate::kernel::core::Shared;
use crate::memory::region::{Region, WireBudgets};
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard};
use ring_shared::layout::{Command, State};
use ring_shared::ring::{CONTROL, Control};
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Failures of the driver, one after the other, after which a kernel is given up.
const MOST_FAILURES: u32 = 3;

/// Launches, one after the other, before the driver is asked whether those before are over. Else a
/// device that only says so would fill the driver's queue, and the call that finds it full blocks.
const MOST_UNSEEN: u32 = 256;

/// Changes of mode or memory that are remembered.
pub(crate) const MOST_CHANGES: usize = 4;

/// How a kernel is driven: what was chosen, and what may be changed when an operation fails.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drive {
    pub mode: Mode,
    pub memory: Memory,
    pub mode_is_free: bool,
    pub memory_is_free: bool,
    /// Driver calls wait until what is on the device has left.
    pub calls_block: bool,
    /// What a launch may spend.
    pub budgets: WireBudgets,
    /// What it may spend after a change for the worse.
    pub fallback: WireBudgets,
}

/// Where a kernel in staged memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing on the device, and all that it answered is here.
    Resting,
    /// As `Resting`, but something is carried out, and a launch follows.
    Loading,
    /// Launched.
    Running,
    /// The launch has left; its last answers are being carried back.
    Landing,
}

/// Drives one kernel.
#[derive(Debug)]
pub(crate) struct Pump {
    inner: Mutex<Inner>,
    /// Launches so far.
    launches: AtomicU64,
    /// Those who copy between launches.
    holds: AtomicU32,
}

#[derive(Debug)]
struct Inner {
    drive: Drive,
    phase: Phase,
    courier: Option<Courier>,
    submitted: u64,
    /// Launches since the driver last said that nothing was on the device.
    unseen: u32,
    launched_at: Instant,
    /// New budgets are to be carried out.
    budgets_changed: bool,
    /// Somebody wants the channels' times: with the next trip back.
    times_wanted: bool,
    /// No launch, for now: somebody copies between launches.
    hold: bool,
    /// The driver says that nothing is on the device.
    ended: bool,
    failures: u32,
    changes: heapless::Vec<Change, MOST_CHANGES>,
}

impl Pump {
    /// Drives the kernel of that region and station, which was not launched yet.
    pub fn new(drive: Drive, region: &Region, station: &dyn Station) -> Result<Pump, DriverError> {
        let mut courier = (drive.memory != Memory::Mapped).then(|| Courier::new(region));
        if let Some(courier) = &mut courier {
            courier.go_first(region, station)?;
        }
        let inner = Inner {
            drive,
            phase: if drive.mode == Mode::Persistent { Phase::Loading } else { Phase::Resting },
            courier,
            submitted: 0,
            unseen: 0,
            launched_at: Instant::now(),
            budgets_changed: false,
            times_wanted: false,
            hold: false,
            ended: false,
            failures: 0,
            changes: heapless::Vec::new(),
        };
        Ok(Pump { inner: Mutex::new(inner), launches: AtomicU64::new(0), holds: AtomicU32::new(0) })
    }

    /// A step, after a message was accepted or a command written.
    pub fn step(&self, shared: &Shared) -> Result<(), DeviceFault> {
        self.with(shared, |_| ())
    }

    /// A step, unless another thread is at one.
    #[inline]
    pub fn try_step(&self, shared: &Shared) -> Result<(), DeviceFault> {
        match self.inner.try_lock() {
            Ok(mut inner) => self.stepped(&mut inner, shared),
            Err(TryLockError::Poisoned(inner)) => self.stepped(&mut inner.into_inner(), shared),
            Err(TryLockError::WouldBlock) => Ok(()),
        }
    }

    fn with<T>(&self, shared: &Shared, then: impl FnOnce(&Inner) -> T) -> Result<T, DeviceFault> {
        let mut inner = self.lock();
        self.stepped(&mut inner, shared)?;
        Ok(then(&inner))
    }

    fn stepped(&self, inner: &mut Inner, shared: &Shared) -> Result<(), DeviceFault> {
        if let Some(fault) = shared.fault() {
            return Err(fault); // what is on the device leaves by its budgets
        }
        inner.hold = self.holds.load(Ordering::Relaxed) > 0;
        let stepped = inner.step(shared);
        self.launches.store(inner.submitted, Ordering::Relaxed);
        stepped.map_err(|fault| shared.fail(fault))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A step; whether nothing is on the device and all that it answered is here.
    pub fn is_resting(&self, shared: &Shared) -> Result<bool, DeviceFault> {
        self.with(shared, |inner| inner.is_resting(shared))
    }

    /// Keeps launches away until it is dropped, if copies cannot be made beside one. They can be made
    /// once the kernel rests.
    pub fn hold(&self) -> Option<Hold<'_>> {
        let drive = self.lock().drive;
        let alone = drive.calls_block || drive.memory == Memory::StagedSync;
        alone.then(|| Hold::new(&self.holds))
    }

    /// A step towards fresh counters; whether they are there. Begin with `None`, go on with the
    /// number it gives.
    pub fn refresh(&self, shared: &Shared, until: Option<u64>) -> Result<Option<u64>, DeviceFault> {
        let mut inner = self.lock();
        let Some(delivered) = inner.courier.as_ref().map(|courier| courier.delivered) else {
            return Ok(None);
        };
        let until = until.unwrap_or(delivered + 2); // one may be under way, from before
        if delivered >= until || inner.phase == Phase::Resting {
            return Ok(None);
        }
        inner.times_wanted = true;
        self.stepped(&mut inner, shared)?;
        Ok(Some(until))
    }

    /// Nothing is on the device, the driver says. Whether the kernel has ended although some launch
    /// never said that it left; where that must be carried back first, a step will tell.
    pub fn ended_early(&self, shared: &Shared) -> bool {
        let Ok(mut inner) = self.inner.try_lock() else { return false };
        let ended = shared.station().state() == RunState::Ended; // none was launched meanwhile
        inner.ended = ended && inner.courier.is_some();
        ended && inner.courier.is_none() && shared.left() < inner.submitted
    }

    /// Whether no launch is on the device and all answers are here; false if another thread is at it.
    pub fn has_come_to_rest(&self, shared: &Shared) -> bool {
        self.inner.try_lock().is_ok_and(|inner| inner.is_resting(shared))
    }

    pub fn launches(&self) -> u64 {
        self.launches.load(Ordering::Relaxed)
    }

    /// Mode and memory as they are now.
    pub fn now(&self) -> (Mode, Memory) {
        let inner = self.lock();
        (inner.drive.mode, inner.drive.memory)
    }

    pub fn changes(&self) -> heapless::Vec<Change, MOST_CHANGES> {
        self.lock().changes.clone()
    }
}

/// Keeps launches away while it lives.
#[derive(Debug)]
pub(crate) struct Hold<'a>(&'a AtomicU32);

impl<'a> Hold<'a> {
    fn new(holds: &'a AtomicU32) -> Hold<'a> {
        holds.fetch_add(1, Ordering::Relaxed); // who launches reads it under the lock we take next
        Hold(holds)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    fn step(&mut self, shared: &Shared) -> Result<(), DeviceFault> {
        let left = shared.left_of(self.submitted)?;
        if self.courier.is_none() {
            return self.step_mapped(shared, left);
        }
        // A device whose copies are over at once gets further in one step.
        for _ in 0..3 {
            if !self.step_staged(shared)? {
                break;
            }
        }
        Ok(())
    }

    fn step_mapped(&mut self, shared: &Shared, left: u64) -> Result<(), DeviceFault> {
        match self.submitted - left {
            0 if self.wants_launch(shared)? => self.launch(shared),
            1 if self.wants_follow_up(shared) => self.launch(shared),
            _ => Ok(()),
        }
    }

    /// Whether another step may get further at once.
    fn step_staged(&mut self, shared: &Shared) -> Result<bool, DeviceFault> {
        let both = (shared.region(), shared.station());
        let (region, station) = both;
        let Some(courier) = &mut self.courier else { return Ok(false) };
        if !courier.is_home() {
            match station.copies() {
                RunState::Running => return Ok(false),
                RunState::Faulted(error) => return Err(shared.device_fault(&error)),
                RunState::Ended => {}
            }
            let delivered = courier.delivered;
            if let Err(error) =
                courier.arrive(region, station, |channel, found| shared.corrupt(channel, found))?
            {
                if self.phase == Phase::Landing {
                    self.phase = Phase::Running; // the last answers are still to be fetched
                }
                return self.failed(shared, Work::Copy, error).map(|()| false);
            }
            if courier.delivered > delivered {
                self.failures = 0; // there and back: copies work
            }
            return Ok(true);
        }
        let received = |channel| shared.received(channel);
        let begun = match self.phase {
            Phase::Resting if self.budgets_changed => {
                courier.go_with_budgets(region, station).map(|()| self.budgets_changed = false)
            }
            Phase::Resting => {
                if !self.wants_launch(shared)? {
                    return Ok(false);
                }
                let Some(courier) = &mut self.courier else { return Ok(false) };
                courier.go_out(both, received, true).map(|_| self.phase = Phase::Loading)
            }
            Phase::Loading if self.hold || shared.ordered().state == State::Terminated as u32 => {
                self.phase = Phase::Resting;
                Ok(())
            }
            Phase::Loading => {
                self.launch(shared)?;
                return Ok(false);
            }
            Phase::Running => {
                let left = self.has_left(shared);
                if !left && self.wants_follow_up(shared) {
                    self.launch(shared)?;
                }
                match self.run_on(shared, left) {
                    Ok(more) => return Ok(more),
                    Err(error) => Err(error),
                }
            }
            Phase::Landing => {
                if shared.left() < self.submitted {
                    shared.check_channels()?;
                    return Err(shared.refused());
                }
                tracing::trace!(kernel = shared.kernel, launches = self.submitted, "at rest");
                self.phase = Phase::Resting;
                return Ok(true);
            }
        };
        match begun {
            Ok(()) => Ok(true),
            Err(error) => self.failed(shared, Work::Copy, error).map(|()| false),
        }
    }

    /// Whether all launches have left, as far as can be known now.
    fn has_left(&self, shared: &Shared) -> bool {
        let told = shared.left() >= self.submitted || self.ended;
        let asks = self.drive.mode != Mode::Persistent;
        told || asks && shared.station().state() == RunState::Ended
    }

    /// The next trip while a launch is on the device, or the last one after it has left.
    fn run_on(&mut self, shared: &Shared, left: bool) -> Result<bool, DriverError> {
        let both = (shared.region(), shared.station());
        let Some(courier) = &mut self.courier else { return Ok(false) };
        if left {
            courier.go_back(both.0, both.1, Back { times: true, last: true })?;
            self.phase = Phase::Landing;
            self.times_wanted = false;
            return Ok(true);
        }
        if self.drive.memory == Memory::StagedSync {
            return Ok(false);
        }
        if courier.go_out(both, |channel| shared.received(channel), false)? {
            // Straight back, twice: the first copy takes about as long as the device needs for an
            // answer, which the second one then brings.
            courier.go_back(both.0, both.1, Back { times: false, last: false })?;
            courier.go_back(both.0, both.1, Back { times: false, last: false })?;
            return Ok(true);
        }
        let leaving = shared.ordered().state == State::Terminated as u32;
        let tells_more = courier.is_behind() || !shared.has_acknowledged();
        if courier.is_owed() || leaving || self.times_wanted || tells_more {
            courier.go_back(both.0, both.1, Back { times: self.times_wanted, last: false })?;
            self.times_wanted = false;
            return Ok(true);
        }
        Ok(false)
    }

    fn is_resting(&self, shared: &Shared) -> bool {
        match self.courier {
            Some(_) => self.phase == Phase::Resting,
            None => self.submitted <= shared.left(),
        }
    }

    /// Whether a kernel at rest has something to do: messages that it can answer, or a command to
    /// become active.
    fn wants_launch(&self, shared: &Shared) -> Result<bool, DeviceFault> {
        if self.hold || shared.ordered().state != State::Active as u32 {
            return Ok(false);
        }
        if !shared.has_acknowledged() {
            return Ok(true);
        }
        Ok((0..shared.region().channels()).any(|channel| {
            let (pending, head) = pending(shared.region(), channel);
            let room =
                head.wrapping_sub(shared.received(channel)) < shared.region().capacity().into();
            pending > 0 && room
        }))
    }

    /// Whether another launch should stand behind the one on the device, so that the device does
    /// not idle between them: work is pending, and half of the launch's time, or nobody knows how
    /// much of its iterations, is spent.
    fn wants_follow_up(&self, shared: &Shared) -> bool {
        let drive = &self.drive;
        let alone = drive.calls_block || drive.memory == Memory::StagedSync || self.hold;
        if drive.mode == Mode::Persistent
            || alone
            || self.submitted.saturating_sub(shared.left()) != 1
        {
            return false;
        }
        let half = Duration::from_nanos(drive.budgets.time / 2);
        let counted = drive.budgets.iterations != u64::MAX;
        shared.ordered().state == State::Active as u32
            && (0..shared.region().channels())
                .any(|channel| pending(shared.region(), channel).0 > 0)
            && (counted || self.launched_at.elapsed() >= half)
    }

    fn launch(&mut self, shared: &Shared) -> Result<(), DeviceFault> {
        shared.check_channels()?; // a lost channel is not run again
        if self.unseen >= MOST_UNSEEN {
            match shared.station().state() {
                RunState::Running => return Ok(()), // a later step will do it
                RunState::Ended => self.unseen = 0,
                RunState::Faulted(error) => return Err(shared.device_fault(&error)),
            }
        }
        let replay = self.drive.mode == Mode::Graph;
        // SAFETY: the region is laid out for this kernel, and stays until the station is over
        // (`Shared::drop`).
        match unsafe { shared.station().launch(replay) } {
            Ok(Launched::NotYet) => Ok(()), // a later step will do it
            Ok(Launched::Yes) => {
                self.submitted += 1;
                self.unseen += 1;
                self.ended = false;
                self.failures = 0;
                self.launched_at = Instant::now();
                self.phase = Phase::Running;
                // Some drivers begin nothing before they are asked how it goes.
                let _ = shared.station().state();
                Ok(())
            }
            Err(error) => self.failed(shared, Work::Launch, error),
        }
    }

    /// An operation failed: change to a way that does without it if that may be, else try again a
    /// few times. Nothing is lost: what was sent is in the host's ring until it was answered.
    #[cold]
    fn failed(
        &mut self,
        shared: &Shared,
        work: Work,
        error: DriverError,
    ) -> Result<(), DeviceFault> {
        if let RunState::Faulted(error) = shared.station().state() {
            return Err(shared.device_fault(&error));
        }
        let drive = &mut self.drive;
        let from = (drive.mode, drive.memory);
        match work {
            Work::Launch if drive.mode == Mode::Graph && drive.mode_is_free => {
                drive.mode = Mode::EventDriven;
            }
            Work::Copy if drive.memory == Memory::StagedAsync && drive.memory_is_free => {
                if drive.mode == Mode::Persistent && drive.mode_is_free {
                    drive.mode = Mode::EventDriven; // it leaves by itself when nothing reaches it
                }
                if drive.mode != Mode::Persistent {
                    drive.memory = Memory::StagedSync;
                    drive.budgets = WireBudgets { idle: 0, ..drive.fallback };
                    shared.region().set_budgets(drive.budgets);
                    self.budgets_changed = true;
                }
            }
            _ => {}
        }
        let to = (drive.mode, drive.memory);
        if from != to {
            self.failures = 0;
            let kernel = shared.kernel;
            tracing::warn!(kernel, mode = %to.0, memory = %to.1, %error, "went down a rung");
            let _ = self.changes.push(Change { from, to, why: error });
            return Ok(());
        }
        self.failures += 1;
        tracing::warn!(kernel = shared.kernel, %error, failures = self.failures, "will be retried");
        match self.failures < MOST_FAILURES {
            true => Ok(()),
            false => Err(DeviceFault::Driver { kernel: shared.kernel, source: error }),
        }
    }
}

/// Tries a call of the driver a few times: some fail now and then.
pub(crate) fn patiently<T>(
    mut call: impl FnMut() -> Result<T, DriverError>,
) -> Result<T, DriverError> {
    let mut done = call();
    for _ in 1..MOST_FAILURES {
        if done.is_ok() {
            break;
        }
        done = call();
    }
    done
}

/// What failed.
#[derive(Clone, Copy, Debug)]
enum Work {
    Launch,
    Copy,
}

/// Requests of a channel that the device has not consumed, and the index of the first of them, as far
/// as the host knows.
fn pending(region: &Region, channel: u32) -> (u32, u64) {
    let block = region.channel(channel);
    let head = block.consumed();
    let tail = Control::from_words(block.request_bell.atoms[CONTROL].load()).tail;
    (tail.wrapping_sub(head as u32).min(region.capacity()), head)
}

/// The epoch and state in a word.
pub(crate) fn epoch_of(word: u64) -> u32 {
    Command::from_word(word).epoch
}
