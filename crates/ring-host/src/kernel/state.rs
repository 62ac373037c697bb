//! What a kernel of scope [`InOrder`](ring_device::InOrder) keeps from message to message, from the
//! host's side. The host looks at it and changes it only while no channel takes messages.

use crate::deadline::Deadline;
use crate::device::CopyKind;
use crate::drive::device_kernel::DeviceKernel;
use crate::error::{DeviceFault, LaunchError, PayloadError, StateError};
use crate::kernel::core::{Copying, KernelCore};
use crate::kernel::handle::KernelHandle;
use crate::kernel::turns::Turn;
use bytemuck::Zeroable;
use ring_device::{HasState, Kernel};
use ring_shared::layout::State;

/// What a channel of kernel `K` keeps.
pub type StateOf<K> = <<K as Kernel>::Scope as HasState<K>>::State;

impl<K: Kernel> KernelHandle<K>
where
    K::Scope: HasState<K>,
{
    /// The state of a channel, copied from the device. The kernel must not be active: deactivated,
    /// terminated, or not activated yet.
    ///
    /// ```
    /// # use ring_host::{Device, LaunchConfig, Runtime};
    /// # use std::time::Duration;
    /// ring_device::ring_kernel! {
    ///     /// Adds up.
    ///     pub struct Sum;
    ///     fn handle(sum: &mut u64, request: &u64) -> u64 {
    ///         *sum = sum.wrapping_add(*request);
    ///         *sum
    ///     }
    /// }
    /// # let second = Duration::from_secs(1);
    /// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Sum>(LaunchConfig::default())?;
    /// kernel.write_state(0, &100, second)?; // zero if nobody writes it
    /// kernel.activate(second)?;
    /// for n in [1, 2, 3] {
    ///     kernel.send(n, second)?;
    /// }
    /// assert_eq!([kernel.recv(second)?, kernel.recv(second)?, kernel.recv(second)?], [101, 103, 106]);
    /// kernel.terminate(second)?;
    /// assert_eq!(kernel.read_state(0, second)?, 106);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_state(
        &mut self,
        channel: u32,
        deadline: impl Into<Deadline>,
    ) -> Result<StateOf<K>, StateError> {
        let mut state = StateOf::<K>::zeroed();
        self.read_state_into(channel, &mut state, deadline)?;
        Ok(state)
    }

    /// The same, into room of the caller's: for a state that is too large for the stack.
    pub fn read_state_into(
        &mut self,
        channel: u32,
        state: &mut StateOf<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), StateError> {
        let deadline = deadline.into();
        let (core, bytes) = (self.core(), bytemuck::bytes_of_mut(state));
        let (_turn, copying, at) = core.quiet_state(channel, deadline)?;
        Ok(core.copy_out(&copying, at, bytes, deadline)?)
    }

    /// Replaces the state of a channel, under the same conditions; the next message finds it. After a timeout
    /// it may be the old one, the new one, or some of each; `activate` waits until the copy is over.
    pub fn write_state(
        &mut self,
        channel: u32,
        state: &StateOf<K>,
        deadline: impl Into<Deadline>,
    ) -> Result<(), StateError> {
        let deadline = deadline.into();
        let (core, bytes) = (self.core(), bytemuck::bytes_of(state));
        let (_turn, copying, at) = core.quiet_state(channel, deadline)?;
        Ok(core.copy_in(&copying, at, bytes, deadline)?)
    }
}

impl KernelCore {
    /// Copies the state of a channel at a message's boundary.
    pub fn read_state_between(
        &self,
        channel: u32,
        state: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), StateError> {
        self.check_channel(channel)?;
        self.between_messages(deadline, |copying| {
            Ok(self.copy_out(copying, self.device.region().state(channel), state, deadline)?)
        })
    }

    /// Calls `read` between two messages: a kernel that is active takes no message meanwhile, and goes on behind it. What is sent
    /// meanwhile waits in the rings.
    pub(super) fn between_messages<T>(
        &self,
        deadline: Deadline,
        read: impl FnOnce(&Copying<'_>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        self.check().map_err(PayloadError::from)?;
        let aside = self.step_aside(deadline)?;
        aside.iter().try_for_each(|kernel| kernel.stopped(deadline))?;
        read(&self.copying(deadline)?)
    }

    /// Where the state of a channel is, if it may be looked at, and goes on to be while the caller has the kernel's turn.
    pub(super) fn quiet_state(
        &self,
        channel: u32,
        deadline: Deadline,
    ) -> Result<(Turn<'_>, Copying<'_>, u64), StateError> {
        self.check_channel(channel)?;
        let turn = self.turn(State::Inactive, deadline)?;
        if !self.is_quiet(channel).map_err(PayloadError::from)? {
            return Err(StateError::Active { kernel: self.device.name });
        }
        Ok((turn, self.copying(deadline)?, self.device.region().state(channel)))
    }

    /// Whether the channel takes no message, and will not before it is told to: it has left, or it rests, or
    /// has said so. A command that timed out says nothing.
    fn is_quiet(&self, channel: u32) -> Result<bool, DeviceFault> {
        self.check()?;
        let commanded = self.device.commanded();
        if self.device.has_ended() {
            return Ok(true);
        }
        if commanded.state == State::Active as u32 {
            return Ok(false);
        }
        let acknowledged = self.device.region().channel(channel).status.acknowledgement();
        if acknowledged.epoch == commanded.epoch && acknowledged.state != State::Active as u32 {
            return Ok(true);
        }
        self.drive.rests(&self.device)
    }
}

/// Makes the device memory that every channel keeps zero, if there is any, but for its first words. The kernel was not launched yet.
pub(crate) fn clear_state(
    kernel: &DeviceKernel,
    head: &[u64],
    deadline: Deadline,
) -> Result<(), LaunchError> {
    let region = kernel.region();
    let (bytes, (staging, room)) = (region.plan.state_bytes, region.staging());
    let (head, zeroed): (&[u8], _) =
        (bytemuck::cast_slice(head), room.min(bytes.next_multiple_of(4)));
    assert!(head.len() <= zeroed, "{} bytes in a state of {bytes}", head.len());
    // SAFETY: the staging is this kernel's, as long as that, and no copy uses it yet.
    unsafe { staging.as_ptr().write_bytes(0, zeroed) };
    for channel in 0..region.plan.channels {
        // SAFETY: as above, and no copy uses it now; other memory.
        unsafe { staging.as_ptr().copy_from_nonoverlapping(head.as_ptr(), head.len()) };
        let mut done = 0;
        while done < bytes {
            let part = room.min(bytes - done).next_multiple_of(4);
            kernel.copy(CopyKind::HostToDevice, region.state(channel) + done as u64, part)?;
            kernel.copied(done, deadline).map_err(|source| match source {
                PayloadError::Driver(error) => LaunchError::Driver(error),
                source => LaunchError::State { kernel: kernel.name, source },
            })?;
            if done == 0 {
                // SAFETY: as above.
                unsafe { staging.as_ptr().write_bytes(0, head.len()) };
            }
            done += part;
        }
    }
    Ok(())
}
