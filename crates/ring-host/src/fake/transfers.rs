//! What is carried between the host's copy of a kernel's memory and the device's, and when.

use super::launch_slot::Copy;
use super::{Bed, LONG, SLOTS, drive, message, plan};
use crate::drive::DriveConfig;
use crate::error::{DeviceFault, TryRecvError};
use crate::memory::plan::{BACK_AT, BACK_ATOMS, Direction, OUT_AT, OUT_ATOMS, Plan};
use crate::mode::{Memory, Mode};
use ring_shared::layout::{Times, UNLIMITED};
use ring_shared::ring::{CONTROL, Control};
use std::sync::atomic::Ordering::Relaxed;

/// Every way with a copy of the memory on the device.
const WAYS: [(Mode, Memory); 3] = [
    (Mode::Persistent, Memory::StagedAsync),
    (Mode::EventDriven, Memory::StagedAsync),
    (Mode::EventDriven, Memory::StagedSync),
];

/// Nothing may change when an operation fails.
fn fixed(mode: Mode, memory: Memory) -> DriveConfig {
    DriveConfig { mode_is_free: false, memory_is_free: false, ..drive(mode, memory) }
}

/// A kernel in staged-async memory, active, and launched by message 0, which is answered; copies are
/// noted from here on. It stays on the device.
fn running(channels: u32) -> (Bed, super::Worker) {
    let mut bed = Bed::active(fixed(Mode::EventDriven, Memory::StagedAsync), channels);
    let mut worker = bed.worker(0);
    bed.send(0, 1);
    bed.step();
    assert_eq!(worker.work(1), 1);
    bed.step();
    bed.receive(0, 1);
    (0..9).for_each(|_| bed.step());
    drop(bed.launch_slot.copies_made());
    (bed, worker)
}

/// Offset and length, in the device's memory, of the copies that were made since, to it or from it.
fn copied(bed: &Bed, is_in: bool) -> Vec<(usize, usize)> {
    let base = bed.core.device.region().parameter() as usize;
    let made = bed.launch_slot.copies_made().into_iter().filter(|copy| copy.is_in == is_in);
    made.map(|Copy { to, from, bytes, .. }| (if is_in { to } else { from } - base, bytes)).collect()
}

/// The lines of a channel that the host writes.
fn lines_out(bed: &Bed, channel: u32) -> (usize, usize) {
    (bed.core.device.region().channel_at(channel) + OUT_AT, 16 * OUT_ATOMS)
}

/// Those that the device writes, with its times or without.
fn lines_back(bed: &Bed, channel: u32, times: bool) -> (usize, usize) {
    let bytes = 16 * BACK_ATOMS - if times { 0 } else { size_of::<Times>() };
    (bed.core.device.region().channel_at(channel) + BACK_AT, bytes)
}

/// Slots of a channel's ring, from the `first` on.
fn slots(bed: &Bed, channel: u32, direction: Direction, first: usize, n: usize) -> (usize, usize) {
    let region = bed.core.device.region();
    let each = region.slot_bytes(direction);
    (region.slots_at(channel, direction) + first * each, n * each)
}

#[test]
fn every_number_of_messages_goes_there_and_back_on_every_channel() {
    for (mode, memory) in WAYS {
        for start in [0, u64::from(u32::MAX) - 20] {
            let drive = fixed(mode, memory);
            let mut bed = Bed::with(drive, Plan { channels: 2, start, ..plan(drive) });
            bed.activate();
            let mut workers = [bed.worker(0), bed.worker(1)];
            let mut sent = [0; 2];
            for n in (0..3).flat_map(|_| 1..=u64::from(SLOTS)) {
                let channel = usize::from(n % 3 == 0);
                let first = sent[channel];
                sent[channel] += n;
                let half = bed.kernel.channel(channel as u32).unwrap();
                for seed in first..sent[channel] {
                    half.try_send(message(seed)).unwrap();
                }
                let mut got = first;
                for _ in 0..200 {
                    for worker in &mut workers {
                        worker.work(1 + n as usize / 2);
                    }
                    if memory == Memory::StagedSync {
                        bed.leave();
                    }
                    let half = bed.kernel.channel(channel as u32).unwrap();
                    let end = loop {
                        let answer = match half.try_recv() {
                            Ok(answer) => answer,
                            Err(end) => break end,
                        };
                        assert_eq!(answer, message(got).answer(), "{mode} in {memory}: {got}");
                        got += 1;
                    };
                    assert_eq!(end, TryRecvError::Empty);
                    if got == sent[channel] {
                        break;
                    }
                }
                assert_eq!(got, sent[channel], "{mode} in {memory}");
            }
        }
    }
}

