//! A kernel as threads see it that do not have its handle: its state between two messages, its counters, its payload.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{ACCOUNTS, Ledger, LedgerState};
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{
    ChannelError, ControlError, DeviceKind, LaunchConfig, PayloadMemory, SharedKernel, StateError,
    TrySendError,
};
use ring_tests::kernels::of_examples;
use ring_tests::latch::Latch;
use ring_tests::{LONG, Progress, WAYS, active, cpu, on_each_device, until};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::scope;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(5);

/// Room for the state of a ledger, which is too large for the stack.
struct Room(Vec<u64>);

impl Room {
    fn new() -> Room {
        Room(vec![0; size_of::<LedgerState>() / 8])
    }

    fn state(&mut self) -> &mut LedgerState {
        &mut bytemuck::cast_slice_mut(&mut self.0)[0]
    }

    fn read(&mut self, kernel: &SharedKernel<Ledger>, channel: u32) -> u64 {
        kernel.read_state_into(channel, self.state(), LONG).unwrap();
        self.messages()
    }

    /// How many messages it is the state behind, if message `k` was for account `k`, counted round.
    fn messages(&mut self) -> u64 {
        let state = self.state();
        assert_eq!(state.first, state.last, "between two messages");
        let rounds = state.first / ACCOUNTS as u64;
        let more = (state.first % ACCOUNTS as u64) as usize;
        let (first, second) = state.accounts.split_at(more);
        assert!(
            first.iter().all(|count| *count == rounds + 1),
            "the first {more} of {}",
            state.first
        );
        assert!(second.iter().all(|count| *count == rounds), "all but {more} of {}", state.first);
        state.first
    }
}

/// Messages on two channels, in batches, while another thread reads the states of both: each is one that the kernel had, none is older
/// than the one before, and no message is refused but for want of room.
#[test]
fn a_state_is_read_between_two_messages() {
    on_each_device_alone(here!("a_state_is_read_between_two_messages"), |runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).channels(2);
            let launch = launch.kernels(of_examples::<Ledger>()).capacity(1024);
            let mut kernel = runtime.launch::<Ledger>(launch).unwrap();
            kernel.activate(LONG).unwrap();
            let count = if runtime.device().kind == DeviceKind::Cuda { 300_000 } else { 20_000 };
            let (shared, stop) = (kernel.share(), AtomicBool::new(false));
            let (mut reads, mut slowest) = (0, Duration::ZERO);
            let begun = Instant::now();
            scope(|scope| {
                let reading = scope.spawn(|| {
                    let (mut room, mut before) = (Room::new(), [0; 2]);
                    while !stop.load(Relaxed) {
                        for (channel, before) in (0..).zip(&mut before) {
                            let begun = Instant::now();
                            let now = room.read(&shared, channel);
                            slowest = slowest.max(begun.elapsed());
                            assert!(now >= *before, "{now} messages, and {before} earlier");
                            *before = now;
                            reads += 1;
                            // While it is read, it takes no messages.
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
                let each = [0, 1].map(|channel| kernel.take_channel(channel).unwrap());
                let senders = each.map(|mut channel| {
                    scope.spawn(move || {
                        let (mut sent, mut received, mut progress) = (0, 0, Progress::new());
                        while received < count {
                            let most = (count - sent).min(64) as usize;
                            sent +=
                                channel.try_send_each(most, |k| sent + k as u64).unwrap() as u64;
                            let answer = |answer: &u64| {
                                received += 1;
                                assert_eq!(*answer, received);
                            };
                            channel.try_recv_each(64, answer).unwrap();
                            progress.is_at(received, format_args!("more than {received}"));
                        }
                    })
                });
                senders.into_iter().for_each(|sender| sender.join().unwrap());
                stop.store(true, Relaxed);
                reading.join().unwrap();
            });
            let rate = 2.0 * count as f64 / begun.elapsed().as_secs_f64();
            let mut room = Room::new();
            assert_eq!(
                [0, 1].map(|channel| room.read(&shared, channel)),
                [count; 2],
                "active still"
            );
            kernel.terminate(LONG).unwrap();
            assert_eq!([0, 1].map(|channel| room.read(&shared, channel)), [count; 2], "terminated");
            let device = &runtime.device().name;
            println!(
                "{device}, {mode} in {memory}: {reads} reads of 1 MiB, the slowest {slowest:?}, {rate:.0} messages/s"
            );
            let none = shared.read_state_into(2, room.state(), LONG).unwrap_err();
            let known = ChannelError::OutOfRange { channel: 2, channels: 2 };
            assert_eq!(none, StateError::Channel(known));
        }
    });
}

/// What the handle commands holds, whoever reads at the moment.
#[test]
fn a_reader_does_not_wake_what_was_deactivated() {
    on_each_device_alone(here!("a_reader_does_not_wake_what_was_deactivated"), |runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(64);
            let launch = launch.kernels(of_examples::<Ledger>());
            let mut kernel = runtime.launch::<Ledger>(launch).unwrap();
            let (shared, stop) = (kernel.share(), AtomicBool::new(false));
            let mut room = Room::new();
            assert_eq!(room.read(&shared, 0), 0, "never activated");
            scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        let mut room = Room::new();
                        while !stop.load(Relaxed) {
                            room.read(&shared, 0);
                        }
                    });
                }
                for i in 0..20 {
                    kernel.activate(LONG).unwrap();
                    kernel.send(i, LONG).unwrap();
                    assert_eq!(kernel.recv(LONG).unwrap(), i + 1);
                    kernel.deactivate(LONG).unwrap();
                    // The handle reads only what takes no messages.
                    kernel.read_state_into(0, room.state(), LONG).unwrap();
                    assert_eq!(room.messages(), i + 1);
                    let refused = kernel.try_send(i).unwrap_err();
                    assert!(matches!(refused, TrySendError::NotActive { .. }), "{refused}");
                }
                kernel.terminate(LONG).unwrap();
                stop.store(true, Relaxed);
            });
            assert_eq!(room.read(&shared, 0), 20);
        }
    });
}

