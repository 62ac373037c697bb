//! What a kernel's handle and its channels' halves have in common: its memory, its state, its faults.

use crate::deadline::{Deadline, Patience, wait};
use crate::device::{Residency, RunState, Share, Station};
use crate::drive::gate::{Gate, Reopens};
use crate::drive::lease::Lease;
use crate::drive::orphans::{Used, linger};
use crate::drive::scheduler::{Pump, epoch_of};
use crate::error::{ControlError, DeviceFault, DriverError, TryRecvError, TrySendError};
use crate::memory::region::Region;
use crate::sync::{AtomicBool, AtomicU64, Mutex, OnceLock};
use ring_shared::layout::{Command, Exit, State};
use ring_shared::ring::Corrupt;
use std::mem::ManuallyDrop;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// A number on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded(pub AtomicU64);

/// What a kernel's handle and its channels' halves have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub kernel: &'static str,
    /// The device's nominal clock, in kHz.
    clock_khz: u32,
    /// How threads wait for messages.
    pub patience: Patience,
    region: ManuallyDrop<Region>,
    /// Renewed while the host uses the kernel.
    lease: Mutex<Option<Lease>>,
    station: Arc<dyn Station>,
    /// What drives it, unless it is simply resident in mapped memory.
    pub pump: Option<Pump>,
    device: Residency,
    /// Its share of the device, given back when it has left.
    share: Mutex<Option<Share>>,
    /// What senders go by.
    gate: Gate,
    /// It was asked to leave the device, and has.
    ended: AtomicBool,
    fault: OnceLock<DeviceFault>,
    /// For each channel, index after the last response received: written by the receiver only.
    pub received: Box<[Padded]>,
}

