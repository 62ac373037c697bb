//! Sending and receiving, between two steps of the device.

use super::{Bed, CLOCK, LONG, NONE, SLOTS, drive, message, plan};
use crate::error::{
    DeviceFault, PayloadError, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError,
    WaitedFor,
};
use crate::kernel::channel::Receiver;
use crate::kernels::{Echo, EchoMessage};
use crate::memory::plan::Plan;
use crate::mode::{Memory, Mode, PayloadMemory};
use ring_shared::layout::State;
use ring_shared::ring::{CONTROL, Control};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Instant;

/// A resident kernel.
fn resident() -> Bed {
    Bed::active(drive(Mode::Persistent, Memory::Mapped), 1)
}

/// What a call found: so many answers, or the end.
type Received = Result<usize, TryRecvError>;

/// A way to receive.
type Receive = fn(&mut Receiver<Echo>) -> Received;

/// Every way to receive what is there.
const WAYS: [(&str, Receive); 4] = [
    ("try_recv", |receiver| match receiver.try_recv() {
        Err(TryRecvError::Empty) => Ok(0),
        found => found.map(|_| 1),
    }),
    ("try_recv_batch", |receiver| receiver.try_recv_batch(&mut [message(0); 3])),
    ("try_recv_each", |receiver| receiver.try_recv_each(3, |_| ())),
    ("try_iter", |receiver| match receiver.try_iter().take(3).count() {
        0 => receiver.try_recv_batch(&mut [message(0); 3]), // it tells why
        some => Ok(some),
    }),
];

fn is_lost(end: &TryRecvError) -> bool {
    matches!(end, TryRecvError::Fault(DeviceFault::Device { .. }))
}

/// An answer that comes after a call has looked for it, and before the device stops, which the same
/// call finds out: it gives the answer, and the next call tells the end.
#[test]
fn what_was_answered_before_the_end_comes_before_it() {
    for (name, receive) in WAYS {
        let mut bed = Bed::active(drive(Mode::EventDriven, Memory::Mapped), 1);
        let (mut worker, launch_slot) = (bed.worker(0), bed.launch_slot.clone());
        bed.launch_slot.on_launch(move || {
            assert_eq!(worker.work(1), 1);
            launch_slot.fault();
        });
        bed.launch_slot.refuse_launches(1); // that of the send: the look of the receiver launches
        bed.kernel.try_send(message(1)).unwrap();
        let receiver = bed.kernel.channel(0).unwrap().split().1;
        assert_eq!(receive(receiver), Ok(1), "{name}");
        let end = receive(receiver).unwrap_err();
        assert!(is_lost(&end), "{name}: {end}");
        assert_eq!(receive(receiver), Err(end), "{name}");
    }
}

/// Who only tries learns of a fault too, by asking the driver now and then.
#[test]
fn who_only_tries_learns_of_a_fault() {
    for (name, receive) in WAYS {
        let mut bed = resident();
        bed.launch_slot.fault();
        let receiver = bed.kernel.channel(0).unwrap().split().1;
        let begun = Instant::now();
        let end = loop {
            match receive(receiver) {
                Ok(n) => assert_eq!(n, 0, "{name}"),
                Err(end) => break end,
            }
            assert!(begun.elapsed() < LONG, "{name}: no fault is told");
        };
        assert!(is_lost(&end), "{name}: {end}");
    }
}

/// And so does who only sends into a full ring.
#[test]
fn who_only_sends_learns_of_a_fault() {
    type IsTold = fn(&mut Bed) -> bool;
    let ways: [(&str, IsTold); 3] = [
        ("try_send", |bed| {
            matches!(bed.kernel.try_send(message(9)), Err(TrySendError::Fault { .. }))
        }),
        ("try_send_batch", |bed| {
            matches!(bed.kernel.try_send_batch(&[message(9); 2]), Err(TrySendError::Fault { .. }))
        }),
        ("try_send_each", |bed| {
            matches!(bed.kernel.try_send_each(2, |_| message(9)), Err(TrySendError::Fault { .. }))
        }),
    ];
    for (name, is_told) in ways {
        let mut bed = resident();
        bed.send(0, SLOTS.into());
        bed.launch_slot.fault();
        let begun = Instant::now();
        while !is_told(&mut bed) {
            assert!(begun.elapsed() < LONG, "{name}: no fault is told");
        }
    }
}

