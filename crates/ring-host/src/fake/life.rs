//! Commands, and what counts as their being obeyed.

use super::{Bed, LONG, NONE, drive};
use crate::device::{LaunchSlot, Launched};
use crate::drive::DriveConfig;
use crate::error::{ControlError, DeviceFault};
use crate::mode::{Memory, Mode};
use ring_shared::layout::{Command, State};
use ring_shared::ring::Corrupt;

/// A kernel of three channels that was told nothing yet.
fn told_nothing(mode: Mode) -> Bed {
    Bed::new(drive(mode, Memory::Mapped), 3)
}

/// Which channel a timeout names.
fn late(ended: Result<(), ControlError>) -> (u32, State) {
    match ended.expect_err("it is not obeyed") {
        ControlError::Timeout { kernel: "echo", channel, asked, .. } => (channel, asked),
        error => panic!("{error}"),
    }
}

#[test]
fn a_command_waits_for_every_channel_and_names_the_first_that_is_late() {
    let mut bed = told_nothing(Mode::Persistent);
    for channel in 0..3 {
        assert_eq!(late(bed.kernel.activate(NONE)), (channel, State::Active));
        assert!(!bed.core.device.has_acknowledged());
        let next = bed.ordered().epoch + 1;
        (0..=channel).for_each(|channel| bed.device().says(channel, next, State::Active));
    }
    assert_eq!(bed.core.device.state(), State::Launched);
    bed.kernel.activate(NONE).unwrap();
    assert!(bed.core.device.has_acknowledged() && bed.core.device.is_active());
    assert_eq!(bed.ordered(), Command { epoch: 4, state: State::Active as u32 });
}

/// Neither another state nor another epoch is an answer to a command, but a channel that has yielded since
/// has obeyed it first.
#[test]
fn what_is_obeyed_is_that_very_command() {
    let mut bed = told_nothing(Mode::Persistent);
    let device = bed.device();
    device.obey_as(1, State::Inactive);
    assert_eq!(late(bed.kernel.activate(NONE)), (0, State::Active));
    device.obey_as(1, State::Active); // of the command before
    assert_eq!(late(bed.kernel.activate(NONE)), (0, State::Active));
    device.obey_as(2, State::Yielded);
    assert_eq!(late(bed.kernel.activate(NONE)), (0, State::Active));
    device.obey_as(4, State::Yielded);
    bed.kernel.activate(NONE).unwrap();
    device.obey_as(4, State::Active);
    assert_eq!(late(bed.kernel.deactivate(NONE)), (0, State::Inactive));
    assert_eq!(bed.core.device.state(), State::Inactive, "nothing is sent from then on");
    device.obey_as(6, State::Inactive);
    bed.kernel.deactivate(NONE).unwrap();
    // A channel that has obeyed an earlier order to leave obeys no later one.
    device.obey_as(7, State::Inactive);
    assert_eq!(late(bed.kernel.terminate(NONE).map(drop)), (0, State::Terminated));
    device.obey_as(7, State::Terminated);
    device.leave(1);
    bed.launch_slot.end();
    bed.kernel.terminate(NONE).unwrap();
}

/// A kernel at rest need not be launched to be told that it may rest on.
#[test]
fn a_kernel_at_rest_is_launched_to_become_active_only() {
    let mut bed = told_nothing(Mode::EventDriven);
    bed.kernel.deactivate(NONE).unwrap();
    assert_eq!(bed.launches(), 0);
    assert_eq!(late(bed.kernel.activate(NONE)), (0, State::Active));
    assert_eq!(bed.launches(), 1);
    assert!(bed.core.drive.is_launched(&bed.core.device).unwrap());
    // One that is on the device must obey.
    assert_eq!(late(bed.kernel.deactivate(NONE)), (0, State::Inactive));
    bed.leave();
    bed.kernel.deactivate(NONE).unwrap();
    bed.kernel.terminate(NONE).unwrap();
    assert_eq!(bed.launches(), 1);
}

#[test]
fn a_kernel_that_was_never_launched_is_not_launched() {
    let bed = told_nothing(Mode::EventDriven);
    assert!(!bed.core.drive.is_launched(&bed.core.device).unwrap());
    let resident = told_nothing(Mode::Persistent);
    assert!(resident.core.drive.is_launched(&resident.core.device).unwrap());
}