/// Halfway through the handler of `Stuck`.
static HALFWAY: Latch = Latch::new();

ring_device::ring_kernel! {
    /// Counts, and waits until it is released before it counts once more. For the CPU device only.
    struct Stuck { name: "stuck", }

    fn handle(state: &mut [u64; 2], request: &u64) -> u64 {
        state[0] += 1;
        if *request > 0 {
            HALFWAY.wait();
        }
        state[1] += 1;
        state[1]
    }
}

#[test]
fn a_handler_that_does_not_end_is_told_to_the_reader_and_keeps_nobody_from_terminating() {
    let mut kernel = cpu().launch::<Stuck>(LaunchConfig::default().capacity(16)).unwrap();
    kernel.activate(LONG).unwrap();
    let shared = kernel.share();
    let stick = |kernel: &mut ring_host::KernelHandle<Stuck>| {
        kernel.send(1, LONG).unwrap();
        until("the handler", || HALFWAY.is_reached().then_some(()));
    };
    stick(&mut kernel);
    let late = shared.read_state(0, SHORT).unwrap_err();
    assert!(matches!(late, StateError::Control(ControlError::Timeout { .. })), "{late}");
    HALFWAY.release();
    assert_eq!(kernel.recv(LONG), Ok(1), "it goes on");
    kernel.send(0, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(2), "and takes messages");
    assert_eq!(shared.read_state(0, LONG), Ok([2, 2]));
    // A reader that waits, and a thread that terminates.
    stick(&mut kernel);
    scope(|scope| {
        let reading = scope.spawn(|| shared.read_state(0, LONG));
        std::thread::sleep(SHORT);
        let late = kernel.deactivate(SHORT).unwrap_err();
        assert!(matches!(late, ControlError::Timeout { .. }), "the reader has the turn: {late}");
        let late = kernel.terminate(SHORT).unwrap_err();
        assert!(matches!(late, ControlError::Timeout { .. }), "the handler has not ended: {late}");
        HALFWAY.release();
        kernel.terminate(LONG).unwrap();
        assert_eq!(reading.join().unwrap(), Ok([3, 3]), "what it left");
    });
    assert_eq!(shared.read_state(0, LONG), Ok([3, 3]));
    drop(kernel);
    assert_eq!(shared.read_state(0, LONG), Ok([3, 3]), "it outlives the handle");
}

#[test]
fn counters_are_everybodys() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().channels(2));
        let shared = kernel.share();
        scope(|scope| {
            for _ in 0..3 {
                let shared = shared.clone();
                scope.spawn(move || {
                    until("a hundred messages", || {
                        let counted = shared.telemetry().processed;
                        assert!(counted <= 100 && shared.status().processed <= 100);
                        let of_channels = [0, 1]
                            .map(|channel| shared.channel_telemetry(channel).unwrap().processed);
                        assert!(of_channels[1] == 0 && of_channels[0] >= counted);
                        (shared.summary().processed == 100).then_some(())
                    });
                    shared.channel_telemetry(2).unwrap_err();
                });
            }
            for i in 0..100 {
                kernel.send(EchoMessage::from_seed(i), LONG).unwrap();
                kernel.recv(LONG).unwrap();
            }
        });
        kernel.terminate(LONG).unwrap();
        drop(kernel);
        assert_eq!((shared.summary().processed, shared.telemetry().processed), (100, 100));
    });
}

/// Each thread finds what it wrote: where the arena is in device memory, all copies go by one staging.
#[test]
fn several_threads_use_the_payload_arena() {
    const WORDS: usize = 3000;
    on_each_device(|runtime| {
        for payload_memory in [PayloadMemory::Mapped, PayloadMemory::Device] {
            let launch = LaunchConfig::default().payload_bytes(4 * 4 * WORDS).capacity(16);
            let launch = launch.payload_memory(payload_memory);
            let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
            kernel.activate(LONG).unwrap();
            let shared = kernel.share();
            scope(|scope| {
                for thread in 0..4u32 {
                    let shared = &shared;
                    scope.spawn(move || {
                        let at = u64::from(thread) * 4 * WORDS as u64;
                        for round in 0..20 {
                            let words: Vec<u32> =
                                (0..WORDS as u32).map(|k| k ^ thread << 24 ^ round << 16).collect();
                            shared.write_payload(at, &words, LONG).unwrap();
                            let mut back = vec![0u32; WORDS];
                            shared.read_payload(at, &mut back, LONG).unwrap();
                            assert_eq!(back, words, "thread {thread}, round {round}");
                        }
                    });
                }
            });
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn a_shared_kernel_is_for_every_thread() {
    fn is<T: Clone + Send + Sync + 'static>() {}
    is::<SharedKernel<Echo>>();
}
