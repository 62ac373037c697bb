//! Exactly once, in order, per channel: through lines and slots, singly and in batches, from one
//! thread and from two, across a full ring, a pause, and 32 bits of index.

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    KernelHandle, LaunchConfig, RecvTimeoutError, SendTimeoutError, TryRecvError, TrySendError,
};
use ring_tests::{LONG, Progress, active, on_each_device};
use std::time::Duration;

fn message(i: u64) -> EchoMessage {
    EchoMessage::from_seed(i)
}

/// Sends and receives `count` messages, never more than `depth` unanswered.
fn exchange(kernel: &mut KernelHandle<Echo>, count: u64, depth: u64) {
    let (mut sent, mut received) = (0, 0);
    while received < count {
        while sent < count && sent - received < depth {
            kernel.send(message(sent), LONG).unwrap();
            sent += 1;
        }
        assert_eq!(kernel.recv(LONG).unwrap(), message(received).answer(), "message {received}");
        received += 1;
    }
    assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty), "an answer that nobody asked for");
}

#[test]
fn one_at_a_time() {
    on_each_device(|runtime| exchange(&mut active(runtime, LaunchConfig::default()), 20_000, 1));
}

#[test]
fn every_depth_and_capacity() {
    on_each_device(|runtime| {
        for capacity in [1, 2, 8, 64, 4096] {
            for depth in [1, 2, 3, 5, 64] {
                let launch = LaunchConfig::default().capacity(capacity);
                exchange(&mut active(runtime, launch), 1000, depth.min(u64::from(capacity)));
            }
        }
    });
}

/// Inline messages while answers are still unread: those answers go through slots.
#[test]
fn answers_read_late() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(8));
        for round in 0..200 {
            for i in 0..8 {
                kernel.send(message(round * 8 + i), LONG).unwrap();
                if i % 3 == 0 {
                    std::thread::yield_now();
                }
            }
            for i in 0..8 {
                assert_eq!(kernel.recv(LONG).unwrap(), message(round * 8 + i).answer());
            }
        }
    });
}

#[test]
fn a_full_ring_gives_the_message_back() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(4));
        kernel.deactivate(LONG).unwrap();
        kernel.activate(LONG).unwrap();
        let mut accepted = 0;
        // Nobody receives: the device answers until its ring is full, then ours fills up.
        let refused = loop {
            match kernel.send(message(accepted), Duration::from_millis(50)) {
                Ok(()) => accepted += 1,
                Err(SendTimeoutError::Timeout { message, .. }) => break message,
                Err(error) => panic!("{error}"),
            }
        };
        assert_eq!(refused, message(accepted), "the message that was refused");
        assert!((4..=8).contains(&accepted), "two rings of four slots took {accepted}");
        for i in 0..accepted {
            assert_eq!(kernel.recv(LONG).unwrap(), message(i).answer());
        }
        exchange(&mut kernel, 100, 4);
    });
}

#[test]
fn batches() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(256));
        let all: Vec<EchoMessage> = (0..20_000).map(message).collect();
        let (mut sent, mut received, mut step) = (0, 0, 1);
        let mut answers = [message(0); 100];
        while received < all.len() {
            step = step * 7 % 101;
            let end = (sent + step).min(all.len());
            sent += kernel.try_send_batch(&all[sent..end]).unwrap();
            let n = kernel.try_recv_batch(&mut answers[..step.min(100)]).unwrap();
            for answer in &answers[..n] {
                assert_eq!(*answer, all[received].answer(), "message {received}");
                received += 1;
            }
        }
    });
}

#[test]
fn fixed_capacity_vectors() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default());
        let mut answers = heapless::Vec::<EchoMessage, 16>::new();
        for i in 0..20 {
            kernel.send(message(i), LONG).unwrap();
        }
        let mut channel = kernel.take_channel(0).unwrap();
        let (_, receiver) = channel.split();
        while !answers.is_full() {
            let room = answers.capacity() - answers.len();
            answers.extend(receiver.try_iter().take(room));
        }
        for (i, answer) in answers.iter().enumerate() {
            assert_eq!(*answer, message(i as u64).answer());
        }
        assert_eq!(receiver.recv(LONG).unwrap(), message(16).answer(), "the next one");
    });
}

#[test]
fn two_threads_and_several_channels() {
    const COUNT: u64 = 30_000;
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().channels(3).capacity(128));
        let channels: Vec<_> = (0..3).map(|i| kernel.take_channel(i).unwrap()).collect();
        std::thread::scope(|scope| {
            for (k, channel) in channels.into_iter().enumerate() {
                let (mut sender, mut receiver) = channel.into_split();
                let seed = move |i| message(i + k as u64 * COUNT);
                scope.spawn(move || {
                    (0..COUNT).for_each(|i| sender.send(seed(i), LONG).unwrap());
                });
                scope.spawn(move || {
                    for i in 0..COUNT {
                        assert_eq!(receiver.recv(LONG).unwrap(), seed(i).answer(), "channel {k}");
                    }
                });
            }
        });
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!((summary.processed, summary.unhandled), (3 * COUNT, 0));
    });
}