#[test]
fn nothing_is_sent_to_a_kernel_that_is_not_active() {
    let mut bed = resident();
    bed.core.device.set_state(State::Inactive);
    let (kernel, state) = ("echo", State::Inactive);
    let refusal = TrySendError::NotActive { message: message(7), kernel, state };
    assert_eq!(bed.kernel.try_send(message(7)), Err(refusal));
    let refusal = SendTimeoutError::NotActive { message: message(7), kernel, state };
    assert_eq!(bed.kernel.send(message(7), NONE), Err(refusal));
    let refusal = Err(TrySendError::NotActive { message: (), kernel, state });
    assert_eq!(bed.kernel.try_send_batch(&[message(0); 2]), refusal);
    assert_eq!(bed.kernel.try_send_each(2, |_| message(0)), refusal);
    assert_eq!(bed.worker(0).work(4), 0);
    bed.core.device.set_state(State::Active);
    bed.kernel.send(message(0), NONE).unwrap();
    assert_eq!(bed.worker(0).work(4), 1);
}

#[test]
fn a_full_ring_gives_the_message_back_until_there_is_room() {
    let mut bed = resident();
    let mut worker = bed.worker(0);
    let slots = u64::from(SLOTS);
    assert_eq!(bed.kernel.try_send_batch(&[]), Ok(0));
    bed.send(0, slots - 1);
    assert_eq!(bed.kernel.try_send_each(5, |k| message(slots - 1 + k as u64)), Ok(1));
    assert_eq!(bed.kernel.channel(0).unwrap().unanswered(), slots);
    assert_eq!(bed.kernel.try_send(message(77)), Err(TrySendError::Full(message(77))));
    let late = bed.kernel.send(message(77), NONE).unwrap_err();
    let SendTimeoutError::Timeout { kernel: "echo", channel: 0, waited_for, .. } = &late else {
        panic!("{late}")
    };
    assert_eq!(*waited_for, WaitedFor::Room);
    assert_eq!(late.into_inner(), message(77));
    assert_eq!(bed.kernel.try_send_batch(&[message(77); 2]), Ok(0));
    assert_eq!(bed.kernel.try_send_each(2, |_| message(77)), Ok(0));
    assert_eq!(worker.work(3), 3);
    bed.kernel.send(message(slots), LONG).unwrap();
    bed.send(slots + 1, slots + 3);
    bed.receive(0, 3);
    assert_eq!(bed.kernel.channel(0).unwrap().unanswered(), slots);
    let more = worker.work(20) as u64;
    bed.receive(3, 3 + more);
    assert_eq!(bed.kernel.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(more + worker.work(20) as u64, slots);
    bed.receive(3 + more, 3 + slots);
    assert_eq!(bed.kernel.channel(0).unwrap().unanswered(), 0);
}

/// What is in the rings, as the host knows it: what the device has taken is known when it says so, or
/// when its answer was received.
#[test]
fn the_halves_tell_what_is_in_their_rings() {
    let mut bed = resident();
    let mut worker = bed.worker(0);
    let slots = SLOTS as usize;
    let told = |bed: &mut Bed| {
        let (sender, receiver) = bed.kernel.channel(0).unwrap().split();
        assert_eq!((sender.capacity(), receiver.capacity()), (slots, slots));
        let (requests, responses) = (sender.len(), receiver.len());
        let expected = |len: usize| (len.min(1) == 0, len == slots);
        assert_eq!((sender.is_empty(), sender.is_full()), expected(requests));
        assert_eq!((receiver.is_empty(), receiver.is_full()), expected(responses));
        (requests, responses)
    };
    assert_eq!(told(&mut bed), (0, 0));
    bed.send(0, slots as u64);
    assert_eq!(told(&mut bed), (slots, 0));
    assert_eq!(worker.work(slots), slots);
    assert_eq!(told(&mut bed).1, slots);
    bed.receive(0, slots as u64 - 1);
    let (requests, responses) = told(&mut bed);
    assert!(requests <= 1 && responses == 1, "{requests}");
    bed.receive(slots as u64 - 1, slots as u64);
    assert_eq!(told(&mut bed), (0, 0));
    // Whatever the device says, no more is told than there can be.
    let control = Control { credit: 0, early: 0, first: 0, tail: u32::MAX / 2 };
    bed.device().channel(0).response_bell.atoms[CONTROL].publish(control.to_words());
    bed.device().channel(0).request_credit.consumed.store(u64::MAX, Release);
    assert_eq!(told(&mut bed), (0, slots));
}

/// A send that waits ends when a slot is free.
#[test]
fn a_send_that_waits_goes_on_when_there_is_room() {
    let mut bed = resident();
    let mut worker = bed.worker(0);
    bed.send(0, SLOTS.into());
    std::thread::scope(|threads| {
        let sender = bed.kernel.channel(0).unwrap().split().0;
        let sent = threads.spawn(move || sender.send(message(8), LONG).is_ok());
        assert_eq!(worker.work(1), 1);
        assert!(sent.join().unwrap());
    });
    bed.receive(0, 1);
    assert_eq!(bed.kernel.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(worker.work(20), SLOTS as usize);
    bed.receive(1, u64::from(SLOTS) + 1);
}

/// Each request tells the device how many answers were received.
#[test]
fn a_request_carries_the_credit_for_answers() {
    let mut bed = resident();
    let mut worker = bed.worker(0);
    let told = |bed: &Bed| {
        Control::from_words(bed.device().channel(0).request_bell.atoms[CONTROL].load()).credit
    };
    for round in 0..5u32 {
        let first = u64::from(3 * round);
        bed.send(first, first + 3);
        assert_eq!(told(&bed), 3 * round);
        assert_eq!(bed.core.device.received(0), first);
        assert_eq!(worker.work(3), 3);
        bed.receive(first, first + 2);
        assert_eq!(bed.kernel.channel(0).unwrap().try_iter().count(), 1);
        assert_eq!(bed.core.device.received(0), first + 3);
    }
}

/// Batches and iterators take what is there and fits, and no more.
#[test]
fn batches_take_what_is_there() {
    let mut bed = resident();
    let mut worker = bed.worker(0);
    bed.send(0, 7);
    assert_eq!(worker.work(7), 7);
    let mut two = [message(99); 2];
    assert_eq!(bed.kernel.try_recv_batch(&mut two), Ok(2));
    assert_eq!(two, [0, 1].map(|seed| message(seed).answer()));
    let mut shown = 2;
    let each = |answer: &EchoMessage| {
        assert_eq!(*answer, message(shown).answer());
        shown += 1;
    };
    assert_eq!(bed.kernel.try_recv_each(3, each), Ok(3));
    let receiver = bed.kernel.channel(0).unwrap().split().1;
    let mut some = heapless::Vec::<_, 4>::new();
    some.push(message(50)).unwrap();
    some.extend(receiver.try_iter());
    assert_eq!(some[..], [message(50), message(5).answer(), message(6).answer()]);
    assert_eq!(receiver.try_iter().next(), None);
    assert_eq!(receiver.try_recv_batch(&mut two), Ok(0));
    let late = receiver.recv(NONE).unwrap_err();
    assert!(matches!(late, RecvTimeoutError::Timeout { kernel: "echo", channel: 0, .. }), "{late}");
}

/// An iterator gives what came before the end, which the next call tells.
#[test]
fn an_iterator_gives_what_came_before_the_end() {
    let mut bed = resident();
    let mut worker = bed.worker(0);
    bed.send(0, 3);
    assert_eq!(worker.work(3), 3);
    bed.launch_slot.fault();
    assert!(bed.core.check().is_err());
    let receiver = bed.kernel.channel(0).unwrap().split().1;
    assert_eq!(receiver.try_iter().count(), 3);
    assert!(is_lost(&receiver.try_recv().unwrap_err()));
    assert!(receiver.is_empty());
    // Who asks for nothing is told nothing.
    assert_eq!(receiver.try_recv_each(0, |_| ()), Ok(0));
    assert_eq!(receiver.try_recv_batch(&mut []), Ok(0));
}

/// What the device says is checked against what was sent and received, and names the channel.
#[test]
fn impossible_indices_are_an_error_of_their_channel() {
    let credit = |bed: &Bed| {
        bed.device().channel(1).request_credit.consumed.store(1000, Release);
    };
    let ways: [fn(&mut Bed) -> TrySendError<()>; 3] = [
        |bed| {
            let sent = bed.kernel.channel(1).unwrap().try_send(message(0));
            sent.unwrap_err().without_message()
        },
        |bed| bed.kernel.channel(1).unwrap().try_send_batch(&[message(0); 2]).unwrap_err(),
        |bed| bed.kernel.channel(1).unwrap().try_send_each(2, |_| message(0)).unwrap_err(),
    ];
    for send in ways {
        let mut bed = Bed::active(drive(Mode::Persistent, Memory::Mapped), 2);
        for seed in 0..u64::from(SLOTS) {
            bed.kernel.channel(1).unwrap().try_send(message(seed)).unwrap();
        }
        credit(&bed);
        let TrySendError::Fault { fault, .. } = send(&mut bed) else { panic!("no fault") };
        let DeviceFault::Corrupt { kernel: "echo", channel: 1, corrupt } = fault else {
            panic!("{fault}")
        };
        assert_eq!((corrupt.found, corrupt.low, corrupt.high), (1000, 0, SLOTS.into()));
    }
    for (name, receive) in WAYS {
        let mut bed = Bed::active(drive(Mode::Persistent, Memory::Mapped), 2);
        let control = Control { credit: 0, early: 0, first: 0, tail: 500 };
        bed.device().channel(1).response_bell.atoms[CONTROL].publish(control.to_words());
        let receiver = bed.kernel.channel(1).unwrap().split().1;
        let end = receive(receiver).unwrap_err();
        let TryRecvError::Fault(DeviceFault::Corrupt { channel: 1, corrupt, .. }) = &end else {
            panic!("{name}: {end}")
        };
        assert_eq!(corrupt.found, 500, "{name}");
        assert_eq!(bed.core.device.state(), State::Faulted);
        // It is told again, and nothing that comes later is given out.
        let control = Control { credit: 0, early: 0, first: 0, tail: 2 };
        bed.device().channel(1).response_bell.atoms[CONTROL].publish(control.to_words());
        let receiver = bed.kernel.channel(1).unwrap().split().1;
        assert_eq!(receive(receiver), Err(end), "{name}");
    }
}

/// Both halves of a channel, borrowed or owned, are those of that channel.
#[test]
fn halves_are_of_their_channel() {
    let mut bed = Bed::active(drive(Mode::Persistent, Memory::Mapped), 2);
    let mut workers = [bed.worker(0), bed.worker(1)];
    let (mut sender, mut receiver) = bed.kernel.take_channel(1).unwrap().into_split();
    sender.try_send(message(5)).unwrap();
    assert_eq!(workers.each_mut().map(|worker| worker.work(3)), [0, 1]);
    assert_eq!(receiver.recv(LONG), Ok(message(5).answer()));
    let (sender, receiver) = bed.kernel.channel(0).unwrap().split();
    sender.try_send(message(6)).unwrap();
    assert_eq!(workers.each_mut().map(|worker| worker.work(3)), [1, 0]);
    assert_eq!(receiver.try_recv(), Ok(message(6).answer()));
}

/// Indices begin where the launch says, also near the end of 32 bits.
#[test]
fn channels_begin_anywhere() {
    let drive = drive(Mode::Persistent, Memory::Mapped);
    let mut bed = Bed::with(drive, Plan { start: u64::from(u32::MAX) - 5, ..plan(drive) });
    bed.activate();
    let mut worker = bed.worker(0);
    for round in 0..6 {
        bed.send(5 * round, 5 * round + 5);
        assert_eq!(worker.work(5), 5);
        bed.receive(5 * round, 5 * round + 5);
    }
    assert_eq!(bed.kernel.channel(0).unwrap().unanswered(), 0);
    assert_eq!(bed.core.device.nanoseconds_per_tick(), 1e6 / f64::from(CLOCK));
}

/// Where the payload lies in mapped memory; elsewhere each takes a copy, and the driver is asked whether the kernel
/// can still answer.
#[test]
fn a_payload_in_mapped_memory_asks_no_driver() {
    for memory in [PayloadMemory::Mapped, PayloadMemory::Device] {
        for mode in [Mode::Persistent, Mode::EventDriven] {
            let config = drive(mode, Memory::Mapped);
            let mut bed =
                Bed::with(config, Plan { channels: 2, payload_memory: memory, ..plan(config) });
            bed.activate();
            bed.launch_slot.copies_made();
            let looks = Arc::new(AtomicU64::new(0));
            bed.launch_slot.on_state({
                let looks = Arc::clone(&looks);
                move || {
                    looks.fetch_add(1, Relaxed);
                }
            });
            let (written, mut read) = ([1u32, 2, 3], [0u32; 3]);
            assert_eq!(bed.kernel.write_payload(8, &written, NONE), Ok(()));
            assert_eq!(bed.kernel.read_payload(8, &mut read, NONE), Ok(()));
            assert_eq!(read, written);
            let (copies, looks) = (bed.launch_slot.copies_made().len(), looks.load(Relaxed));
            match memory {
                PayloadMemory::Mapped => assert_eq!((copies, looks), (0, 0), "{mode}"),
                _ => assert!(copies == 2 && looks >= 2, "{mode}: {copies} copies, {looks} looks"),
            }
            // What a channel says of its end is found all the same.
            bed.device().panics(1);
            for done in [
                bed.kernel.write_payload(8, &written, NONE),
                bed.kernel.read_payload(8, &mut read, NONE),
            ] {
                let Err(PayloadError::Fault(fault)) = done else { panic!("{done:?}") };
                let is_it = matches!(fault, DeviceFault::HandlerPanicked { channel: 1, .. });
                assert!(is_it, "{fault}");
            }
        }
    }
}
