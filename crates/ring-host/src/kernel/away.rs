//! Keeping a kernel from taking messages for a while, and off the device: it stops between two messages, and goes on where it was.
//!
//! It is first told to take no more messages, which a handler that does not end can delay, and which is taken back at the deadline. Its
//! state can be read then. No channel has a message any more, and all leave the device at once if they are told to. Of several kernels
//! each step is taken by all before any is waited for. Before the first a kernel must have obeyed what it was told before.

use super::core::KernelCore;
use super::turns::Turn;
use crate::deadline::{Deadline, Patience, wait};
use crate::drive::Drive;
use crate::error::{ControlError, DeviceFault};
use ring_shared::layout::{Command, State};
use std::time::Duration;

/// How long a kernel that takes no messages may need to obey: far longer than it does.
const OBEYS: Duration = Duration::from_secs(1);

/// A kernel that is kept from messages, or off the device, until this is dropped.
#[derive(Debug)]
pub(crate) struct Away<'a> {
    core: &'a KernelCore,
    _turn: Turn<'a>,
    before: State,
    /// The command to take no messages. None if it was told to terminate before.
    told: Option<Command>,
    /// It was told to leave.
    leaves: bool,
}

impl Away<'_> {
    /// Waits until it takes no messages.
    ///
    /// # Errors
    /// When the deadline passes, or it is lost.
    pub fn stopped(&self, deadline: Deadline) -> Result<(), ControlError> {
        let told = self.told.ok_or(ControlError::Terminated { kernel: self.core.device.name });
        match told.and_then(|told| self.core.obeyed(told, State::Inactive, deadline)) {
            // By another thread: it leaves for good.
            Err(ControlError::Terminated { .. }) => self.core.left_device(deadline),
            obeyed => obeyed,
        }
    }

    /// Waits until each of its channels, which take no messages, would find its next message by a new launch: a sender may have
    /// been interrupted in the middle of telling of a batch, of which the kernel has taken some messages already.
    ///
    /// # Errors
    /// When the deadline passes.
    pub fn can_resume(&self, deadline: Deadline) -> Result<(), ControlError> {
        let kernel = &self.core.device;
        let mut channel = 0;
        let look = || {
            let channels = kernel.region().plan.channels;
            while channel < channels && kernel.region().can_resume(channel) {
                channel += 1;
            }
            Ok::<_, ControlError>((channel == channels).then_some(()))
        };
        let found = wait(deadline, Patience::Yield, look, || Ok(()))?;
        let (name, asked, waited) = (kernel.name, State::Inactive, deadline.waited());
        found.ok_or(ControlError::Timeout { kernel: name, channel, asked, waited })
    }

    /// Tells it to leave the device: it takes no messages.
    pub fn leave(&mut self) {
        self.core.turn_away();
        self.leaves = true;
        self.core.device.publish_and(State::Terminated, || ());
    }

    /// Waits until it has left.
    ///
    /// # Errors
    /// When it does not within a second; then it is lost.
    pub fn left(&self) -> Result<(), ControlError> {
        self.core.left_device(OBEYS.into()).inspect_err(|error| {
            // Of several channels some may have left.
            let kernel = self.core.device.name;
            tracing::error!(kernel, %error, "kernel stays on the device though it has no message");
            self.core.device.fail(self.core.device.refused());
        })
    }
}

