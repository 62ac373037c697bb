//! A launched kernel: its life cycle.

use crate::deadline::{Deadline, Patience, wait};
use crate::driver::{RunState, Running, Share};
use crate::error::{ControlError, DeviceFault, LaneError, RecvError, SendError};
use crate::lane::Lane;
use crate::region::Region;
use crate::runtime::{Core, Used, linger};
use ring_device::Kernel;
use ring_shared::layout::{Command, Exit, State};
use ring_shared::ring::{CONTROL, Control, Corrupt};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How long a dropped kernel is waited for before its memory is set aside.
const DROP_WAIT: Duration = Duration::from_millis(40);

/// A number on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded(pub AtomicU64);

/// What a kernel's handle and its lanes' halves have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub kernel: &'static str,
    /// How threads wait for messages.
    pub patience: Patience,
    /// Keeps the arenas that the region is a piece of.
    _core: Arc<Core>,
    region: ManuallyDrop<Region>,
    running: Arc<dyn Running>,
    /// Its share of the device, given back when it has left.
    share: Mutex<Option<Share>>,
    /// The [`State`] that senders go by.
    state: AtomicU32,
    /// It was asked to leave the device, and has.
    ended: AtomicBool,
    fault: OnceLock<DeviceFault>,
    /// For each lane, index after the last response received: written by the receiver only.
    pub received: Box<[Padded]>,
}

impl Shared {
    pub fn new(
        kernel: &'static str,
        core: Arc<Core>,
        region: Region,
        running: Arc<dyn Running>,
        share: Share,
    ) -> Arc<Shared> {
        let start = region.ring(0, 0).start();
        Arc::new(Shared {
            kernel,
            patience: core.patience(),
            _core: core,
            received: (0..region.lanes()).map(|_| Padded(AtomicU64::new(start))).collect(),
            region: ManuallyDrop::new(region),
            running,
            share: Mutex::new(Some(share)),
            state: AtomicU32::new(State::Launched as u32),
            ended: AtomicBool::new(false),
            fault: OnceLock::new(),
        })
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    pub fn running(&self) -> &dyn Running {
        &*self.running
    }

    /// Whether messages may be sent.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.state.load(Ordering::Relaxed) == State::Active as u32
    }

    pub fn state(&self) -> State {
        State::from_u32(self.state.load(Ordering::Relaxed)).unwrap_or(State::Faulted)
    }

    fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::SeqCst);
        if self.fault.get().is_some() {
            self.state.store(State::Faulted as u32, Ordering::SeqCst);
        }
    }

    /// It has left the device as asked.
    fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.take_share();
    }

    fn take_share(&self) -> Option<Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Why nothing can be sent now.
    #[cold]
    pub fn refusal<T>(&self) -> SendError<T> {
        match self.fault.get() {
            Some(fault) => SendError::Fault(fault.clone()),
            None => SendError::NotActive { kernel: self.kernel, state: self.state() },
        }
    }

    /// Remembers a fault; the first one counts.
    #[cold]
    pub fn fail(&self, fault: DeviceFault) -> DeviceFault {
        let fault = self.fault.get_or_init(|| {
            tracing::error!(%fault, "kernel lost");
            fault
        });
        self.state.store(State::Faulted as u32, Ordering::SeqCst);
        fault.clone()
    }

    /// The device wrote an index that cannot be.
    #[cold]
    pub fn corrupt(&self, lane: u32, corrupt: Corrupt) -> DeviceFault {
        self.fail(DeviceFault::Corrupt { kernel: self.kernel, lane, corrupt })
    }

    /// Asks the driver, and each lane's status, whether the kernel can still answer.
    #[cold]
    pub fn check(&self) -> Result<(), DeviceFault> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        if self.has_ended() {
            return Ok(());
        }
        let kernel = self.kernel;
        let state = self.running.state();
        if let RunState::Faulted(error) = state {
            let (code, reason) = (error.code, error.to_string());
            return Err(self.fail(DeviceFault::Device { kernel, code, reason }));
        }
        for lane in 0..self.region.lanes() {
            let status = &self.region.lane(lane).status;
            // SYNC: acquires the lane's last acknowledgement and what it wrote before.
            let word = status.acknowledged.load(Ordering::Acquire);
            let gone = State::from_u32(Command::from_word(word).state) == Some(State::Faulted);
            let exit =
                Exit::from_u32(status.exit.load(Ordering::Relaxed)).unwrap_or(Exit::CorruptRing);
            let processed = status.processed.load(Ordering::Relaxed);
            match exit {
                _ if !gone => {}
                Exit::HandlerPanicked => {
                    return Err(self.fail(DeviceFault::HandlerPanicked {
                        kernel,
                        lane,
                        processed,
                    }));
                }
                exit => return Err(self.fail(DeviceFault::Left { kernel, lane, exit })),
            }
        }
        // Ended without being asked and without a reason: it never began to poll.
        match state {
            RunState::Ended if self.state() == State::Terminated => {
                self.set_ended();
                Ok(())
            }
            RunState::Ended => Err(self.fail(DeviceFault::Refused { kernel })),
            _ => Ok(()),
        }
    }

    /// Why nothing more will come from `lane`, if so.
    #[cold]
    pub fn end_of(&self) -> Option<RecvError> {
        match self.fault.get() {
            Some(fault) => Some(fault.clone().into()),
            None if self.has_ended() => Some(RecvError::Terminated { kernel: self.kernel }),
            None => None,
        }
    }

    /// Writes a command and waits until every lane has acknowledged it.
    fn command(&self, epoch: u32, asked: State, deadline: Deadline) -> Result<(), ControlError> {
        let command = self.order(epoch, asked);
        let obeyed = |word: u64| match asked {
            // A lane that has left obeyed some earlier order to leave, and obeys no more.
            State::Terminated => Command::from_word(word).state == asked as u32,
            _ => word == command,
        };
        let mut lane = 0;
        let done = wait(
            deadline,
            Patience::Yield,
            || {
                while lane < self.region.lanes() {
                    let status = &self.region.lane(lane).status;
                    // SYNC: acquires the lane's counters and last answers.
                    if !obeyed(status.acknowledged.load(Ordering::Acquire)) {
                        return Ok(None);
                    }
                    lane += 1;
                }
                Ok(Some(()))
            },
            || self.check(),
        )?;
        let (kernel, waited) = (self.kernel, deadline.waited());
        done.ok_or(ControlError::Timeout { kernel, lane, asked, waited })
    }

    /// Writes a command; its word.
    fn order(&self, epoch: u32, asked: State) -> u64 {
        let word = Command { epoch, state: asked as u32 }.to_word();
        // SYNC: releases all the host wrote before to the lanes' look at the command.
        self.region.control().host.command.store(word, Ordering::Release);
        word
    }

    /// Waits until the kernel has left the device.
    fn left(&self, deadline: Deadline) -> Result<(), ControlError> {
        let look = || Ok((self.running.state() != RunState::Running).then_some(()));
        let done = wait(deadline, Patience::Yield, look, || Ok::<_, DeviceFault>(()))?;
        let (kernel, waited) = (self.kernel, deadline.waited());
        done.ok_or(ControlError::Staying { kernel, waited })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: nobody uses it after this, and it is taken once.
        let region = unsafe { ManuallyDrop::take(&mut self.region) };
        if self.running.state() == RunState::Running {
            let used = Used::Kernel { _region: region, _share: self.take_share() };
            linger(Arc::clone(&self.running), used);
        }
    }
}

/// A kernel on the device, with its lanes. Dropping it terminates it.
#[derive(Debug)]
pub struct Resident<K: Kernel> {
    shared: Arc<Shared>,
    lanes: Vec<Option<Lane<K>>>,
    epoch: u32,
    /// `terminate` has returned a summary.
    terminated: bool,
}

/// Counters of a kernel, summed over its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Messages handled.
    pub processed: u64,
    /// Messages accepted by `send` that no handler has seen.
    pub unhandled: u64,
}

/// What a kernel says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The state that the host asked for and the device acknowledged, or `Faulted`.
    pub state: State,
    /// Messages handled, as of the last heartbeat or acknowledgement.
    pub processed: u64,
    /// The oldest heartbeat of a lane, in nanoseconds of the device's clock; renewed at most every
    /// 100 us.
    pub heartbeat: u64,
}

impl<K: Kernel> Resident<K> {
    pub(crate) fn new(shared: Arc<Shared>) -> Resident<K> {
        let lanes = (0..shared.region().lanes()).map(|i| Some(Lane::new(&shared, i))).collect();
        Resident { shared, lanes, epoch: 0, terminated: false }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Lets the kernel take messages. Returns when every lane has acknowledged.
    pub fn activate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        self.check_commandable()?;
        self.ask(State::Active, deadline.into())?;
        self.shared.set_state(State::Active);
        Ok(())
    }

