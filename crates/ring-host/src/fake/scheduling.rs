//! When a kernel is launched that is not simply resident, and what is done when that fails.

use super::{Bed, LONG, NONE, SLOTS, drive, message, plan};
use crate::drive::DriveConfig;
use crate::error::{ControlError, DeviceFault, RecvTimeoutError};
use crate::memory::plan::Plan;
use crate::mode::{Memory, Mode};
use ring_shared::layout::{Budgets, State};
use std::time::Duration;

/// A time that no test takes, in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

/// An active kernel at rest, event-driven in mapped memory, whose launches may last for an hour.
fn at_rest() -> Bed {
    Bed::active(timed(HOUR), 2)
}

/// Event-driven in mapped memory, with launches of so many nanoseconds.
fn timed(time: u64) -> DriveConfig {
    let drive = drive(Mode::EventDriven, Memory::Mapped);
    let iterations = u64::MAX;
    DriveConfig { budgets: Budgets { time, iterations, ..drive.budgets }, ..drive }
}

/// How many launches `act` makes.
fn launches(bed: &mut Bed, act: impl FnOnce(&mut Bed)) -> usize {
    let before = bed.launches();
    act(bed);
    assert_eq!(bed.kernel.launches(), bed.launches() as u64);
    bed.launches() - before
}

#[test]
fn a_message_launches_a_kernel_at_rest_once() {
    let mut bed = at_rest();
    assert!(bed.kernel.is_resting());
    assert_eq!(launches(&mut bed, |bed| (0..5).for_each(|_| bed.step())), 0, "nothing to do");
    assert_eq!(launches(&mut bed, |bed| bed.send(0, 3)), 1);
    assert!(!bed.kernel.is_resting());
    assert_eq!(launches(&mut bed, |bed| (0..5).for_each(|_| bed.step())), 0, "it runs");
    let mut worker = bed.worker(0);
    assert_eq!(worker.work(2), 2);
    assert_eq!(launches(&mut bed, Bed::rest_quietly), 1, "one message is left");
    assert_eq!(worker.work(2), 1);
    assert_eq!(launches(&mut bed, Bed::rest_quietly), 0);
    bed.receive(0, 3);
    let other = |bed: &mut Bed| bed.kernel.channel(1).unwrap().try_send(message(0)).unwrap();
    assert_eq!(launches(&mut bed, other), 1, "any channel's");
}

/// Requests whose answers have no room cannot be answered: the kernel is launched once there is room.
#[test]
fn a_kernel_without_room_for_answers_is_not_launched() {
    let mut bed = at_rest();
    let mut worker = bed.worker(0);
    bed.send(0, SLOTS.into());
    assert_eq!(worker.work(20), SLOTS as usize);
    bed.rest();
    assert_eq!(launches(&mut bed, |bed| bed.send(SLOTS.into(), 2 * u64::from(SLOTS))), 0);
    assert_eq!(launches(&mut bed, |bed| bed.receive(0, 1)), 0, "a look that finds takes no step");
    assert_eq!(launches(&mut bed, Bed::step_once), 1);
}

/// Inactive kernels are not launched, whatever lies in their rings.
#[test]
fn an_inactive_kernel_is_not_launched() {
    let mut bed = at_rest();
    bed.kernel.deactivate(NONE).unwrap();
    bed.core.device.set_state(State::Active); // a send that was under way
    assert_eq!(launches(&mut bed, |bed| bed.send(0, 2)), 0);
}

/// While a launch runs and work is pending, another is queued behind it: after half of its time.
#[test]
fn a_follow_up_is_queued_after_half_of_the_time() {
    let mut bed = Bed::active(timed(40_000_000), 1);
    bed.send(0, 2);
    let one = bed.launches();
    std::thread::sleep(Duration::from_millis(21));
    bed.step();
    assert_eq!(bed.launches(), one + 1);
    std::thread::sleep(Duration::from_millis(21));
    bed.step();
    assert_eq!(bed.launches(), one + 1, "two deep");
    assert!(!bed.kernel.is_resting());
    // Once the first has left, the second is followed likewise, if there is work.
    bed.device().leave(one as u64);
    bed.worker(0).work(2);
    std::thread::sleep(Duration::from_millis(21));
    bed.step();
    assert_eq!(bed.launches(), one + 1, "nothing is pending");
}

/// Where iterations are counted nobody knows how long a launch lasts.
#[test]
fn a_counted_launch_is_followed_at_once() {
    let endless = timed(HOUR);
    let counted = Budgets { iterations: 5, ..endless.budgets };
    let stays = DriveConfig { mode: Mode::Persistent, memory: Memory::StagedAsync, ..endless };
    let alone = DriveConfig { calls_block: true, ..endless };
    let sync = DriveConfig { memory: Memory::StagedSync, ..endless };
    let graph = DriveConfig { mode: Mode::Graph, ..endless };
    let beside = DriveConfig { memory: Memory::StagedAsync, ..endless };
    for (drive, follows) in [
        (endless, true),
        (graph, true),
        (beside, true),
        (alone, false),
        (sync, false),
        (stays, false),
    ] {
        let mut bed = Bed::active(DriveConfig { budgets: counted, ..drive }, 1);
        let before = bed.launches();
        bed.send(0, 2);
        (0..9).for_each(|_| bed.step());
        assert_eq!(bed.launches() - before, 1 + usize::from(follows), "{drive:?}");
        // Not for a kernel that is to leave or to rest.
        let mut bed = Bed::active(DriveConfig { budgets: counted, ..drive }, 1);
        let before = bed.launches();
        bed.launch_slot.on_launch({
            let device = bed.device();
            move || device.order(State::Inactive)
        });
        bed.send(0, 2);
        (0..9).for_each(|_| bed.step());
        assert_eq!(bed.launches() - before, 1, "{drive:?}");
    }
}

