//! What a kernel's handle and its channels' halves have in common: the kernel on its device, and what
//! drives it.

use super::turns::{Turn, Turns};
use crate::deadline::{Deadline, Patience, lock_until, wait};
use crate::device::RunState;
use crate::drive::Drive;
use crate::drive::device_kernel::DeviceKernel;
use crate::error::{ControlError, DeviceFault, PayloadError};
use crate::sync::{AtomicBool, AtomicU64, Mutex, MutexGuard};
use ring_shared::layout::{Command, State};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};

/// What a kernel's handle and its channels' halves have in common.
#[derive(Debug)]
pub(crate) struct KernelCore {
    pub device: DeviceKernel,
    pub drive: Drive,
    /// Held by whoever commands the kernel, but to terminate it, until it has obeyed.
    turns: Turns,
    /// Odd while the kernel is kept off the device, and one more whenever that begins or ends.
    away: AtomicU64,
    /// Its handlers' calls to the host have an owner.
    calls_taken: AtomicBool,
    /// Launches of a resident kernel that was brought back.
    brought_back: AtomicU64,
    /// Held by whoever copies to or from its memory.
    copying: Mutex<()>,
    /// The other kernels of its graph, or its grids on other devices: it can do no more when one of them is lost.
    peers: OnceLock<Box<[Peer]>>,
}

/// The right to copy to and from a kernel's memory, by its staging.
#[derive(Debug)]
pub(crate) struct Copying<'a>(#[expect(dead_code, reason = "held")] MutexGuard<'a, ()>);

/// Another kernel of the same graph, or another grid of the same kernel.
#[derive(Debug)]
struct Peer {
    core: Weak<KernelCore>,
    /// It is on another device, of whose faults this kernel's driver knows nothing.
    is_elsewhere: bool,
}

impl KernelCore {
    pub fn new(device: DeviceKernel, drive: Drive) -> KernelCore {
        let (turns, copying) = (Turns::new(), Mutex::new(()));
        let (away, brought_back) = (AtomicU64::new(0), AtomicU64::new(0));
        let (calls_taken, peers) = (AtomicBool::new(false), OnceLock::new());
        KernelCore { device, drive, turns, away, calls_taken, brought_back, copying, peers }
    }

    /// Tells each of some kernels, which are on those devices, which the others are; the first time counts.
    pub fn introduce(kernels: &[(&Arc<KernelCore>, usize)]) {
        for (index, (kernel, device)) in kernels.iter().enumerate() {
            let others = kernels.iter().enumerate().filter(|(other, _)| *other != index);
            let others = others.map(|(_, (other, on))| Peer {
                core: Arc::downgrade(other),
                is_elsewhere: on != device,
            });
            let _ = kernel.peers.set(others.collect());
        }
    }

    /// A fault of its own, which was remembered, if a kernel that it meets on the devices is lost.
    pub fn check_peers(&self) -> Result<(), DeviceFault> {
        for Peer { core, is_elsewhere } in self.peers.get().into_iter().flatten() {
            let Some(peer) = core.upgrade() else { continue };
            let lost = match peer.device.fault() {
                Some(fault) => fault,
                None => {
                    let asked = if *is_elsewhere && !peer.device.has_ended() {
                        peer.ask_driver().map(drop)
                    } else {
                        Ok(())
                    };
                    match asked.and_then(|()| peer.device.check_channels()) {
                        Ok(()) => continue,
                        Err(fault) => fault,
                    }
                }
            };
            if lost.is_of_others() {
                continue; // the one that was lost first is another one
            }
            let kernel = self.device.name;
            return Err(self.device.fail(DeviceFault::Graph { kernel, lost: Box::new(lost) }));
        }
        Ok(())
    }

    /// A step of what drives the kernel, after a message was accepted.
    #[inline]
    pub fn after_send(&self) {
        self.drive.after_send(&self.device);
    }

    /// The same after a look that found nothing.
    #[inline]
    pub fn after_idle_poll(&self) {
        self.drive.after_idle_poll(&self.device);
    }

    /// Asks the driver, and each channel's status, whether the kernel can still answer.
    #[cold]
    pub fn check(&self) -> Result<(), DeviceFault> {
        let kernel = &self.device;
        if let Some(fault) = kernel.fault() {
            return Err(fault);
        }
        if kernel.has_ended() {
            return Ok(());
        }
        let away = self.away.load(Ordering::Acquire);
        let ended = self.ask_driver()?;
        kernel.check_channels()?;
        self.check_peers()?;
        let was_away = away % 2 == 1 || self.away.load(Ordering::Acquire) != away;
        if !ended || was_away {
            return Ok(());
        }
        if self.drive.ended_early(kernel) {
            kernel.check_channels()?; // it may have said why meanwhile
            return Err(kernel.fail(kernel.refused()));
        }
        if kernel.state() == State::Terminated && self.drive.was_delivered(kernel) {
            kernel.set_ended();
        }
        Ok(())
    }

    /// Whether its launch is over, as the driver says; or the fault of its device, which is remembered.
    fn ask_driver(&self) -> Result<bool, DeviceFault> {
        let kernel = &self.device;
        kernel.launch_slot().note_processed(kernel.processed());
        let ended = kernel.is_over(kernel.launch_slot().state());
        ended.map_err(|fault| kernel.fail(fault))
    }