/// Before its first launch a kernel's whole memory is carried out but for the slots.
#[test]
fn a_new_kernel_is_carried_out_whole() {
    for (mode, memory) in WAYS {
        let bed = Bed::new(fixed(mode, memory), 3);
        let (device, region) = (bed.device(), bed.core.device.region());
        assert_eq!(device.control().host.channels.load(Relaxed), 3);
        assert_eq!(copied(&bed, true)[0], (0, region.slots_at(0, Direction::Requests)));
        for channel in 0..3 {
            let (there, here) = (device.channel(channel), region.channel(channel));
            assert_eq!(there.request.slots.load(Relaxed), here.request.slots.load(Relaxed));
            assert_eq!(there.response.capacity.load(Relaxed), SLOTS);
        }
    }
}

/// Beside a launch only what is new goes out: a message that travels inline in the lines of its channel
/// alone, others in their slots too, in one piece or in two around the ring's end.
#[test]
fn what_is_new_goes_out() {
    let (mut bed, mut worker) = running(2);
    (0..5).for_each(|_| bed.step());
    assert_eq!(copied(&bed, true), [], "nothing is new");
    bed.send(1, 2);
    assert_eq!(copied(&bed, true), [lines_out(&bed, 0)]);
    assert_eq!(worker.work(1), 1);
    bed.step();
    bed.receive(1, 2);
    drop(bed.launch_slot.copies_made());
    bed.send(2, 5);
    assert_eq!(copied(&bed, true), [slots(&bed, 0, Direction::Requests, 2, 3), lines_out(&bed, 0)]);
    assert_eq!(worker.work(3), 3);
    (0..3).for_each(|_| bed.step());
    bed.receive(2, 5);
    drop(bed.launch_slot.copies_made());
    bed.send(5, 10);
    let pieces = [
        slots(&bed, 0, Direction::Requests, 5, 3),
        slots(&bed, 0, Direction::Requests, 0, 2),
        lines_out(&bed, 0),
    ];
    assert_eq!(copied(&bed, true), pieces);
    bed.kernel.channel(1).unwrap().try_send(message(0)).unwrap();
    assert_eq!(copied(&bed, true), [lines_out(&bed, 1)]);
}

/// A message alone, but in a slot, since the one before it is not known to be received.
#[test]
fn a_single_message_in_a_slot_is_carried() {
    let (mut bed, mut worker) = running(1);
    bed.send(1, 2); // inline, and unread on the device
    drop(bed.launch_slot.copies_made());
    bed.send(2, 3);
    assert_eq!(copied(&bed, true), [slots(&bed, 0, Direction::Requests, 2, 1), lines_out(&bed, 0)]);
    assert_eq!(worker.work(2), 2);
    bed.step();
    bed.receive(1, 3);
}

/// Credit goes out with the next message, or by itself once it is half of the ring.
#[test]
fn credit_goes_out_when_half_of_the_ring_was_received() {
    let (mut bed, mut worker) = running(1);
    bed.send(1, 7);
    assert_eq!(worker.work(6), 6);
    (0..3).for_each(|_| bed.step());
    drop(bed.launch_slot.copies_made());
    bed.receive(1, 4);
    bed.step();
    assert_eq!(copied(&bed, true), [], "3 of 8");
    bed.receive(4, 5);
    bed.step();
    assert_eq!(copied(&bed, true), [lines_out(&bed, 0)], "4 of 8");
    let credit = bed.device().channel(0).response_credit.consumed.load(Relaxed);
    assert_eq!(credit, 5);
    bed.receive(5, 7);
    bed.step();
    assert_eq!(copied(&bed, true), []);
}