/// Graphs are replayed, other launches are not.
#[test]
fn each_launch_goes_the_way_that_was_chosen() {
    for (mode, replay) in [(Mode::EventDriven, false), (Mode::Graph, true)] {
        let mut bed = Bed::active(drive(mode, Memory::Mapped), 1);
        bed.send(0, 1);
        assert!(bed.launch_slot.launches().iter().all(|replays| *replays == replay), "{mode}");
    }
}

/// A device that says of each launch that it has left, while the driver says that it runs: the
/// driver's queue must not fill.
#[test]
fn the_driver_is_asked_before_more_launches_are_queued() {
    let mut bed = at_rest();
    bed.send(0, 1);
    let before = bed.launches();
    for _ in 0..1000 {
        bed.device().leave(bed.launches() as u64);
        bed.step();
    }
    assert!((200..=256).contains(&(bed.launches() - before)), "{}", bed.launches() - before);
    bed.launch_slot.end();
    assert_eq!(launches(&mut bed, Bed::step_once), 1, "they have left indeed");
    bed.device().leave(bed.launches() as u64);
    assert_eq!(launches(&mut bed, Bed::step_once), 1, "and are counted anew");
    // Where the driver says that the device stopped, that is told.
    let mut bed = at_rest();
    bed.send(0, 1);
    while launches(&mut bed, |bed| {
        bed.device().leave(bed.launches() as u64);
        bed.step();
    }) > 0
    {}
    bed.launch_slot.fault();
    bed.step();
    assert!(matches!(bed.core.device.fault(), Some(DeviceFault::Device { .. })));
}

/// A launch that is refused now and then is made again; three in a row are the end.
#[test]
fn refused_launches_are_made_again_a_few_times() {
    let mut bed = at_rest();
    let mut worker = bed.worker(0);
    for round in 0..4 {
        bed.launch_slot.refuse_launches(2);
        bed.send(round, round + 1);
        bed.step();
        assert!(bed.core.device.fault().is_none());
        assert_eq!(launches(&mut bed, Bed::step_once), 1);
        assert_eq!(worker.work(1), 1);
        bed.rest();
        bed.receive(round, round + 1);
    }
    bed.launch_slot.refuse_launches(3);
    bed.send(4, 5);
    bed.step();
    assert_eq!(bed.core.device.fault(), None);
    bed.step();
    let fault = bed.core.device.fault();
    assert!(matches!(fault, Some(DeviceFault::Driver { kernel: "echo", .. })), "{fault:?}");
    assert_eq!(bed.kernel.fallbacks().count(), 0);
}

/// Graphs that fail give way to plain launches, if nobody asked for graphs.
#[test]
fn a_graph_that_fails_gives_way() {
    for mode_is_free in [true, false] {
        let drive = DriveConfig { mode_is_free, ..drive(Mode::Graph, Memory::Mapped) };
        let mut bed = Bed::active(drive, 1);
        bed.launch_slot.refuse_launches(1);
        bed.send(0, 1);
        bed.step();
        assert_eq!(bed.launch_slot.launches().last(), Some(&!mode_is_free));
        let mode = if mode_is_free { Mode::EventDriven } else { Mode::Graph };
        assert_eq!(bed.kernel.runs_as(), (mode, Memory::Mapped));
        let fallbacks: Vec<_> = bed.kernel.fallbacks().collect();
        assert_eq!(fallbacks.len(), usize::from(mode_is_free));
        if let Some(change) = fallbacks.first() {
            assert_eq!(change.from, (Mode::Graph, Memory::Mapped));
            assert_eq!(change.to, (Mode::EventDriven, Memory::Mapped));
            assert_eq!(change.why, super::launch_slot::refused());
        }
    }
    // A change for the worse is no failure: three more are had.
    let mut bed = Bed::active(drive(Mode::Graph, Memory::Mapped), 1);
    bed.launch_slot.refuse_launches(3);
    bed.send(0, 1);
    (0..2).for_each(|_| bed.step());
    assert_eq!(bed.core.device.fault(), None);
    assert_eq!(launches(&mut bed, Bed::step_once), 1);
}