/// Stamps and indices in the doorbell are 32 bits; the start index brings us to where they wrap.
#[test]
fn indices_pass_32_bits() {
    on_each_device(|runtime| {
        for start in [(1 << 32) - 700, (1 << 33) - 1, u64::from(u32::MAX), 1 << 62] {
            for depth in [1, 7] {
                let launch = LaunchConfig::default().capacity(64).start_index(start);
                exchange(&mut active(runtime, launch), 1500, depth);
            }
        }
    });
}

#[test]
fn nothing_is_lost_across_pauses() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(64));
        let (mut sent, mut received) = (0, 0);
        for round in 0..200 {
            for _ in 0..round % 13 {
                if kernel.try_send(message(sent)).is_ok() {
                    sent += 1;
                }
            }
            kernel.deactivate(LONG).unwrap();
            let refused = kernel.try_send(message(sent));
            assert!(matches!(refused, Err(TrySendError::NotActive { .. })), "{refused:?}");
            if round % 2 == 0 {
                loop {
                    match kernel.try_recv() {
                        Ok(answer) => assert_eq!(answer, message(received).answer()),
                        Err(end) => break assert_eq!(end, TryRecvError::Empty),
                    }
                    received += 1;
                }
            }
            kernel.activate(LONG).unwrap();
        }
        while received < sent {
            assert_eq!(kernel.recv(LONG).unwrap(), message(received).answer());
            received += 1;
        }
        assert!(sent > 200, "the test sent too little: {sent}");
    });
}

#[test]
fn what_was_answered_can_be_received_after_the_end() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default());
        for i in 0..100 {
            kernel.send(message(i), LONG).unwrap();
        }
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!(summary.processed + summary.unhandled, 100, "{summary:?}");
        for i in 0..summary.processed {
            assert_eq!(kernel.recv(LONG).unwrap(), message(i).answer());
        }
        assert!(matches!(kernel.recv(LONG), Err(RecvTimeoutError::Closed { .. })));
    });
}

/// After one answer is received there is room for one more request, at any capacity: the sender
/// passes the credit on although it has nothing to send, and a stalled channel says what it consumed.
#[test]
fn one_answer_makes_room_for_one_request() {
    on_each_device(|runtime| {
        for capacity in [4, 64, 1024] {
            let mut kernel = active(runtime, LaunchConfig::default().capacity(capacity));
            let (mut sent, mut received) = (0, 0);
            while sent < 2 * u64::from(capacity) {
                kernel.send(message(sent), LONG).unwrap();
                sent += 1;
            }
            let full = kernel.try_send(message(sent));
            assert_eq!(full, Err(TrySendError::Full(message(sent))), "both rings are full");
            for _ in 0..2 * capacity {
                assert_eq!(kernel.recv(LONG).unwrap(), message(received).answer());
                received += 1;
                kernel.send(message(sent), LONG).unwrap();
                sent += 1;
            }
        }
    });
}

/// A command is acknowledged between windows, not after the whole ring.
#[test]
fn a_command_does_not_wait_for_the_ring() {
    let runtime = ring_tests::cpu();
    let mut kernel = runtime.launch::<ring_tests::Slow>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    let requests = [0u64; 4000];
    assert_eq!(kernel.try_send_batch(&requests).unwrap(), 4000);
    let summary = kernel.terminate(LONG).unwrap();
    assert_eq!(summary.processed + summary.unhandled, 4000);
    assert!(summary.unhandled > 0, "all 4000 were handled first");
}

/// The device renews its counters also while messages keep it busy.
#[test]
fn the_heart_beats_under_load() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default());
        let (mut i, mut beats, mut last) = (0, 0, kernel.status().heartbeat);
        let mut progress = Progress::new();
        while beats < 20 {
            progress.is_at(beats, format_args!("more than {beats} heartbeats in {i} round trips"));
            kernel.send(message(i), LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), message(i).answer());
            i += 1;
            let now = kernel.status().heartbeat;
            if now != last {
                (beats, last) = (beats + 1, now);
            }
        }
        assert!(kernel.status().processed > 0);
    });
}

/// On a GPU one warp looks for commands and two for messages: a message that cannot be answered for
/// want of room must not keep them from the command.
#[test]
fn commands_are_acknowledged_while_answers_have_no_room() {
    on_each_device(|runtime| {
        for capacity in [1, 2] {
            let launch = LaunchConfig::default().capacity(capacity).threads(64);
            let mut kernel = active(runtime, launch);
            let mut sent = 0;
            for round in 0..300 {
                while kernel.try_send(message(sent)).is_ok() {
                    sent += 1;
                }
                if round % 3 == 0 {
                    kernel.deactivate(LONG).unwrap();
                }
                kernel.activate(LONG).unwrap();
            }
            for i in 0..sent {
                assert_eq!(kernel.recv(LONG).unwrap(), message(i).answer());
            }
        }
    });
}
