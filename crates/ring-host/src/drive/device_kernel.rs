//! A kernel as it is on its device: its memory, its launch slot, what its channels say, its first fault.

use crate::deadline::{Deadline, Patience, wait};
use crate::device::Ticks;
use crate::device::retry::{launch_within, retry};
use crate::device::{
    Cells, CopyKind, Grid, LaunchSlot, MemoryCopy, Occupancy, Reservation, RunState,
};
use crate::drive::gate::{Gate, Reopens};
use crate::drive::lease::Lease;
use crate::drive::orphans::{Used, set_aside};
use crate::drive::send_counts::SendCounts;
use crate::drive::traces::Traces;
use crate::error::{
    DeviceFault, DriverError, DriverReason, PayloadError, TryRecvError, TrySendError,
};
use crate::memory::region::Region;
use crate::sync::{AtomicBool, AtomicU64, Mutex, OnceLock, unpoisoned};
use ring_shared::layout::{ChannelBlock, Command, Exit, State, StatusLine};
use ring_shared::ring::Corrupt;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a launch waits for what the driver does instead, such as loading code.
const LAUNCHED: Duration = Duration::from_secs(60);

/// A number on a line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// A kernel as it is on its device. Dropping it gives its memory back, at once if the kernel has left, else
/// when it is seen to have left.
#[derive(Debug)]
pub(crate) struct DeviceKernel {
    pub name: &'static str,
    /// The index of a GPU, and the device's name.
    pub device: Arc<str>,
    /// The device's nominal clock, in kHz.
    ticks: Ticks,
    /// How threads wait for messages.
    pub patience: Patience,
    /// What is launched.
    pub grid: Grid,
    region: ManuallyDrop<Region>,
    /// Renewed while the host uses the kernel.
    lease: Mutex<Option<Lease>>,
    launch_slot: Arc<dyn LaunchSlot>,
    occupancy: Occupancy,
    /// Its room on the device, given back when it has left.
    reservation: Mutex<Option<Reservation>>,
    /// What senders go by.
    gate: Gate,
    /// It was told to terminate. Held while a command is written.
    terminated: Mutex<bool>,
    /// It was asked to leave the device, and has.
    ended: AtomicBool,
    fault: OnceLock<DeviceFault>,
    /// For each channel, index after the last response received: written by the receiver only.
    received: Box<[Padded]>,
    /// For each channel.
    sends: Box<[SendCounts]>,
    /// What senders and receivers note of messages.
    pub traces: Traces,
}

