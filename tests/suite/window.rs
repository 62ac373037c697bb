//! The window of doorbell lines: how long it is, how many messages are inline in it, and that none is lost,
//! doubled or misplaced while messages go inline, through slots, and from one to the other.

use crate::hostile::idle::idle_by;
use crate::sequences::seed::run;
use proptest::prelude::*;
use ring_host::error::ArenaKind;
use ring_host::kernels::{Echo, EchoMessage, VectorAdd, VectorAddRequest, VectorAddResponse};
use ring_host::{
    KernelHandle, LaunchConfig, LaunchError, Memory, Mode, RecvTimeoutError, Runtime, TryRecvError,
    TrySendError,
};
use ring_shared::ring::{CONTROL, Control, stamp, stamp_of};
use ring_tests::{LONG, WAYS, active, cpu, cpu_with, on_each_device};

const RESIDENT: (Mode, Memory) = (Mode::Persistent, Memory::Mapped);

fn way((mode, memory): (Mode, Memory)) -> LaunchConfig {
    LaunchConfig::default().mode(mode).memory(memory)
}

fn message(i: u64) -> EchoMessage {
    EchoMessage::from_seed(i)
}

#[test]
fn it_is_as_long_as_was_asked_for_where_a_kernel_stays_in_mapped_memory() {
    on_each_device(|host| {
        for both in WAYS {
            let window = |launch| host.launch::<Echo>(launch).unwrap().window();
            let expected = |lines| if both == RESIDENT { lines } else { 1 };
            assert_eq!(window(way(both)), expected(128), "{both:?}");
            for lines in [1, 2, 4, 8, 16, 32, 64, 128] {
                assert_eq!(window(way(both).window(lines)), expected(lines), "{both:?}");
                assert_eq!(window(way(both).capacity(lines)), expected(lines), "{both:?}");
                let all = way(both).capacity(lines).window(lines);
                assert_eq!(window(all), expected(lines), "{both:?}");
            }
        }
    });
}

#[test]
fn several_lines_take_128_bytes_each_way_in_each_channel() {
    on_each_device(|host| {
        let bytes = |lines| {
            let launch = way(RESIDENT).capacity(64).channels(3).window(lines);
            host.launch::<Echo>(launch).unwrap().pinned_bytes()
        };
        let one = bytes(1);
        for lines in [2, 16, 64] {
            assert_eq!(bytes(lines) - one, 3 * 2 * 128 * lines as usize);
        }
    });
}

#[test]
fn messages_of_three_lines_take_three_times_as_much() {
    on_each_device(|host| {
        let bytes = |lines| {
            let launch = way(RESIDENT).capacity(64).channels(3).window(lines);
            host.launch::<VectorAdd>(launch).unwrap().pinned_bytes()
        };
        let one = bytes(1); // in the channels' blocks: a line each way
        for lines in [2, 64] {
            assert_eq!(bytes(lines) - one, 3 * 2 * 3 * 128 * lines as usize);
        }
    });
}

fn vectors(i: u32) -> ([f32; 25], [f32; 25]) {
    let of = |factor: u32| std::array::from_fn(|k| (i % 4096 * factor + k as u32) as f32);
    (of(3), of(5))
}

fn is_sum(i: u32, answer: &VectorAddResponse) {
    let (a, b) = vectors(i);
    assert_eq!((answer.len, answer.c), (25, std::array::from_fn(|k| a[k] + b[k])), "answer {i}");
}

/// Of three lines each way, with more under way than fit the window or fewer, over deactivations.
#[test]
fn messages_of_several_lines_are_answered_once_and_in_order() {
    const TOTAL: u32 = 400;
    let cases = [(1, 1), (1, 5), (2, 2), (4, 3), (16, 40), (64, 1), (64, 40), (64, 64), (64, 100)];
    on_each_device(|host| {
        for (lines, depth) in cases {
            for start in [0, (1 << 32) - 70] {
                let launch = way(RESIDENT).capacity(128).window(lines).start_index(start);
                let mut kernel = host.launch::<VectorAdd>(launch).unwrap();
                kernel.activate(LONG).unwrap();
                let (mut sent, mut received) = (0, 0);
                while received < TOTAL {
                    while sent < TOTAL && sent - received < depth {
                        let (a, b) = vectors(sent);
                        kernel.send(VectorAddRequest::inline(&a, &b).unwrap(), LONG).unwrap();
                        sent += 1;
                    }
                    if received % 97 == 96 {
                        kernel.deactivate(LONG).unwrap();
                        kernel.activate(LONG).unwrap();
                    }
                    is_sum(received, &kernel.recv(LONG).unwrap());
                    received += 1;
                }
                assert_eq!(kernel.terminate(LONG).unwrap().unhandled, 0, "{lines}, {depth}");
            }
        }
    });
}