impl Shared {
    pub fn new(
        kernel: &'static str,
        (clock_khz, patience): (u32, Patience),
        (region, lease): (Region, Option<Lease>),
        (station, pump): (Arc<dyn Station>, Option<Pump>),
        share: Share,
    ) -> Arc<Shared> {
        let start = region.start();
        Arc::new(Shared {
            kernel,
            clock_khz,
            patience,
            received: (0..region.channels()).map(|_| Padded(AtomicU64::new(start))).collect(),
            region: ManuallyDrop::new(region),
            lease: Mutex::new(lease),
            station,
            pump,
            device: share.device().clone(),
            share: Mutex::new(Some(share)),
            gate: Gate::new(State::Launched),
            ended: AtomicBool::new(false),
            fault: OnceLock::new(),
        })
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    pub fn station(&self) -> &dyn Station {
        &*self.station
    }

    /// Index after the last response that channel `channel`'s receiver has taken.
    pub fn received(&self, channel: u32) -> u64 {
        // SYNC: acquires `Receiver::note`: its reads of the response slots come before our credit.
        self.received[channel as usize].0.load(Ordering::Acquire)
    }

    /// After a message was accepted: a kernel at rest is launched for it. A fault is remembered and
    /// told by the next call: this message was accepted.
    #[inline]
    pub fn sent(&self) {
        if let Some(pump) = &self.pump {
            let _ = pump.step(self);
        }
    }

    /// After a look that found nothing. A fault is remembered, and told by the caller's check.
    #[inline]
    pub fn drive(&self) {
        if let Some(pump) = &self.pump {
            let _ = pump.try_step(self);
        }
    }

    /// The command that the host wrote last.
    pub fn ordered(&self) -> Command {
        Command::from_word(self.region.control().host.command.load(Ordering::Relaxed))
    }

    /// Whether every channel has acknowledged that command, as far as the host knows.
    pub fn has_acknowledged(&self) -> bool {
        let epoch = self.ordered().epoch;
        (0..self.region.channels()).all(|channel| {
            let word = self.region.channel(channel).status.acknowledged.load(Ordering::Relaxed);
            epoch_of(word) == epoch
        })
    }

    /// Launches that every channel has left, as far as the host knows.
    pub fn left(&self) -> u64 {
        let left = |channel| self.region.channel(channel).status.launches_left();
        (0..self.region.channels()).map(left).min().unwrap_or(0)
    }

    /// Of so many launches, those that every channel has left; a fault if a channel says that it has left more.
    pub fn left_of(&self, launches: u64) -> Result<u64, DeviceFault> {
        let mut least = launches;
        for channel in 0..self.region.channels() {
            let found = self.region.channel(channel).status.launches_left();
            if found > launches {
                return Err(self.corrupt(channel, Corrupt { found, low: 0, high: launches }));
            }
            least = least.min(found);
        }
        Ok(least)
    }

    /// Nanoseconds of a tick of telemetry.
    pub fn nanoseconds_per_tick(&self) -> f64 {
        1e6 / f64::from(self.clock_khz.max(1))
    }

    /// Whether messages may be sent.
    #[inline]
    pub fn is_active(&self) -> bool {
        self.gate.is_open()
    }

    pub fn state(&self) -> State {
        self.gate.state()
    }

    pub fn set_state(&self, state: State) {
        self.gate.set(state);
        if self.fault.get().is_some() {
            self.gate.set(State::Faulted);
        }
    }

    /// A payload write's own wait ended early: messages wait until it has landed.
    pub fn writes_on(&self) {
        self.gate.close();
    }

    /// It has left the device as asked.
    pub fn set_ended(&self) {
        self.ended.store(true, Ordering::Release);
        self.take_share();
        self.give_up_lease();
    }

    /// Nobody is to be told any more that the host lives.
    fn give_up_lease(&self) {
        drop(self.lease.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn take_share(&self) -> Option<Share> {
        self.share.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Messages were found not to be taken: why nothing can be sent now, unless all that they waited for
    /// was a payload write that has landed.
    #[cold]
    pub fn admit(&self) -> Result<(), TrySendError<()>> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone().into());
        }
        let has_landed = || match self.station.copies() {
            RunState::Running => Ok(false),
            RunState::Ended => Ok(true),
            RunState::Faulted(error) => Err(self.fail(self.device_fault(&error))),
        };
        let (message, kernel) = ((), self.kernel);
        match self.gate.reopens(has_landed)? {
            Reopens::Now => Ok(()),
            Reopens::Later => Err(TrySendError::Writing { message, kernel }),
            Reopens::Never => Err(match (self.fault.get(), self.state()) {
                (Some(fault), _) => fault.clone().into(), // another thread has just found it
                (None, State::Terminated) => TrySendError::Closed { message, kernel },
                (None, state) => TrySendError::NotActive { message, kernel, state },
            }),
        }
    }

    /// The fault that was remembered.
    pub fn fault(&self) -> Option<DeviceFault> {
        self.fault.get().cloned()
    }

    /// Remembers a fault; the first one counts.
    #[cold]
    pub fn fail(&self, fault: DeviceFault) -> DeviceFault {
        let fault = self.fault.get_or_init(|| {
            tracing::error!(%fault, "kernel lost");
            fault
        });
        self.give_up_lease();
        self.gate.set(State::Faulted);
        fault.clone()
    }

    /// The device wrote an index that cannot be.
    #[cold]
    pub fn corrupt(&self, channel: u32, corrupt: Corrupt) -> DeviceFault {
        self.fail(DeviceFault::Corrupt { kernel: self.kernel, channel, corrupt })
    }

    /// Asks the driver, and each channel's status, whether the kernel can still answer.
    #[cold]
    pub fn check(&self) -> Result<(), DeviceFault> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone());
        }
        if self.has_ended() {
            return Ok(());
        }
        let processed =
            |channel| self.region.channel(channel).status.processed.load(Ordering::Relaxed);
        let processed = (0..self.region.channels()).map(processed).fold(0, u64::wrapping_add);
        self.station.note_processed(processed);
        let state = self.station.state();
        if let RunState::Faulted(error) = &state {
            return Err(self.fail(self.device_fault(error)));
        }
        self.check_channels()?;
        let early = match &self.pump {
            Some(pump) => state == RunState::Ended && pump.ended_early(self),
            // Ended without being asked and without a reason: it never began to poll.
            None => state == RunState::Ended && self.state() != State::Terminated,
        };
        if early {
            self.check_channels()?; // it may have told why meanwhile
            return Err(self.fail(self.refused()));
        }
        let rests = || self.pump.as_ref().is_none_or(|pump| pump.has_come_to_rest(self));
        if state == RunState::Ended && self.state() == State::Terminated && rests() {
            self.set_ended();
        }
        Ok(())
    }

    /// Whether a channel has left with an error.
    pub fn check_channels(&self) -> Result<(), DeviceFault> {
        let kernel = self.kernel;
        for channel in 0..self.region.channels() {
            let status = &self.region.channel(channel).status;
            if status.obeyed().state != State::Faulted as u32 {
                continue;
            }
            let exit = u32::try_from(status.exit.load(Ordering::Relaxed));
            let exit = exit.ok().and_then(Exit::from_u32).unwrap_or(Exit::CorruptRing);
            let processed = status.processed.load(Ordering::Relaxed);
            return Err(self.fail(match exit {
                Exit::HandlerPanicked => {
                    DeviceFault::HandlerPanicked { kernel, channel, processed }
                }
                exit => DeviceFault::Left { kernel, channel, exit },
            }));
        }
        Ok(())
    }

    /// The fault for an error after which nothing runs on the device any more.
    pub fn device_fault(&self, error: &DriverError) -> DeviceFault {
        DeviceFault::Device { kernel: self.kernel, source: error.clone() }
    }

    /// The fault for a kernel that ended without a word.
    pub fn refused(&self) -> DeviceFault {
        DeviceFault::Refused { kernel: self.kernel }
    }

    /// Why nothing more will come from `channel`, if so.
    #[cold]
    pub fn end_of(&self) -> Option<TryRecvError> {
        match self.fault.get() {
            Some(fault) => Some(fault.clone().into()),
            None if self.has_ended() => Some(TryRecvError::Closed { kernel: self.kernel }),
            None => None,
        }
    }

    /// Writes a command and waits until every channel has acknowledged it.
    pub fn command(
        &self,
        epoch: u32,
        asked: State,
        deadline: Deadline,
    ) -> Result<(), ControlError> {
        let command = self.order(epoch, asked);
        let obeyed = |acknowledged: Command| {
            let yielded = acknowledged.state == State::Yielded as u32;
            match asked {
                // A channel that has left obeyed some earlier order to leave, and obeys no more.
                State::Terminated => acknowledged.state == asked as u32,
                _ => acknowledged == command || (yielded && acknowledged.epoch == epoch),
            }
        };
        let mut channel = 0;
        let done = wait(
            deadline,
            Patience::Yield,
            || {
                if let Some(pump) = &self.pump
                    && pump.is_resting(self)?
                    && asked != State::Active
                {
                    return Ok(Some(())); // nobody is there to acknowledge, or to disobey
                }
                while channel < self.region.channels() {
                    let status = &self.region.channel(channel).status;
                    if !obeyed(status.obeyed()) {
                        return Ok(None);
                    }
                    channel += 1;
                }
                Ok(Some(()))
            },
            || self.check(),
        )?;
        let (kernel, waited) = (self.kernel, deadline.waited());
        done.ok_or(ControlError::Timeout { kernel, channel, asked, waited })?;
        if let Some(share) = &*self.share.lock().unwrap_or_else(PoisonError::into_inner) {
            share.placed(); // every channel has answered
        }
        Ok(())
    }

    /// Writes a command.
    pub fn order(&self, epoch: u32, asked: State) -> Command {
        let command = Command { epoch, state: asked as u32 };
        self.region.control().host.order(command);
        command
    }

    /// A step; whether it was launched at least once.
    pub fn is_launched(&self) -> Result<bool, DeviceFault> {
        match &self.pump {
            Some(pump) => pump.is_resting(self).map(|_| pump.launches() > 0),
            None => Ok(true),
        }
    }

    /// Waits until the kernel has left the device, and its last answers are here.
    pub fn left_device(&self, deadline: Deadline) -> Result<(), ControlError> {
        let look = || {
            let rests = match &self.pump {
                Some(pump) => pump.is_resting(self)?,
                None => true,
            };
            Ok((rests && self.station.state() != RunState::Running).then_some(()))
        };
        let check = || match self.pump {
            Some(_) => self.check(),
            None => Ok(()),
        };
        let done = wait(deadline, Patience::Yield, look, check)?;
        let (kernel, waited) = (self.kernel, deadline.waited());
        done.ok_or(ControlError::Staying { kernel, waited })
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.give_up_lease(); // it changes a word of the region; what still runs leaves without it
        // SAFETY: nobody uses it after this, and it is taken once.
        let region = unsafe { ManuallyDrop::take(&mut self.region) };
        if !self.station.is_over() {
            let used = Used::Kernel { _region: Box::new(region), _share: self.take_share() };
            linger(self.device.clone(), Arc::clone(&self.station), used);
        }
    }
}