/// A command goes out once.
#[test]
fn a_command_goes_out_once() {
    let (bed, _) = running(2);
    let order = bed
        .core
        .device
        .publish_command(ring_shared::layout::State::Inactive)
        .expect("it was not told to terminate");
    bed.step();
    let at = size_of_command();
    assert_eq!(copied(&bed, true), [at]);
    assert_eq!(bed.device().command(), order);
    bed.step();
    assert_eq!(copied(&bed, true), []);
}

/// Where the command lies, and the atom that holds it.
fn size_of_command() -> (usize, usize) {
    use ring_shared::layout::{ControlBlock, HostLine};
    let at = std::mem::offset_of!(ControlBlock, host) + std::mem::offset_of!(HostLine, command);
    (at, 16)
}

/// The device's lines come back while it owes answers, and not when nothing is asked of it. Slots come
/// back where the lines tell of any.
#[test]
fn what_is_owed_comes_back() {
    let (mut bed, mut worker) = running(2);
    (0..5).for_each(|_| bed.step());
    assert_eq!(copied(&bed, false), [], "nothing is owed");
    bed.send(1, 2);
    drop(bed.launch_slot.copies_made());
    bed.step();
    let lines = [lines_back(&bed, 0, false), lines_back(&bed, 1, false)];
    let back = copied(&bed, false);
    assert!(!back.is_empty() && back.chunks(2).all(|two| two == lines), "{back:?}");
    assert_eq!(worker.work(1), 1);
    bed.step();
    assert!(copied(&bed, false).chunks(2).all(|two| two == lines), "an inline answer has no slot");
    bed.receive(1, 2);
    bed.send(2, 4);
    assert_eq!(worker.work(2), 2);
    drop(bed.launch_slot.copies_made());
    bed.step();
    let back = copied(&bed, false);
    assert_eq!(back[..3], [lines[0], lines[1], slots(&bed, 0, Direction::Responses, 2, 2)]);
    bed.step();
    bed.receive(2, 4);
}

/// A channel's acknowledgement is fetched although no message is owed.
#[test]
fn an_acknowledgement_comes_back() {
    let (bed, _) = running(1);
    let epoch = bed.ordered().epoch + 1;
    bed.core.device.publish_command(ring_shared::layout::State::Inactive);
    (0..3).for_each(|_| bed.step());
    assert!(!bed.core.device.has_acknowledged());
    bed.device().obey();
    bed.step();
    // It is shown with the lines of the transfer behind the one that read it.
    bed.step();
    assert!(bed.core.device.has_acknowledged());
    drop(bed.launch_slot.copies_made());
    (0..5).for_each(|_| bed.step());
    assert_eq!(copied(&bed, false), []);
    // And the last words of one that was ordered to leave, which obeys no more.
    bed.core.device.publish_command(ring_shared::layout::State::Terminated);
    bed.device().says(0, epoch + 1, ring_shared::layout::State::Terminated);
    (0..3).for_each(|_| bed.step());
    drop(bed.launch_slot.copies_made());
    bed.step();
    assert_eq!(copied(&bed, false)[0], lines_back(&bed, 0, false));
}

/// A channel's last words come with its last answers, and are shown although nothing more is owed.
#[test]
fn last_words_are_shown_though_nothing_is_owed() {
    let (mut bed, mut worker) = running(1);
    bed.send(1, 3);
    assert_eq!(worker.work(2), 2);
    bed.device().panics(0);
    (0..5).for_each(|_| bed.step());
    let fault = bed.core.device.check_channels().unwrap_err();
    assert!(matches!(fault, DeviceFault::HandlerPanicked { channel: 0, .. }), "{fault:?}");
}

/// As many answers as there are slots come back at once.
#[test]
fn a_ring_full_of_answers_comes_back() {
    let (mut bed, mut worker) = running(1);
    let end = 1 + u64::from(SLOTS);
    bed.send(1, end);
    assert_eq!(worker.work(20), SLOTS as usize);
    (0..3).for_each(|_| bed.step());
    bed.receive(1, end);
}