/// Where nobody chose it; what was chosen is had, or the launch is refused.
#[test]
fn it_is_shorter_where_memory_is_short() {
    let launch = |lines| way(RESIDENT).capacity(64).window(lines);
    let bytes = |lines| cpu().launch::<Echo>(launch(lines)).unwrap().pinned_bytes();
    for lines in [1, 2, 16] {
        let host = cpu_with(bytes(lines), 4096);
        let mut kernel = active(&host, way(RESIDENT).capacity(64));
        assert_eq!(kernel.window(), lines);
        in_flight(&mut kernel, &mut Count::default(), (100, 64));
        kernel.terminate(LONG).unwrap();
        let error = host.launch::<Echo>(launch(2 * lines)).map(drop).unwrap_err();
        let LaunchError::Arena { which: ArenaKind::Pinned, needed, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(needed, bytes(2 * lines));
    }
}

/// A device that takes nothing: the first messages lie inline, each in its line, the others in slots.
#[test]
fn so_many_messages_are_inline_at_once() {
    for lines in [1, 2, 4, 64] {
        for start in [0, (1 << 32) - 3] {
            let launch = way(RESIDENT).capacity(128).window(lines).start_index(start);
            let (memory_probe, mut kernel) = idle_by(launch);
            for sent in 0..128 {
                kernel.try_send(message(sent)).unwrap();
                memory_probe.look(|kernels| {
                    let request_lines = kernels[0][0].request_lines;
                    let inline = (start..=start + sent).filter(|i| {
                        let line = &request_lines[*i as usize % lines as usize];
                        stamp_of(line.atoms[0].load()) == stamp(*i)
                    });
                    let expected = start..start + u64::from(lines).min(sent + 1);
                    assert!(inline.eq(expected), "{sent} sent to {lines} lines");
                    if sent >= lines.into() {
                        let control = request_lines[0].atoms[CONTROL].load();
                        let Control { first, tail, .. } = Control::from_words(control);
                        let slots = [start + u64::from(lines), start + sent + 1];
                        assert_eq!([first, tail], slots.map(|index| index as u32));
                    }
                });
            }
            assert_eq!(kernel.try_send(message(0)), Err(TrySendError::Full(message(0))));
            assert_eq!(kernel.summary().unhandled, 128);
            memory_probe.end();
        }
    }
}

/// A device may answer out of order inside the window. What stands behind an answer that is missing cannot be received,
/// so it is not in the ring for who asks how many there are.
#[test]
fn answers_behind_one_that_is_missing_are_not_counted() {
    let (memory_probe, mut kernel) = idle_by(way(RESIDENT).capacity(64).window(4));
    assert_eq!(kernel.try_send_batch(&[0, 1, 2].map(message)), Ok(3));
    let answer = |index: u32| {
        memory_probe.look(|kernels| {
            let line = &kernels[0][0].response_lines[index as usize];
            let answer = message(index.into()).answer();
            for (atom, bytes) in line.atoms.iter().zip(bytemuck::bytes_of(&answer).chunks(12)) {
                let mut words = [0, 0, 0, index + 1];
                bytemuck::bytes_of_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
                atom.publish(bytemuck::cast(words));
            }
            let control = Control::behind_inline(u64::from(index) + 1, u64::from(index) + 1);
            line.atoms[CONTROL].publish(control.to_words());
        });
    };
    let there = |kernel: &mut KernelHandle<Echo>| {
        let receiver = kernel.channel(0).unwrap().split().1;
        (receiver.len(), receiver.is_empty())
    };
    answer(1);
    assert_eq!(there(&mut kernel), (0, true));
    assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
    answer(0);
    assert_eq!(there(&mut kernel), (2, false));
    assert_eq!(kernel.try_recv(), Ok(message(0).answer()));
    assert_eq!(kernel.try_recv(), Ok(message(1).answer()));
    assert_eq!(there(&mut kernel), (0, true));
    memory_probe.end();
}

/// Messages sent and received on a channel.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sent: u64,
    received: u64,
}

impl Count {
    fn is_answered_by(&mut self, answer: EchoMessage) {
        assert!(self.received < self.sent, "an answer that nobody asked for");
        assert_eq!(answer, message(self.received).answer(), "answer {}", self.received);
        self.received += 1;
    }
}

