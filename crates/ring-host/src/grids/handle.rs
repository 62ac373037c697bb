//! Grids on several devices as a program has them.

use crate::deadline::{Deadline, Patience, wait};
use crate::error::{
    ControlError, DeviceFault, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError,
    WaitedFor,
};
use crate::kernel::handle::{KernelHandle, Summary};
use ring_device::GridHandler;
use ring_shared::layout::State;
use std::time::Duration;

/// How long dropped grids are waited for that have messages to answer.
const DROP_WAIT: Duration = Duration::from_millis(40);

/// A kernel of scope [`Grid`](crate::Grid) on several devices: a grid on each, which handle each message together. Dropping it
/// terminates them.
///
/// A message is a request for each device: mostly they differ in the buffers that they name, since each grid is fastest with the memory
/// of its own device. All grids handle the first requests together, then the second ones, and so on, and each answers its own.
///
/// ```
/// use ring_device::{Message, Output, ring_kernel};
/// use ring_host::{Device, Devices, LaunchConfig};
/// use std::time::Duration;
///
/// ring_kernel! {
///     /// The sum of what the devices are asked to bring.
///     pub struct Total;
///
///     fn handle(ctx: &GridContext, request: &u32, response: &Output<u32>) {
///         let brings = if ctx.index() == 0 { *request } else { 0 };
///         let sum = ctx.sum_devices(brings); // all blocks of all devices meet here
///         if ctx.index() == 0 {
///             response.set(0, 0, sum);
///         }
///     }
/// }
///
/// # fn main() -> Result<(), ring_host::Error> {
/// let second = Duration::from_secs(1);
/// let devices = Devices::open(&[Device::Cpu, Device::Cpu])?; // or cuda:0 and cuda:1
/// let mut grids = devices.launch_grids::<Total>(LaunchConfig::default().blocks(2))?;
/// grids.activate(second)?;
/// grids.send(&[40, 2], second)?;
/// let mut answers = [0; 2];
/// grids.recv(&mut answers, second)?;
/// assert_eq!(answers, [42, 42]);
/// grids.terminate(second)?;
/// # Ok(())
/// # }
/// ```
///
/// # When a device is lost
/// The others cannot go on with the message: where their handlers wait for that device they are ended, and every call returns the fault
/// of the lost one. The grids are to be dropped then, and launched again on the devices that are left, or on all behind
/// [`Devices::recover`](crate::Devices::recover).
#[derive(Debug)]
pub struct Grids<K: GridHandler> {
    kernels: Vec<KernelHandle<K>>,
    /// Messages that were sent, and those of which all answers were received.
    sent: u64,
    received: u64,
    /// Answers to the next message, of those devices that have answered it.
    answers: Box<[Option<K::Response>]>,
}

impl<K: GridHandler> Grids<K> {
    pub(super) fn new(kernels: Vec<KernelHandle<K>>) -> Grids<K> {
        let answers = kernels.iter().map(|_| None).collect();
        Grids { kernels, sent: 0, received: 0, answers }
    }

    /// How many devices there are.
    #[expect(clippy::len_without_is_empty, reason = "there is one at least")]
    pub fn len(&self) -> usize {
        self.kernels.len()
    }

    /// The kernel on each device: its size, status and telemetry.
    pub fn kernels(&self) -> &[KernelHandle<K>] {
        &self.kernels
    }

    /// Messages that may be sent before an answer to the first one has been received.
    pub fn capacity(&self) -> usize {
        let capacity = |kernel: &KernelHandle<K>| kernel.core().device.region().plan.capacity;
        self.kernels.iter().map(capacity).min().unwrap_or(0) as usize
    }

    /// Messages sent whose answers were not received.
    pub fn unanswered(&self) -> usize {
        (self.sent - self.received) as usize
    }