/// What is under way is waited for: nothing is begun before it is over, and nothing shown.
#[test]
fn one_trip_at_a_time() {
    let (mut bed, mut worker) = running(1);
    bed.launch_slot.late();
    bed.send(1, 3);
    let begun = bed.launch_slot.copies_made().len();
    assert!(begun > 0);
    (0..5).for_each(|_| bed.step());
    assert_eq!(bed.launch_slot.copies_made().len(), 0, "while one is under way");
    assert_eq!(worker.work(2), 0, "it is not there yet");
    for _ in 0..3 {
        bed.launch_slot.land();
        bed.step();
    }
    assert_eq!(worker.work(2), 2);
    for _ in 0..6 {
        assert_eq!(bed.kernel.try_recv(), Err(TryRecvError::Empty));
        if bed.launch_slot.land() == 0 {
            bed.step();
        }
        if bed.core.device.region().channel(0).response_bell.atoms[CONTROL].load()
            == bed.device().channel(0).response_bell.atoms[CONTROL].load()
        {
            break;
        }
    }
    bed.receive(1, 3);
}

/// A line that was read while the device wrote it: the control atom is there, an atom of the message is
/// not. It is shown once the next transfer has brought the rest.
#[test]
fn a_line_that_came_torn_is_not_shown() {
    let (mut bed, mut worker) = running(1);
    bed.send(1, 2);
    assert_eq!(worker.work(1), 1);
    let device = bed.device();
    let torn = &device.channel(0).response_bell.atoms[2];
    let whole = torn.load();
    torn.store([whole[0], 0]);
    for _ in 0..3 {
        assert_eq!(bed.kernel.try_recv(), Err(TryRecvError::Empty));
    }
    torn.store(whole);
    bed.step();
    bed.receive(1, 2);
}

/// A line that tells of less than was shown before is old, and shows nothing; one that tells of more
/// than the ring holds is an error of its channel.
#[test]
fn a_line_that_cannot_be_is_an_error_and_an_old_one_is_nothing() {
    let (mut bed, mut worker) = running(1);
    bed.send(1, 4);
    assert_eq!(worker.work(3), 3);
    (0..3).for_each(|_| bed.step());
    bed.receive(1, 4);
    bed.send(4, 5);
    let device = bed.device();
    let old = Control { credit: 0, early: 0, first: 1, tail: 2 };
    let bell = &device.channel(0).response_bell.atoms[CONTROL];
    let shown = bed.core.device.region().channel(0).response_bell.atoms[CONTROL].load();
    bell.publish(old.to_words());
    (0..3).for_each(|_| bed.step());
    assert_eq!(bed.core.device.region().channel(0).response_bell.atoms[CONTROL].load(), shown);
    assert_eq!(bed.core.device.fault(), None);
    let full = Control { credit: 0, early: 0, first: 4, tail: 4 + SLOTS };
    bell.publish(full.to_words());
    bed.step();
    assert_eq!(bed.core.device.fault(), None, "a full ring can be");
    let (mut bed, _) = running(1);
    bed.send(1, 2);
    let over = Control { credit: 0, early: 0, first: 1, tail: 2 + SLOTS };
    bed.device().channel(0).response_bell.atoms[CONTROL].publish(over.to_words());
    bed.step();
    let Some(DeviceFault::Corrupt { kernel: "echo", channel: 0, corrupt }) =
        bed.core.device.fault()
    else {
        panic!("{:?}", bed.core.device.fault())
    };
    assert_eq!((corrupt.low, corrupt.high), (1, 1 + u64::from(SLOTS)));
}

/// The launch has left, and its last answers cannot be fetched at first: they are fetched again, and the
/// kernel does not rest before.
#[test]
fn answers_whose_last_trip_failed_are_fetched_again() {
    for (mode, memory) in WAYS {
        let mut bed = Bed::active(fixed(mode, memory), 1);
        let mut worker = bed.worker(0);
        bed.send(0, 3);
        (0..3).for_each(|_| bed.step());
        bed.leave();
        assert_eq!(worker.work(3), 3);
        bed.launch_slot.refuse_copies(1, 3); // the lines come, their slots do not
        bed.step();
        let rests = bed.kernel.is_resting();
        assert!(!rests, "{mode} in {memory}: before the answers are here");
        for _ in 0..4 {
            bed.step();
        }
        assert_eq!(bed.core.device.fault(), None, "{mode} in {memory}");
        bed.receive(0, 3);
        bed.kernel.rest(LONG).unwrap();
    }
}

