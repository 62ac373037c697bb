//! What a kernel's handle and its lanes' halves have in common: its memory, its state, its faults.

use crate::deadline::{Deadline, Patience, wait};
use crate::driver::{RunState, Running, Share};
use crate::error::{ControlError, DeviceFault, RecvError, SendError};
use crate::lingering::{Used, linger};
use crate::region::Region;
use ring_shared::layout::{Command, Exit, State};
use ring_shared::ring::Corrupt;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
        patience: Patience,
        region: Region,
        running: Arc<dyn Running>,
        share: Share,
    ) -> Arc<Shared> {
        let start = region.ring(0, 0).start();
        Arc::new(Shared {
            kernel,
            patience,
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

    pub fn set_state(&self, state: State) {
        self.state.store(state as u32, Ordering::SeqCst);
        if self.fault.get().is_some() {
            self.state.store(State::Faulted as u32, Ordering::SeqCst);
        }
    }

    /// It has left the device as asked.
    pub fn set_ended(&self) {
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
    pub fn command(
        &self,
        epoch: u32,
        asked: State,
        deadline: Deadline,
    ) -> Result<(), ControlError> {
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
    pub fn order(&self, epoch: u32, asked: State) -> u64 {
        let word = Command { epoch, state: asked as u32 }.to_word();
        // SYNC: releases all the host wrote before to the lanes' look at the command.
        self.region.control().host.command.store(word, Ordering::Release);
        word
    }

    /// Waits until the kernel has left the device.
    pub fn left(&self, deadline: Deadline) -> Result<(), ControlError> {
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
