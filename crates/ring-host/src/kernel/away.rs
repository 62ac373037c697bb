//! Keeping kernels off the device for a while: they leave between two messages, and go on where they were.
//!
//! They are first told to take no more messages, which a handler that does not end can delay, and which is taken back at the deadline.
//! Then no channel has a message, and all leave at once when they are told to. Each step is taken by all of them before any is waited
//! for.

use super::core::{KernelCore, Turn};
use crate::deadline::Deadline;
use crate::device::retry::launch_within;
use crate::drive::Drive;
use crate::error::{ControlError, DeviceFault, DriverError, DriverReason};
use ring_shared::layout::{Command, State};
use std::time::Duration;

/// How long a kernel that takes no messages may need to leave the device: far longer than it does.
const LEAVES: Duration = Duration::from_secs(1);

/// How long a launch waits for what the driver does instead.
const LAUNCHED: Duration = Duration::from_secs(60);

/// A kernel that is told to leave the device, step by step, and goes on when this is dropped.
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
    /// When the deadline passes.
    pub fn stopped(&self, deadline: Deadline) -> Result<(), ControlError> {
        let Some(told) = self.told else { return Ok(()) };
        match self.core.obeyed(told, State::Inactive, deadline) {
            Err(ControlError::Terminated { .. }) => Ok(()), // by another thread: it leaves, too
            obeyed => obeyed,
        }
    }

    /// Tells it to leave the device: it takes no messages.
    pub fn leave(&mut self) {
        self.core.turn_away();
        self.leaves = true;
        self.core.device.publish_leave();
    }

    /// Waits until it has left.
    ///
    /// # Errors
    /// When it does not within a second; then it is lost.
    pub fn left(&self) -> Result<(), ControlError> {
        self.core.left_device(LEAVES.into()).inspect_err(|error| {
            // Of several channels some may have left. One that another thread terminates may still have a handler that does not end.
            if self.told.is_some() {
                tracing::error!(%error, "no channel has a message, and the kernel stays");
                self.core.device.fail(self.core.device.refused());
            }
        })
    }
}

impl KernelCore {
    /// Tells the kernel to take no messages, as the first step away from the device. Nothing if it has left for good, or is lost.
    ///
    /// # Errors
    /// When another thread commands it until the deadline.
    pub fn step_aside(&self, deadline: Deadline) -> Result<Option<Away<'_>>, ControlError> {
        let kernel = &self.device;
        let turn = self.turn(State::Inactive, deadline)?;
        if kernel.has_ended() || kernel.fault().is_some() {
            return Ok(None);
        }
        let before = match State::from_u32(kernel.commanded().state) {
            Some(State::Active) => State::Active,
            _ => State::Inactive,
        };
        let told = kernel.publish_command(State::Inactive);
        Ok(Some(Away { core: self, _turn: turn, before, told, leaves: false }))
    }

    /// Puts a resident kernel on the device again.
    fn launch_again(&self) {
        // SAFETY: the region is laid out for this kernel and stays until the launch slot is over
        // (`DeviceKernel::drop`), as when it was launched first.
        let launched = unsafe { launch_within(LAUNCHED.into(), self.device.launch_slot()) };
        let launched = launched.and_then(|launched| match launched {
            true => Ok(()),
            false => {
                let reason = DriverReason::Loading { waited: LAUNCHED };
                Err(DriverError { call: "launch", code: 0, reason })
            }
        });
        match launched {
            Ok(()) => {
                self.note_brought_back();
                let _ = self.device.launch_slot().state(); // some drivers begin nothing before they are asked
            }
            Err(error) => {
                let (kernel, source) = (self.device.name, Box::new(error));
                self.device.fail(DeviceFault::Driver { kernel, source });
            }
        }
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        let core = self.core;
        if core.device.fault().is_none() {
            core.device.publish_and_launch(self.before, || {
                if self.leaves && matches!(core.drive, Drive::Resident) {
                    core.launch_again();
                }
            });
        }
        if self.leaves {
            core.turn_away();
        }
        // Any other kernel is launched by a step, if there is something to do.
        core.after_send();
    }
}