    /// Lets all grids take messages.
    pub fn activate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        self.kernels.iter_mut().try_for_each(|kernel| kernel.activate(deadline))
    }

    /// Stops all grids from taking messages, when they have answered all that was sent: answers can still be received. After a timeout
    /// it may be called again.
    pub fn deactivate(&mut self, deadline: impl Into<Deadline>) -> Result<(), ControlError> {
        let deadline = deadline.into();
        self.all_answered(State::Inactive, deadline)?;
        self.kernels.iter_mut().try_for_each(|kernel| kernel.deactivate(deadline))
    }

    /// Makes all grids leave their devices, when they have answered all that was sent, and waits until they have. What each has handled.
    /// Answers can still be received. After a timeout it may be called again.
    pub fn terminate(
        &mut self,
        deadline: impl Into<Deadline>,
    ) -> Result<Vec<Summary>, ControlError> {
        let deadline = deadline.into();
        self.all_answered(State::Terminated, deadline)?;
        self.kernels.iter_mut().map(|kernel| kernel.leave(deadline)).collect()
    }

    /// Whether all grids can still answer; if not, why not. Each wait asks it now and then.
    pub fn check(&self) -> Result<(), DeviceFault> {
        // Each is asked, so that each that is lost says why.
        let faults = self.kernels.iter().filter_map(|kernel| kernel.core().check().err());
        match faults.count() {
            0 => Ok(()),
            _ => Err(self.lost().0),
        }
    }

    /// Sends a message, a request for each device in the order of their numbers, if there is room for it now.
    ///
    /// # Panics
    /// If there are not as many requests as devices.
    pub fn try_send(&mut self, requests: &[K::Request]) -> Result<(), TrySendError<()>> {
        assert_eq!(requests.len(), self.len(), "requests for so many devices");
        if self.unanswered() >= self.capacity() {
            self.check()?;
            return Err(TrySendError::Full(()));
        }
        // All or none.
        for kernel in &self.kernels {
            if !kernel.core().device.is_active() {
                kernel.core().device.admit().map_err(|refused| self.blame_send(refused))?;
            }
        }
        for (kernel, request) in self.kernels.iter_mut().zip(requests) {
            let sent = kernel.try_send(*request).map_err(TrySendError::without_message);
            if let Err(refused) = sent {
                // Just lost: there is room in each, and all were active.
                return Err(self.blame_send(refused));
            }
        }
        self.sent += 1;
        Ok(())
    }

    /// Sends a message as [`try_send`](Self::try_send) does, waiting until the deadline where it cannot be sent now. While
    /// [`capacity`](Self::capacity) messages are unanswered it cannot: receive first.
    ///
    /// # Panics
    /// If there are not as many requests as devices.
    pub fn send(
        &mut self,
        requests: &[K::Request],
        deadline: impl Into<Deadline>,
    ) -> Result<(), SendTimeoutError<()>> {
        let deadline = deadline.into();
        let mut last = WaitedFor::Room;
        let look = || match self.try_send(requests) {
            Ok(()) => Ok(Some(())),
            Err(refused) => refused.waits_for().map(|what| {
                last = what;
                None
            }),
        };
        let sent = wait(deadline, Patience::Yield, look, || Ok(()))?;
        sent.ok_or_else(|| SendTimeoutError::Timeout {
            message: (),
            kernel: K::NAME,
            channel: 0,
            waited: deadline.waited(),
            waited_for: last,
        })
    }

    /// Receives the answers to the next message, one of each device in the order of their numbers, if all are there.
    ///
    /// # Panics
    /// If there is not room for as many answers as there are devices.
    pub fn try_recv(&mut self, answers: &mut [K::Response]) -> Result<(), TryRecvError> {
        assert_eq!(answers.len(), self.len(), "answers of so many devices");
        let mut missing = None;
        for (kernel, answer) in self.kernels.iter_mut().zip(&mut self.answers) {
            if answer.is_some() {
                continue;
            }
            match kernel.try_recv() {
                Ok(found) => *answer = Some(found),
                Err(TryRecvError::Empty) => _ = missing.get_or_insert(TryRecvError::Empty),
                Err(end) => missing = Some(end),
            }
        }
        match missing {
            None => {
                self.received += 1;
                for (answer, found) in answers.iter_mut().zip(&mut self.answers) {
                    *answer = found.take().unwrap_or(*answer); // all are there
                }
                Ok(())
            }
            Some(TryRecvError::Fault(_)) => match self.lost() {
                (fault, true) => Err(fault.into()),
                (_, false) => Err(TryRecvError::Empty), // the one that was lost first has not said so yet
            },
            Some(end) => Err(end),
        }
    }

    /// Receives the answers to the next message, as [`try_recv`](Self::try_recv) does, waiting for them until the deadline.
    ///
    /// # Panics
    /// If there is not room for as many answers as there are devices.
    pub fn recv(
        &mut self,
        answers: &mut [K::Response],
        deadline: impl Into<Deadline>,
    ) -> Result<(), RecvTimeoutError> {
        let deadline = deadline.into();
        let patience = self.kernels[0].core().device.patience;
        // A look that finds nothing asks now and then whether all can still answer.
        let look = || match self.try_recv(answers) {
            Ok(()) => Ok(Some(())),
            Err(error) => RecvTimeoutError::unless_empty(error).map(|()| None),
        };
        let found = wait(deadline, patience, look, || Ok(()))?;
        found.ok_or_else(|| RecvTimeoutError::Timeout {
            kernel: K::NAME,
            channel: 0,
            waited: deadline.waited(),
            state: self.kernels[0].core().device.state(),
        })
    }

    /// Waits until each grid has answered all that was sent: a command that came to one before a message, and to another one behind it,
    /// would leave that one waiting at a meeting.
    fn all_answered(&self, asked: State, deadline: Deadline) -> Result<(), ControlError> {
        let is_answered = |(kernel, answer): (&KernelHandle<K>, &Option<_>)| {
            self.received + u64::from(answer.is_some()) + kernel.answers_there() == self.sent
        };
        let look = || {
            let all = self.kernels.iter().zip(&self.answers).all(is_answered);
            Ok::<_, DeviceFault>(all.then_some(()))
        };
        match wait(deadline, Patience::Yield, look, || self.check()) {
            Ok(Some(())) => Ok(()),
            // What is lost answers nothing, and leaves.
            Err(_) if asked == State::Terminated => Ok(()),
            Err(fault) => Err(fault.into()),
            Ok(None) => {
                let (kernel, waited) = (K::NAME, deadline.waited());
                Err(ControlError::Timeout { kernel, channel: 0, asked, waited })
            }
        }
    }

    /// A send was refused: if that is for a fault, the one behind it.
    #[cold]
    fn blame_send(&self, refused: TrySendError<()>) -> TrySendError<()> {
        match refused {
            TrySendError::Fault { message, .. } => {
                TrySendError::Fault { message, fault: self.lost().0 }
            }
            refused => refused,
        }
    }

    /// At least one grid is lost: ends the waits of the others for it. The fault of the one that was lost by itself, if that is known, and
    /// whether it is, or nothing more will be.
    #[cold]
    fn lost(&self) -> (DeviceFault, bool) {
        self.lack_device();
        let (mut known, mut other) = (0, None);
        for kernel in &self.kernels {
            let _ = kernel.core().check();
            match kernel.core().device.fault() {
                None => continue,
                Some(DeviceFault::Graph { lost, .. }) if !lost.is_of_others() => {
                    return (*lost, true);
                }
                Some(fault) if !fault.is_of_others() => return (fault, true),
                fault => other = fault,
            }
            known += 1;
        }
        let fault = other.unwrap_or(DeviceFault::Refused { kernel: K::NAME });
        (fault, known == self.len())
    }

    /// Ends the waits of all grids for each other.
    fn lack_device(&self) {
        for kernel in &self.kernels {
            kernel.core().device.region().control().host.lack_device();
        }
    }
}

impl<K: GridHandler> Drop for Grids<K> {
    fn drop(&mut self) {
        if self.all_answered(State::Inactive, DROP_WAIT.into()).is_err() {
            self.lack_device();
        }
    }
}