impl KernelCore {
    /// Tells the kernel to take no messages, when it has obeyed what it was told before: one that is told so again and again would
    /// else take none in between. Nothing if it has left for good, or is lost.
    ///
    /// # Errors
    /// When another thread commands it until the deadline, or it has not obeyed by then.
    pub fn step_aside(&self, deadline: Deadline) -> Result<Option<Away<'_>>, ControlError> {
        let kernel = &self.device;
        let turn = self.turn(State::Inactive, deadline)?;
        if kernel.has_ended() || kernel.fault().is_some() {
            return Ok(None);
        }
        let commanded = kernel.commanded();
        let before = match State::from_u32(commanded.state) {
            Some(State::Active) => State::Active,
            _ => State::Inactive,
        };
        if before == State::Active {
            match self.obeyed(commanded, before, deadline) {
                Ok(()) | Err(ControlError::Terminated { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let told = kernel.publish_command(State::Inactive);
        Ok(Some(Away { core: self, _turn: turn, before, told, leaves: false }))
    }

    /// Puts a resident kernel on the device again.
    fn launch_again(&self) {
        match self.device.launch_resident() {
            Ok(()) => self.note_brought_back(),
            Err(error) => {
                let (kernel, source) = (self.device.name, Box::new(error));
                self.device.fail(DeviceFault::Driver { kernel, source });
            }
        }
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        let Away { core, before, leaves, .. } = *self;
        let told = if (leaves || before == State::Active) && core.device.fault().is_none() {
            core.device.publish_and(before, || {
                if leaves && matches!(core.drive, Drive::Resident) {
                    core.launch_again();
                }
            })
        } else {
            None // it is what it was
        };
        if leaves {
            core.turn_away();
        }
        // Any other kernel is launched by a step, if there is something to do.
        core.after_send();
        // Whoever looks whether a kernel is inactive goes by what it has acknowledged.
        if let (Some(told), State::Inactive) = (told, before) {
            let _ = core.obeyed(told, before, OBEYS.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Echo, EchoMessage};
    use crate::memory::plan::Direction;
    use crate::{Device, KernelHandle, LaunchConfig, QuiesceError, Runtime};
    use ring_shared::ring::{CONTROL, Control};
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(60);

    fn active(host: &Runtime, capacity: u32) -> KernelHandle<Echo> {
        let mut kernel = host.launch::<Echo>(LaunchConfig::default().capacity(capacity)).unwrap();
        kernel.activate(LONG).unwrap();
        kernel
    }

    /// Else it could be told to stop again and again, and take no message in between.
    #[test]
    fn a_kernel_goes_on_before_it_is_stopped_again() {
        let host = Runtime::open(Device::Cpu).unwrap();
        let mut kernel = active(&host, 64);
        let core = kernel.core();
        for _ in 0..100 {
            let going_on = core.device.commanded();
            let aside = core.step_aside(LONG.into()).unwrap().unwrap();
            let found = core.device.region().channel(0).status.acknowledgement();
            assert!(found == going_on || Some(found) == aside.told, "{found:?} after {going_on:?}");
            aside.stopped(LONG.into()).unwrap();
        }
        kernel.terminate(LONG).unwrap();
    }

    /// The sender has written the line of a batch's first message, and not line 0 yet; the kernel has taken some of the batch.
    #[test]
    fn a_kernel_does_not_leave_while_a_sender_tells_of_a_batch() {
        let host = Runtime::open(Device::Cpu).unwrap();
        let mut kernel = active(&host, 256);
        let batch: [EchoMessage; 200] = std::array::from_fn(|i| EchoMessage::from_seed(i as u64));
        assert_eq!(kernel.try_send_batch(&batch).unwrap(), 200);
        (0..10).for_each(|i| assert_eq!(kernel.recv(LONG).unwrap(), batch[i].answer()));
        let requests = kernel.core().device.region().ring(0, Direction::Requests);
        let line_0 = &requests.line(0).atoms[CONTROL];
        let first_batch = line_0.load();
        assert_eq!(kernel.try_send_batch(&batch).unwrap(), 200);
        // There is room for no more answers.
        let begun = Instant::now();
        while kernel.telemetry().processed < 266 {
            assert!(begun.elapsed() < LONG, "not handled");
            std::thread::yield_now();
        }
        let both = line_0.load();
        assert_eq!(Control::from_words(both).tail, 400);
        line_0.store(first_batch);
        let late = host.quiesce(Duration::from_millis(20), || ()).unwrap_err();
        assert!(matches!(late, QuiesceError::Control(ControlError::Timeout { .. })), "{late}");
        line_0.store(both);
        host.quiesce(LONG, || ()).unwrap();
        (10..400).for_each(|i| assert_eq!(kernel.recv(LONG).unwrap(), batch[i % 200].answer()));
        kernel.terminate(LONG).unwrap();
    }
}