/// Who copies between launches keeps them away, where copies cannot be made beside one.
#[test]
fn a_hold_keeps_launches_away() {
    let mapped = timed(HOUR);
    let blocks = DriveConfig { calls_block: true, ..mapped };
    let sync = drive(Mode::EventDriven, Memory::StagedSync);
    for (drive, holds) in [(mapped, false), (blocks, true), (sync, true)] {
        let mut bed = Bed::active(drive, 1);
        let core = bed.core.clone();
        let hold = core.drive.hold();
        assert_eq!(hold.is_some(), holds, "{drive:?}");
        let before = bed.launches();
        bed.send(0, 1);
        (0..5).for_each(|_| bed.step());
        assert_eq!(bed.launches() - before, usize::from(!holds), "{drive:?}");
        drop(hold);
        (0..5).for_each(|_| bed.step());
        assert_eq!(bed.launches() - before, 1, "{drive:?}");
    }
}

/// A launch whose message is being carried out is given up for a hold, and for an order to leave: the
/// kernel rests, though a message is pending.
#[test]
fn what_is_loading_gives_way_to_a_hold_and_to_an_order_to_leave() {
    for by_order in [false, true] {
        let mut bed = Bed::active(drive(Mode::EventDriven, Memory::StagedSync), 1);
        let before = bed.launches();
        bed.launch_slot.late();
        bed.send(0, 1); // goes out
        assert!(!bed.kernel.is_resting());
        let core = bed.core.clone();
        let hold = (!by_order).then(|| core.drive.hold().expect("copies go between launches"));
        if by_order {
            bed.core.device.publish_command(State::Terminated);
        }
        bed.launch_slot.land();
        (0..4).for_each(|_| bed.step());
        bed.launch_slot.land();
        assert_eq!(bed.launches(), before, "by order: {by_order}");
        assert!(bed.kernel.is_resting(), "by order: {by_order}");
        drop(hold);
        if !by_order {
            bed.launch_slot.prompt();
            bed.step();
            assert_eq!(bed.launches(), before + 1, "when nobody holds it any more");
            assert_eq!(bed.worker(0).work(1), 1, "and the message is there");
        }
    }
}

/// The driver may know that a launch is over before the channels' own words are here, or without any.
#[test]
fn a_launch_that_ends_without_a_word_is_a_fault() {
    let mut bed = at_rest();
    bed.send(0, 1);
    assert_eq!(bed.core.check(), Ok(()));
    bed.launch_slot.end();
    assert_eq!(bed.core.check(), Err(DeviceFault::Refused { kernel: "echo" }));
    // In staged memory what it said last is carried back first.
    let mut bed = Bed::active(drive(Mode::Persistent, Memory::StagedAsync), 1);
    bed.send(0, 1);
    (0..3).for_each(|_| bed.step());
    bed.device().panics(0);
    bed.launch_slot.end();
    assert_eq!(bed.core.check(), Ok(()));
    let end = bed.kernel.recv(LONG).unwrap_err();
    assert!(matches!(end, RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { .. })), "{end}");
    // And if it said nothing at all, that is told then.
    let mut bed = Bed::active(drive(Mode::Persistent, Memory::StagedAsync), 1);
    bed.send(0, 1);
    (0..3).for_each(|_| bed.step());
    bed.launch_slot.end();
    let end = bed.kernel.recv(LONG).unwrap_err();
    assert_eq!(end, RecvTimeoutError::Fault(DeviceFault::Refused { kernel: "echo" }));
}

/// A lost channel is not run again.
#[test]
fn a_kernel_that_lost_a_channel_is_not_launched() {
    let mut bed = at_rest();
    bed.device().panics(1);
    assert_eq!(launches(&mut bed, |bed| drop(bed.kernel.try_send(message(0)))), 0);
    assert!(matches!(
        bed.core.device.fault(),
        Some(DeviceFault::HandlerPanicked { channel: 1, .. })
    ));
}

/// What the device says to have consumed counts, not what it cannot have: pending requests are those
/// between its word and the host's tail, a ring full at most.
#[test]
fn pending_is_what_the_device_has_not_consumed() {
    let start = u64::from(u32::MAX) - 3;
    let drive = timed(HOUR);
    let mut bed = Bed::with(drive, Plan { start, ..plan(drive) });
    bed.activate();
    let mut worker = bed.worker(0);
    bed.send(0, 5);
    assert_eq!(worker.work(5), 5);
    bed.rest();
    assert_eq!(launches(&mut bed, Bed::step_once), 0);
    assert_eq!(bed.kernel.summary().unhandled, 0);
    bed.receive(0, 5);
    assert_eq!(launches(&mut bed, |bed| bed.send(5, 6)), 1);
    assert_eq!(bed.kernel.summary().unhandled, 1);
}

/// Terminating a kernel that runs waits for its launch; one that rests has left already.
#[test]
fn a_running_kernel_is_waited_for() {
    let mut bed = at_rest();
    bed.send(0, 1);
    let late = bed.kernel.terminate(NONE).unwrap_err();
    assert!(matches!(late, ControlError::Timeout { channel: 0, .. }), "{late}");
    let device = bed.device();
    device.obey();
    device.leave(bed.launches() as u64);
    bed.launch_slot.end();
    let summary = bed.kernel.terminate(NONE).unwrap();
    assert_eq!((summary.processed, summary.unhandled), (0, 1));
    assert!(bed.kernel.is_resting());
}