    /// The same without asking the driver: by what is known already, and by each channel's status.
    pub fn check_status(&self) -> Result<(), DeviceFault> {
        match self.device.fault() {
            Some(fault) => Err(fault),
            None if self.device.has_ended() => Ok(()),
            None => self.device.check_channels(),
        }
    }

    /// Launches so far.
    pub fn launches(&self) -> u64 {
        self.drive.launches() + self.brought_back.load(Ordering::Relaxed)
    }

    /// Whether it has links to other kernels, or meets other grids of the same kernel.
    pub fn has_peers(&self) -> bool {
        self.peers.get().is_some_and(|peers| !peers.is_empty())
    }

    /// Whether no block handles what was answered before this call: every channel is inactive, as it has said itself, or no launch is
    /// on the device. False where another thread just drives the kernel.
    pub fn is_at_rest(&self) -> bool {
        let inactive = |channel| {
            let status = &self.device.region().channel(channel).status;
            status.acknowledgement().state == State::Inactive as u32
        };
        let mut channels = 0..self.device.region().plan.channels;
        channels.all(inactive) || self.drive.is_between_launches(&self.device)
    }

    /// It is kept off the device from now on, or no longer.
    pub fn turn_away(&self) {
        // SYNC: released to `check` of other threads; the kernel leaves, and is launched, on the inner side of both.
        self.away.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether the caller is the first who asks for the calls of the kernel's handlers.
    pub fn take_calls(&self) -> bool {
        !self.calls_taken.swap(true, Ordering::Relaxed)
    }

    /// Counts a launch of a resident kernel that is brought back.
    pub fn note_brought_back(&self) {
        self.brought_back.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until nobody else commands the kernel.
    pub fn turn(&self, asked: State, deadline: Deadline) -> Result<Turn<'_>, ControlError> {
        let (kernel, channel) = (self.device.name, 0);
        let waited = || deadline.waited();
        let late = || ControlError::Timeout { kernel, channel, asked, waited: waited() };
        self.turns.take(deadline).ok_or_else(late)
    }

    /// Waits until nothing is copied to or from the kernel's memory.
    pub fn copying(&self, deadline: Deadline) -> Result<Copying<'_>, PayloadError> {
        let late = || PayloadError::Timeout { bytes: 0, waited: deadline.waited() };
        let copying = lock_until(&self.copying, deadline).ok_or_else(late)?;
        self.device.copied(0, deadline)?; // a copy whose own wait ended early may still use the staging
        Ok(Copying(copying))
    }

    /// Writes a command and waits until every channel has acknowledged it. But to terminate, the caller has the
    /// [turn](Self::turn).
    pub fn command(&self, asked: State, deadline: Deadline) -> Result<(), ControlError> {
        let told = self.device.publish_command(asked);
        let terminated = ControlError::Terminated { kernel: self.device.name };
        self.obeyed(told.ok_or(terminated)?, asked, deadline)
    }

    /// Waits until every channel has acknowledged a command.
    pub fn obeyed(
        &self,
        command: Command,
        asked: State,
        deadline: Deadline,
    ) -> Result<(), ControlError> {
        let kernel = &self.device;
        let terminated = || ControlError::Terminated { kernel: kernel.name };
        let epoch = command.epoch;
        let is_acknowledgement = |found: Command| {
            let yielded = found.state == State::Yielded as u32;
            match asked {
                // A channel that has left acknowledged some earlier command to leave, and takes no more.
                State::Terminated => found.state == asked as u32,
                _ => found == command || (yielded && found.epoch == epoch),
            }
        };
        let mut channel = 0;
        let done = wait(
            deadline,
            Patience::Yield,
            || {
                if self.drive.rests(kernel)? && asked != State::Active {
                    return Ok(Some(())); // nobody is there to acknowledge it
                }
                if asked != State::Terminated && kernel.commanded() != command {
                    return Err(terminated()); // by another thread, which waits for nobody
                }
                while channel < kernel.region().plan.channels {
                    let status = &kernel.region().channel(channel).status;
                    if !is_acknowledgement(status.acknowledgement()) {
                        return Ok(None);
                    }
                    channel += 1;
                }
                Ok(Some(()))
            },
            || Ok(self.check()?),
        )?;
        let waited = deadline.waited();
        done.ok_or(ControlError::Timeout { kernel: kernel.name, channel, asked, waited })?;
        kernel.note_placed();
        Ok(())
    }

    /// Waits until the kernel has left the device, and its last answers are here.
    pub fn left_device(&self, deadline: Deadline) -> Result<(), ControlError> {
        let kernel = &self.device;
        let look = || {
            let delivered = self.drive.is_delivered(kernel)?;
            Ok((delivered && kernel.launch_slot().state() != RunState::Running).then_some(()))
        };
        let check = || match self.drive {
            Drive::Resident => Ok(()), // it is waited for in spite of a fault
            Drive::Scheduled(_) => self.check(),
        };
        let done = wait(deadline, Patience::Yield, look, check)?;
        done.ok_or(ControlError::Staying { kernel: kernel.name, waited: deadline.waited() })
    }
}
