//! What becomes of a kernel that is lost or dropped, and of what it used.

use super::{Bed, LONG, NONE, drive, refused};
use crate::drive::orphans::reap;
use crate::error::{ControlError, DeviceFault, TryRecvError};
use crate::mode::{Memory, Mode};
use ring_shared::layout::{Command, Exit, State};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};

fn resident(channels: u32) -> Bed {
    Bed::active(drive(Mode::Persistent, Memory::Mapped), channels)
}

/// A command may be obeyed while another thread finds a fault: the kernel stays lost.
#[test]
fn no_state_covers_a_fault() {
    let bed = resident(1);
    let fault = bed.core.device.fail(bed.core.device.device_fault(refused()));
    for state in [State::Active, State::Inactive, State::Terminated] {
        bed.core.device.set_state(state);
        assert_eq!(bed.core.device.state(), State::Faulted, "over {state:?}");
        assert!(!bed.core.device.is_active());
    }
    assert_eq!(bed.core.device.fault(), Some(fault.clone()));
    assert_eq!(bed.core.device.admit(), Err(fault.clone().into()));
    assert_eq!(bed.core.device.end(), Some(TryRecvError::Fault(fault)));
}

#[test]
fn the_first_fault_counts() {
    let bed = resident(1);
    let first = bed.core.device.fail(bed.core.device.refused());
    assert_eq!(first, DeviceFault::Refused { kernel: "echo" });
    assert_eq!(bed.core.device.fail(bed.core.device.device_fault(refused())), first);
    assert_eq!(bed.core.check(), Err(first));
}

/// One channel panics. The others poll on, and would for ever if nobody told them.
#[test]
fn a_dropped_kernel_that_lost_a_channel_orders_the_others_to_leave() {
    let bed = resident(3);
    bed.device().panics(1);
    let fault = bed.core.check().unwrap_err();
    assert!(matches!(fault, DeviceFault::HandlerPanicked { channel: 1, .. }), "{fault}");
    let Command { epoch, .. } = bed.ordered();
    let core = Arc::clone(&bed.core);
    drop(bed);
    let ordered = Command { epoch: epoch + 1, state: State::Terminated as u32 };
    assert_eq!(core.device.commanded(), ordered);
}

/// So is a kernel that is well; one that was terminated is told nothing more.
#[test]
fn a_dropped_kernel_is_ordered_to_leave_once() {
    for terminate in [false, true] {
        let mut bed = resident(2);
        let (device, launch_slot) = (bed.device(), Arc::clone(&bed.launch_slot));
        let left = Command { epoch: bed.ordered().epoch + 1, state: State::Terminated as u32 };
        device.obey_as(left.epoch, State::Terminated);
        bed.launch_slot.on_state(move || {
            if device.command() == left {
                launch_slot.end();
            }
        });
        if terminate {
            bed.kernel.terminate(LONG).unwrap();
        }
        let core = Arc::clone(&bed.core);
        drop(bed);
        assert_eq!(core.device.commanded(), left);
        assert_eq!(core.device.has_ended(), terminate);
    }
}

/// What a kernel uses that may still run is kept until it has left, its share of the device too.
#[test]
fn what_may_still_run_keeps_its_memory_and_its_share() {
    for stays in [true, false] {
        let bed = resident(2);
        let (launch_slot, occupancy) = (Arc::clone(&bed.launch_slot), bed.occupancy.clone());
        assert!(!occupancy.is_empty());
        launch_slot.stays(stays);
        drop(bed);
        assert_eq!(!occupancy.is_empty(), stays);
        assert_eq!(Arc::strong_count(&launch_slot) > 1, stays);
        launch_slot.stays(false);
        reap();
        assert_eq!(Arc::strong_count(&launch_slot), 1);
        assert!(occupancy.is_empty());
    }
}

/// A kernel that has left gives its share of the device back, though its handle lives.
#[test]
fn a_kernel_that_was_terminated_gives_its_share_back() {
    let mut bed = resident(2);
    bed.device().obey_as(bed.ordered().epoch + 1, State::Terminated);
    let staying = bed.kernel.terminate(NONE).unwrap_err();
    assert!(matches!(staying, ControlError::Staying { kernel: "echo", .. }), "{staying}");
    assert!(!bed.core.device.has_ended() && !bed.occupancy.is_empty());
    assert_eq!(bed.core.device.end(), None);
    bed.launch_slot.end();
    assert_eq!(bed.core.check(), Ok(()), "it has left as it was asked to");
    assert!(bed.core.device.has_ended() && bed.occupancy.is_empty());
    assert_eq!(bed.core.device.end(), Some(TryRecvError::Closed { kernel: "echo" }));
    assert_eq!(bed.kernel.try_recv(), Err(TryRecvError::Closed { kernel: "echo" }));
    // The device may break now: nothing of this kernel is on it.
    bed.launch_slot.fault();
    assert_eq!(bed.core.check(), Ok(()));
}

/// A kernel that the driver says has ended, and that nobody asked to leave, was refused by its own PTX.
#[test]
fn a_kernel_that_ends_unasked_is_lost() {
    let bed = resident(2);
    assert_eq!(bed.core.check(), Ok(()));
    bed.launch_slot.end();
    assert_eq!(bed.core.check(), Err(DeviceFault::Refused { kernel: "echo" }));
    // Unless it said why.
    let bed = resident(2);
    bed.device().panics(1);
    bed.launch_slot.end();
    let fault = bed.core.check().unwrap_err();
    assert!(matches!(fault, DeviceFault::HandlerPanicked { channel: 1, .. }), "{fault}");
    // What it says between two looks counts too.
    let bed = resident(2);
    let device = bed.device();
    bed.launch_slot.end();
    bed.launch_slot.on_state(move || {
        let status = &device.channel(0).status;
        status.exit.store(Exit::LeaseOver as u64, Relaxed);
        status.processed.store(3, Relaxed);
        device.says(0, 1, State::Faulted);
    });
    let left = DeviceFault::Left { kernel: "echo", channel: 0, exit: Exit::LeaseOver };
    assert_eq!(bed.core.check(), Err(left));
}

/// An exit that nobody knows is a corrupt word.
#[test]
fn a_channel_that_left_says_why() {
    let bed = resident(2);
    bed.device().channel(1).status.exit.store(4711, Relaxed);
    bed.device().says(1, 1, State::Faulted);
    let left = DeviceFault::Left { kernel: "echo", channel: 1, exit: Exit::CorruptRing };
    assert_eq!(bed.core.check(), Err(left));
}

/// The driver is told how many messages all channels have handled.
#[test]
fn what_all_channels_handled_is_told() {
    let bed = resident(2);
    let device = bed.device();
    device.channel(0).status.processed.store(5, Release);
    device.channel(1).status.processed.store(u64::MAX - 1, Release);
    assert_eq!(bed.core.check(), Ok(()));
    assert_eq!(bed.launch_slot.processed(), Some(3));
    bed.launch_slot.fault();
    let fault =
        DeviceFault::Device { kernel: "echo", device: "fake".into(), source: Box::new(refused()) };
    assert_eq!(bed.core.check(), Err(fault));
}