/// Copies that fail now and then are made again; after three failures without a transfer between them the
/// kernel is lost.
#[test]
fn copies_that_fail_are_made_again_a_few_times() {
    for memory in [Memory::StagedAsync, Memory::StagedSync] {
        let mut bed = Bed::active(fixed(Mode::EventDriven, memory), 1);
        let mut worker = bed.worker(0);
        for round in 0..5 {
            bed.launch_slot.refuse_copies(0, 6); // three tries each
            bed.send(round, round + 1);
            (0..6).for_each(|_| bed.step());
            assert_eq!(worker.work(1), 1, "{memory}, {round}");
            bed.rest();
            bed.receive(round, round + 1);
        }
        bed.launch_slot.refuse_copies(0, 9);
        bed.send(5, 6);
        (0..6).for_each(|_| bed.step());
        let fault = bed.core.device.fault();
        assert!(matches!(fault, Some(DeviceFault::Driver { kernel: "echo", .. })), "{fault:?}");
    }
}

/// What was there and back is a success, though nothing was launched meanwhile.
#[test]
fn copies_that_fail_now_and_then_beside_one_launch_are_made_again() {
    let (mut bed, mut worker) = running(1);
    for round in 1..7 {
        bed.launch_slot.refuse_copies(0, 3); // three tries of one copy
        bed.send(round, round + 1);
        (0..3).for_each(|_| bed.step());
        assert_eq!(worker.work(1), 1, "{round}");
        (0..6).for_each(|_| bed.step());
        bed.receive(round, round + 1);
    }
    assert_eq!(bed.core.device.fault(), None);
}

/// Where copies beside a launch fail and nobody asked for them, they are made between launches, which
/// leave when they find nothing; and a kernel that stayed is launched anew.
#[test]
fn copies_that_fail_beside_a_launch_are_made_between_launches() {
    for mode in [Mode::Persistent, Mode::EventDriven, Mode::Graph] {
        let mut bed = Bed::active(drive(mode, Memory::StagedAsync), 1);
        let mut worker = bed.worker(0);
        bed.launch_slot.refuse_copies(0, 3);
        bed.send(0, 2);
        (0..4).for_each(|_| bed.step());
        let now = match mode {
            Mode::Persistent => Mode::EventDriven,
            other => other,
        };
        assert_eq!(bed.kernel.runs_as(), (now, Memory::StagedSync));
        let fallbacks: Vec<_> = bed.kernel.fallbacks().collect();
        assert_eq!(fallbacks.len(), 1);
        assert_eq!(fallbacks[0].from, (mode, Memory::StagedAsync));
        assert_eq!(fallbacks[0].to, (now, Memory::StagedSync));
        let fallback = drive(mode, Memory::StagedAsync).fallback;
        let config = |bed: &Bed| {
            let device = bed.device();
            let config = &device.control().config;
            [&config.time, &config.iterations, &config.idle].map(|word| word.load(Relaxed))
        };
        assert_eq!(worker.work(2), 2);
        bed.rest();
        bed.receive(0, 2);
        bed.send(2, 3);
        (0..4).for_each(|_| bed.step());
        let bytes = size_of::<ring_shared::layout::ControlBlock>() - config_at();
        let budgets = copied(&bed, true).into_iter().filter(|(at, _)| *at == config_at());
        assert_eq!(budgets.collect::<Vec<_>>(), [(config_at(), bytes)]);
        assert_eq!(config(&bed), [fallback.time, fallback.iterations, 0], "{mode}");
        assert_eq!(worker.work(2), 1);
        bed.rest();
        bed.receive(2, 3);
        // The budgets went out once.
        drop(bed.launch_slot.copies_made());
        bed.send(3, 4);
        (0..4).for_each(|_| bed.step());
        let budgets = copied(&bed, true).into_iter().filter(|(at, _)| *at == config_at());
        assert_eq!(budgets.count(), 0);
        assert_ne!(fallback.idle, 0);
    }
}