/// Of so many launches, those that every channel has left; more than there were cannot be.
#[test]
fn launches_left_are_those_of_the_last_channel() {
    let bed = told_nothing(Mode::EventDriven);
    let device = bed.device();
    device.leave(5);
    device.channel(1).status.launches_left.store(3, std::sync::atomic::Ordering::Release);
    assert_eq!((bed.core.device.left(), bed.core.device.left_of(5)), (3, Ok(3)));
    let corrupt = Corrupt { found: 5, low: 0, high: 4 };
    let fault = DeviceFault::Corrupt { kernel: "echo", channel: 0, corrupt };
    assert_eq!(bed.core.device.left_of(4), Err(fault));
    let bed = told_nothing(Mode::EventDriven);
    assert_eq!((bed.core.device.left(), bed.core.device.left_of(2)), (0, Ok(0)));
    bed.device().leave(2);
    assert_eq!((bed.core.device.left(), bed.core.device.left_of(2)), (2, Ok(2)));
}

/// A kernel has left when the driver says so, and, if it is driven, its last answers are here.
#[test]
fn leaving_is_waited_for() {
    let bed = told_nothing(Mode::Persistent);
    let staying = bed.core.left_device(NONE.into()).unwrap_err();
    assert!(matches!(staying, ControlError::Staying { kernel: "echo", .. }), "{staying}");
    bed.launch_slot.end();
    bed.core.left_device(NONE.into()).unwrap();
    let mut bed = told_nothing(Mode::EventDriven);
    assert_eq!(late(bed.kernel.activate(NONE)), (0, State::Active));
    bed.core.device.publish_command(State::Terminated);
    bed.launch_slot.end(); // but the channels do not say so
    let staying = bed.core.left_device(NONE.into()).unwrap_err();
    assert!(matches!(staying, ControlError::Staying { .. }), "{staying}");
    bed.leave();
    bed.core.left_device(LONG.into()).unwrap();
}

/// A kernel in staged memory that was asked to leave and has left has ended once its last answers are here,
/// and not before.
#[test]
fn what_has_left_ends_with_its_last_answers() {
    let mut bed = Bed::active(drive(Mode::EventDriven, Memory::StagedAsync), 1);
    let mut worker = bed.worker(0);
    bed.send(0, 3);
    (0..3).for_each(|_| bed.step());
    assert_eq!(worker.work(3), 3);
    assert!(bed.kernel.terminate(NONE).is_err());
    bed.device().obey_as(bed.ordered().epoch, State::Terminated);
    bed.leave();
    assert_eq!(bed.core.check(), Ok(()));
    assert!(!bed.core.device.has_ended(), "its answers are on the device");
    bed.receive(0, 3);
    (0..5).for_each(|_| bed.step());
    assert_eq!(bed.core.check(), Ok(()));
    assert!(bed.core.device.has_ended());
}

/// The driver says that nothing runs, and another thread launches the kernel before that is looked into: it
/// is not taken for one that has ended without a word.
#[test]
fn a_launch_made_between_two_looks_is_not_over() {
    let drive = drive(Mode::Persistent, Memory::StagedAsync);
    let mut bed =
        Bed::active(DriveConfig { memory_is_free: false, mode_is_free: false, ..drive }, 1);
    let mut worker = bed.worker(0);
    bed.send(0, 1);
    (0..3).for_each(|_| bed.step());
    let launches = bed.launches();
    bed.launch_slot.end();
    let (launch_slot, mut looks) = (bed.launch_slot.clone(), 0);
    bed.launch_slot.on_state(move || {
        looks += 1;
        if looks == 2 {
            // SAFETY: nothing is launched by it.
            let launched = unsafe { launch_slot.launch(false) };
            assert_eq!(launched, Ok(Launched::Yes));
        }
    });
    assert_eq!(bed.core.check(), Ok(()));
    assert_eq!(bed.launches(), launches + 1, "both looks were made");
    assert_eq!(worker.work(1), 1);
    (0..5).for_each(|_| bed.step());
    assert_eq!(bed.core.device.fault(), None);
    bed.receive(0, 1);
}