/// Sends `n` messages one by one, and receives one by one so that no more than `depth` are under way.
fn in_flight(kernel: &mut KernelHandle<Echo>, count: &mut Count, (n, depth): (u64, u64)) {
    for _ in 0..n {
        while count.sent - count.received >= depth {
            count.is_answered_by(kernel.recv(LONG).unwrap());
        }
        kernel.send(message(count.sent), LONG).unwrap();
        count.sent += 1;
    }
}

/// What happens to a kernel with messages under way.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// So many messages one by one, at most so many under way.
    InFlight(u64, u64),
    /// Messages by one call, which go through slots.
    Batch(usize),
    Receive(u64),
    /// It is deactivated, what was answered is received or left, and it is activated.
    Pause(bool),
    /// It is terminated, and launched again.
    Launch,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        6 => (1..200u64, 1..=100u64).prop_map(|(n, depth)| Act::InFlight(n, depth)),
        2 => (1..80usize).prop_map(Act::Batch),
        2 => (1..100u64).prop_map(Act::Receive),
        3 => any::<bool>().prop_map(Act::Pause),
        1 => Just(Act::Launch),
    ];
    prop::collection::vec(act, 1..30)
}

fn launches() -> impl Strategy<Value = LaunchConfig> {
    let lines = prop::sample::select(vec![1u32, 2, 4, 64]);
    let capacity = prop::sample::select(vec![64u32, 128, 1024]);
    let start = prop_oneof![2 => Just(0), 1 => (1u64 << 32) - 300..1 << 32];
    (lines, capacity, start).prop_map(|(lines, capacity, start)| {
        way(RESIDENT).threads(64).window(lines).capacity(capacity).start_index(start)
    })
}

/// Receives what is there.
fn drain(kernel: &mut KernelHandle<Echo>, count: &mut Count) {
    loop {
        match kernel.try_recv() {
            Ok(answer) => count.is_answered_by(answer),
            Err(end) => return assert_eq!(end, TryRecvError::Empty),
        }
    }
}

/// What was accepted is answered, or counted as unhandled; and the answers come before the end.
fn end(mut kernel: KernelHandle<Echo>, mut count: Count) {
    let summary = kernel.terminate(LONG).unwrap();
    assert_eq!(summary.processed + summary.unhandled, count.sent, "{summary:?}");
    loop {
        match kernel.recv(LONG) {
            Ok(answer) => count.is_answered_by(answer),
            Err(RecvTimeoutError::Closed { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(count.received, summary.processed);
}

fn play(host: &Runtime, launch: &LaunchConfig, acts: &[Act]) {
    let (mut kernel, mut count) = (active(host, launch.clone()), Count::default());
    let capacity = launch.slots::<Echo>().into();
    for act in acts {
        match *act {
            Act::InFlight(n, depth) => {
                in_flight(&mut kernel, &mut count, (n, depth.min(capacity)));
            }
            Act::Batch(n) => {
                let requests: Vec<_> = (count.sent..).take(n).map(message).collect();
                count.sent += kernel.try_send_batch(&requests).unwrap() as u64;
            }
            Act::Receive(n) => {
                for _ in 0..n.min(count.sent - count.received) {
                    count.is_answered_by(kernel.recv(LONG).unwrap());
                }
            }
            Act::Pause(receives) => {
                kernel.deactivate(LONG).unwrap();
                let refused = kernel.try_send(message(count.sent));
                assert!(matches!(refused, Err(TrySendError::NotActive { .. })), "{refused:?}");
                let summary = kernel.summary();
                assert_eq!(summary.processed + summary.unhandled, count.sent, "{summary:?}");
                if receives {
                    drain(&mut kernel, &mut count);
                    assert_eq!(count.received, summary.processed, "answered and not received");
                }
                kernel.activate(LONG).unwrap();
            }
            Act::Launch => {
                let next = active(host, launch.clone());
                end(std::mem::replace(&mut kernel, next), std::mem::take(&mut count));
            }
        }
    }
    while count.received < count.sent {
        count.is_answered_by(kernel.recv(LONG).unwrap());
    }
    end(kernel, count);
}

#[test]
fn nothing_is_lost_between_inline_and_slots() {
    let test = here!("nothing_is_lost_between_inline_and_slots");
    on_each_device(|host| {
        let on = &host.device().name;
        run((test, on), 2000, (launches(), acts()), |(launch, acts)| play(host, &launch, &acts));
    });
}