/// Where the configuration lies.
fn config_at() -> usize {
    std::mem::offset_of!(ring_shared::layout::ControlBlock, config)
}

/// Memory that somebody asked for is not given up, nor a mode.
#[test]
fn what_was_asked_for_is_kept() {
    for (mode_is_free, memory_is_free, mode) in [
        (true, false, Mode::EventDriven),
        (false, true, Mode::Persistent),
        (true, false, Mode::Persistent),
    ] {
        let drive =
            DriveConfig { mode_is_free, memory_is_free, ..drive(mode, Memory::StagedAsync) };
        let mut bed = Bed::active(drive, 1);
        bed.launch_slot.refuse_copies(0, 3);
        bed.send(0, 1);
        (0..4).for_each(|_| bed.step());
        assert_eq!(bed.kernel.runs_as(), (mode, Memory::StagedAsync));
        assert_eq!(bed.kernel.fallbacks().count(), 0);
        let mut worker = bed.worker(0);
        assert_eq!(worker.work(1), 1, "it was tried again");
    }
    // An event-driven kernel in memory that is free, though its mode is not.
    let drive =
        DriveConfig { mode_is_free: false, ..drive(Mode::EventDriven, Memory::StagedAsync) };
    let mut bed = Bed::active(drive, 1);
    bed.launch_slot.refuse_copies(0, 3);
    bed.send(0, 1);
    (0..4).for_each(|_| bed.step());
    assert_eq!(bed.kernel.runs_as(), (Mode::EventDriven, Memory::StagedSync));
}

/// A device that stops while something is carried, or while it is asked how a failure came.
#[test]
fn a_device_that_stops_is_told() {
    for late in [false, true] {
        let (mut bed, _) = running(1);
        if late {
            bed.launch_slot.late();
        }
        bed.send(1, 2);
        bed.launch_slot.fault();
        bed.launch_slot.refuse_copies(0, 9);
        (0..3).for_each(|_| bed.step());
        let fault = bed.core.device.fault();
        assert!(matches!(fault, Some(DeviceFault::Device { .. })), "{fault:?}");
    }
}

/// The times of channels come back when they are asked for, by a transfer that began afterwards; they are not
/// waited for where the kernel rests, or where host and device use one memory.
#[test]
fn times_come_back_on_request() {
    let (mut bed, mut worker) = running(1);
    let core = bed.core.clone();
    for seed in 1..9 {
        bed.send(seed, seed + 1);
        assert_eq!(worker.work(1), 1);
        (0..3).for_each(|_| bed.step());
        bed.receive(seed, seed + 1);
    }
    bed.device().channel(0).times.handler[3].store(7, Relaxed);
    bed.send(9, 10);
    assert_eq!(worker.work(1), 1);
    bed.step();
    assert_eq!(bed.core.device.region().channel(0).times.handler[3].load(Relaxed), 0);
    drop(bed.launch_slot.copies_made());
    let mut until = None;
    let mut steps = 0;
    loop {
        until = core.drive.refresh(&core.device, until).unwrap();
        if until.is_none() {
            break;
        }
        steps += 1;
        assert!(steps < 10, "the transfers made before do not count");
    }
    assert!(steps > 1, "one may have been under way");
    assert_eq!(bed.core.device.region().channel(0).times.handler[3].load(Relaxed), 7);
    assert!(copied(&bed, false).contains(&lines_back(&bed, 0, true)));
    // No transfer is late because of it: the next one is without times again.
    bed.receive(9, 10);
    bed.send(10, 11);
    bed.step();
    assert!(!copied(&bed, false).contains(&lines_back(&bed, 0, true)));
    bed.device().channel(0).times.handler[3].store(9, Relaxed);
    bed.rest();
    assert_eq!(
        bed.core.device.region().channel(0).times.handler[3].load(Relaxed),
        9,
        "the last transfer"
    );
    assert_eq!(core.drive.refresh(&core.device, None), Ok(None));
    let mapped = Bed::active(drive(Mode::EventDriven, Memory::Mapped), 1);
    assert_eq!(mapped.core.drive.refresh(&mapped.core.device, None), Ok(None));
    assert_eq!(drive(Mode::Persistent, Memory::Mapped).budgets.idle, UNLIMITED);
}