    /// Stops the kernel from taking messages; those not taken stay in the rings until it is
    /// activated again. Sends are refused from now on, answers can still be received.
    pub fn deactivate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        self.check_commandable()?;
        self.shared.set_state(State::Inactive);
        self.ask(State::Inactive, deadline.into())
    }

    /// Makes the kernel leave the device, and waits until it has. A lane finishes the batch it is
    /// at; requests behind that are counted as unhandled. Answers can still be received. After a
    /// timeout it may be called again.
    pub fn terminate(&mut self, deadline: impl Into<Deadline>) -> Result<Summary, ControlError> {
        let deadline = deadline.into();
        self.check_alive()?;
        self.shared.set_state(State::Terminated);
        self.ask(State::Terminated, deadline)?;
        self.shared.left(deadline)?;
        self.shared.set_ended();
        self.terminated = true;
        let summary = self.summary();
        tracing::info!(kernel = K::NAME, summary.processed, summary.unhandled, "terminated");
        Ok(summary)
    }

    fn check_alive(&self) -> Result<(), ControlError> {
        match self.terminated {
            true => Err(ControlError::Terminated { kernel: K::NAME }),
            false => Ok(self.shared.check()?),
        }
    }

    /// There is no way back from `terminate`, even if it timed out: a lane may have left.
    fn check_commandable(&self) -> Result<(), ControlError> {
        self.check_alive()?;
        match self.shared.state() {
            State::Terminated => Err(ControlError::Terminated { kernel: K::NAME }),
            _ => Ok(()),
        }
    }

    fn ask(&mut self, asked: State, deadline: Deadline) -> Result<(), ControlError> {
        self.check_alive()?;
        self.epoch = self.epoch.wrapping_add(1);
        self.shared.command(self.epoch, asked, deadline)?;
        tracing::debug!(kernel = K::NAME, ?asked, waited = ?deadline.waited(), "acknowledged");
        Ok(())
    }

    /// Counters as of now; exact when the kernel is inactive or terminated and nobody sends.
    pub fn summary(&self) -> Summary {
        let mut summary = Summary { processed: 0, unhandled: 0 };
        for lane in 0..self.lanes() {
            let block = self.shared.region().lane(lane);
            let [lo, hi] = block.request_bell.atoms[CONTROL].load();
            let tail = Control::from_words([lo, hi]).tail;
            let consumed = block.request_credit.consumed.load(Ordering::Acquire);
            let capacity = self.shared.region().ring(lane, 0).capacity();
            let pending = tail.wrapping_sub(consumed as u32).min(capacity); // device's word: bounded
            summary.processed =
                summary.processed.wrapping_add(block.status.processed.load(Ordering::Relaxed));
            summary.unhandled += u64::from(pending);
        }
        summary
    }

    /// State and heartbeat, without a driver call while all is well.
    pub fn status(&self) -> Status {
        let beats = (0..self.lanes()).map(|lane| {
            let status = &self.shared.region().lane(lane).status;
            status.heartbeat.load(Ordering::Relaxed)
        });
        let heartbeat = beats.min().unwrap_or(0);
        Status { state: self.shared.state(), processed: self.summary().processed, heartbeat }
    }

    /// Number of lanes.
    pub fn lanes(&self) -> u32 {
        self.shared.region().lanes()
    }

    /// Bytes of pinned memory that this kernel occupies.
    pub fn pinned_bytes(&self) -> usize {
        self.shared.region().pinned_bytes()
    }

    /// A lane, to send and receive on.
    pub fn lane(&mut self, lane: u32) -> Result<&mut Lane<K>, LaneError> {
        self.slot(lane)?.as_mut().ok_or(LaneError::Taken(lane))
    }

    /// Takes a lane out, to use it on another thread.
    pub fn take_lane(&mut self, lane: u32) -> Result<Lane<K>, LaneError> {
        self.slot(lane)?.take().ok_or(LaneError::Taken(lane))
    }

    fn slot(&mut self, lane: u32) -> Result<&mut Option<Lane<K>>, LaneError> {
        let lanes = self.lanes();
        self.lanes.get_mut(lane as usize).ok_or(LaneError::OutOfRange { lane, lanes })
    }
}

impl<K: Kernel> Drop for Resident<K> {
    fn drop(&mut self) {
        if self.terminated {
            return;
        }
        let mut left = self.terminate(DROP_WAIT).map(drop);
        if let Err(ControlError::Fault(_)) = left {
            // One lane is lost, but the others still wait for commands.
            self.shared.order(self.epoch.wrapping_add(1), State::Terminated);
            left = self.shared.left(DROP_WAIT.into());
        }
        if let Err(error) = left {
            tracing::warn!(%error, "dropped kernel did not leave in time");
        }
    }
}