impl DeviceKernel {
    pub fn new(
        (name, device): (&'static str, Arc<str>),
        (ticks, patience): (Ticks, Patience),
        (region, lease): (Region, Option<Lease>),
        (grid, launch_slot, reservation): (Grid, Arc<dyn LaunchSlot>, Reservation),
    ) -> DeviceKernel {
        let start = region.plan.start;
        DeviceKernel {
            name,
            device,
            ticks,
            patience,
            grid,
            received: (0..region.plan.channels).map(|_| Padded(AtomicU64::new(start))).collect(),
            sends: (0..region.plan.channels).map(|_| SendCounts::default()).collect(),
            traces: Traces::new(region.plan.channels, region.plan.trace),
            region: ManuallyDrop::new(region),
            lease: Mutex::new(lease),
            launch_slot,
            occupancy: reservation.device().clone(),
            reservation: Mutex::new(Some(reservation)),
            gate: Gate::new(State::Launched),
            terminated: Mutex::new(false),
            ended: AtomicBool::new(false),
            fault: OnceLock::new(),
        }
    }

    pub fn region(&self) -> &Region {
        &self.region
    }

    pub fn launch_slot(&self) -> &dyn LaunchSlot {
        &*self.launch_slot
    }

    /// Puts a kernel on the device that stays there.
    pub fn launch_resident(&self) -> Result<(), DriverError> {
        // SAFETY: the region is laid out for this kernel and stays until the launch slot is over (`drop`).
        if !unsafe { launch_within(LAUNCHED.into(), self.launch_slot()) }? {
            let reason = DriverReason::Loading { waited: LAUNCHED };
            return Err(DriverError { call: "launch", code: 0, reason });
        }
        let _ = self.launch_slot().state(); // some drivers begin nothing before they are asked
        Ok(())
    }

    /// Begins to copy whole words between the staging and the kernel's device memory, which has room for
    /// them there.
    pub fn copy(&self, kind: CopyKind, device: u64, bytes: usize) -> Result<(), DriverError> {
        let host = self.region.staging().0;
        let copy = MemoryCopy { kind, host, device, bytes, cells: Cells::Words };
        // SAFETY: staging and memory of the region, which stays until the launch slot is over; the
        // callers' addresses are inside; whole words.
        retry(|| unsafe { self.launch_slot.copy(copy) })
    }

    /// Waits until no copy is under way: one whose wait ended early may still be.
    pub fn copied(&self, bytes: usize, end: Deadline) -> Result<(), PayloadError> {
        let look = || Ok::<_, PayloadError>(self.launch_slot.copies().ended()?.then_some(()));
        let done = wait(end, Patience::Spin, look, || Ok(()))?;
        done.ok_or_else(|| PayloadError::Timeout { bytes, waited: end.waited() })
    }

    /// Index behind the last request that was sent to channel `channel`: also of another thread, if the caller has learnt
    /// from that thread that it was sent.
    pub fn sent(&self, channel: u32) -> u64 {
        let (pending, head) = self.region.pending(channel);
        head.wrapping_add(pending.into())
    }

    /// Index after the last response that channel `channel`'s receiver has taken.
    pub fn received(&self, channel: u32) -> u64 {
        // SYNC: acquires `publish_received`: the receiver's reads of slots come before our credit.
        self.received[channel as usize].0.load(Ordering::Acquire)
    }

    /// How many responses channel `channel`'s receiver has taken.
    pub fn received_since_launch(&self, channel: u32) -> u64 {
        self.received(channel).wrapping_sub(self.region.plan.start)
    }

    /// Index behind the last request that the device is known to have taken from channel `channel`: by its credit, or by an answer,
    /// which proves its request consumed.
    #[inline]
    pub fn taken(&self, channel: u32) -> u64 {
        self.region.channel(channel).consumed().max(self.received(channel))
    }

    /// Tells senders how far channel `channel`'s receiver has come.
    #[inline]
    pub fn publish_received(&self, channel: u32, next: u64) {
        // SYNC: releases the receiver's reads of the response slots to `received`.
        self.received[channel as usize].0.store(next, Ordering::Release);
    }

    /// What is counted of channel `channel`'s requests.
    #[inline]
    pub fn sends(&self, channel: u32) -> &SendCounts {
        &self.sends[channel as usize]
    }

    /// The command that the host wrote last.
    pub fn commanded(&self) -> Command {
        Command::from_word(self.region.control().host.command.load(Ordering::Relaxed))
    }

    /// Writes the next command. None once it was told to terminate: there is no way back from that.
    pub fn publish_command(&self, asked: State) -> Option<Command> {
        let mut terminated = unpoisoned(self.terminated.lock());
        if *terminated && asked != State::Terminated {
            return None;
        }
        *terminated |= asked == State::Terminated;
        Some(self.give(asked))
    }

    /// The same of any command, also to leave the device, from where the kernel is brought back: `then` is done before anybody can tell
    /// it to terminate.
    pub fn publish_and(&self, asked: State, then: impl FnOnce()) -> Option<Command> {
        let terminated = unpoisoned(self.terminated.lock());
        (!*terminated).then(|| {
            let command = self.give(asked);
            then();
            command
        })
    }

    fn give(&self, asked: State) -> Command {
        let epoch = self.commanded().epoch.wrapping_add(1);
        let command = Command { epoch, state: asked as u32 };
        self.region.control().host.give(command);
        command
    }

    /// Whether every channel has acknowledged the last command, as far as the host knows.
    pub fn has_acknowledged(&self) -> bool {
        let epoch = self.commanded().epoch;
        self.region.blocks().all(|block| {
            let word = block.status.acknowledged.load(Ordering::Relaxed);
            Command::from_word(word).epoch == epoch
        })
    }

    /// Every channel has acknowledged a command: their blocks are on the device.
    pub fn note_placed(&self) {
        if let Some(reservation) = &*unpoisoned(self.reservation.lock()) {
            reservation.placed();
        }
    }

    /// Launches that every channel has left, as far as the host knows.
    pub fn left(&self) -> u64 {
        self.region.blocks().map(|block| block.status.launches_left()).min().unwrap_or(0)
    }

    /// Of so many launches, those that every channel has left; a fault if a channel says that it has left more.
    pub fn left_of(&self, launches: u64) -> Result<u64, DeviceFault> {
        let mut least = launches;
        for channel in 0..self.region.plan.channels {
            let found = self.region.channel(channel).status.launches_left();
            if found > launches {
                return Err(self.corrupt(channel, Corrupt { found, low: 0, high: launches }));
            }
            least = least.min(found);
        }
        Ok(least)
    }

    /// Messages that its channels have handled, as last reported.
    pub fn processed(&self) -> u64 {
        let processed = |block: &ChannelBlock| block.status.processed.load(Ordering::Relaxed);
        self.region.blocks().map(processed).fold(0, u64::wrapping_add)
    }

    /// What it counts as ticks.
    pub fn ticks(&self) -> Ticks {
        self.ticks
    }

    /// Nanoseconds of a tick of telemetry.
    pub fn nanoseconds_per_tick(&self) -> f64 {
        self.ticks.nanoseconds()
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
        self.take_reservation();
        self.give_up_lease();
    }

    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// The lease is renewed no more: the kernel is not to take the host for one that uses it.
    fn give_up_lease(&self) {
        drop(unpoisoned(self.lease.lock()).take());
    }

    fn take_reservation(&self) -> Option<Reservation> {
        unpoisoned(self.reservation.lock()).take()
    }

    /// Messages were found not to be taken: why nothing can be sent now, unless all that they waited for
    /// was a payload write that has landed.
    #[cold]
    pub fn admit(&self) -> Result<(), TrySendError<()>> {
        if let Some(fault) = self.fault.get() {
            return Err(fault.clone().into());
        }
        let has_landed =
            || self.is_over(self.launch_slot.copies()).map_err(|fault| self.fail(fault));
        let (message, kernel) = ((), self.name);
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
            tracing::error!(kernel = self.name, device = &*self.device, %fault, "kernel lost");
            fault
        });
        self.give_up_lease();
        self.gate.set(State::Faulted);
        fault.clone()
    }

    /// The device wrote an index that cannot be.
    #[cold]
    pub fn corrupt(&self, channel: u32, corrupt: Corrupt) -> DeviceFault {
        self.fail(DeviceFault::Corrupt { kernel: self.name, channel, corrupt })
    }

    /// Whether a channel has left with an error.
    pub fn check_channels(&self) -> Result<(), DeviceFault> {
        let kernel = self.name;
        for channel in 0..self.region.plan.channels {
            let status = &self.region.channel(channel).status;
            if status.acknowledgement().state != State::Faulted as u32 {
                continue;
            }
            let exit = exit(status);
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

    /// Whether what the device was given is over; or the fault for an error after which nothing runs there.
    pub fn is_over(&self, state: RunState) -> Result<bool, DeviceFault> {
        state.ended().map_err(|error| self.device_fault(error))
    }

    /// The fault for an error after which nothing runs on the device any more.
    pub fn device_fault(&self, error: DriverError) -> DeviceFault {
        let (kernel, device) = (self.name, Arc::clone(&self.device));
        DeviceFault::Device { kernel, device, source: Box::new(error) }
    }

    /// The fault for a kernel that ended without a word.
    pub fn refused(&self) -> DeviceFault {
        DeviceFault::Refused { kernel: self.name }
    }

    /// Why nothing more will come from any channel, if so.
    #[cold]
    pub fn end(&self) -> Option<TryRecvError> {
        match self.fault.get() {
            Some(fault) => Some(fault.clone().into()),
            None if self.has_ended() => Some(TryRecvError::Closed { kernel: self.name }),
            None => None,
        }
    }
}

/// Why a channel's last launch that left did; it is the device's word.
pub(crate) fn exit(status: &StatusLine) -> Exit {
    let exit = u32::try_from(status.exit.load(Ordering::Relaxed));
    exit.ok().and_then(Exit::from_u32).unwrap_or(Exit::CorruptRing)
}

impl Drop for DeviceKernel {
    fn drop(&mut self) {
        self.give_up_lease(); // it changes a word of the region; what still runs leaves without it
        // SAFETY: nobody uses it after this, and it is taken once.
        let region = unsafe { ManuallyDrop::take(&mut self.region) };
        if !self.launch_slot.is_over() {
            let used =
                Used::Kernel { _region: Box::new(region), _reservation: self.take_reservation() };
            let named = (self.name, &*self.device);
            set_aside(named, self.occupancy.clone(), Arc::clone(&self.launch_slot), used);
        }
    }
}
