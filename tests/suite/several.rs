//! Several senders of one channel, and a wait for several receivers.

use ring_example_kernels::{Item, Pass};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    GraphBuilder, LaunchConfig, Receiver, Select, SendTimeoutError, TryRecvError, TrySendError,
};
use ring_tests::{LONG, WAYS, active, cpu, kernels, mixed, on_each_device};
use std::thread::scope;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(20);
const SENDERS: u64 = 4;

/// Number `i` of a sender.
fn message(sender: u64, i: u64) -> EchoMessage {
    EchoMessage::from_seed(sender << 32 | i)
}

/// Each sender's requests are answered once and in order, whatever lies between them.
#[test]
fn several_threads_send_on_one_channel() {
    on_each_device(|runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(16);
            let mut kernel = active(runtime, launch);
            let (sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
            let sender = sender.into_shared();
            let count = 300;
            scope(|scope| {
                for thread in 0..SENDERS {
                    let sender = sender.clone();
                    scope.spawn(move || send_from(&sender, thread, count));
                }
                let mut next = [0; SENDERS as usize];
                for _ in 0..SENDERS * count {
                    let answer = receiver.recv(LONG).unwrap();
                    let of =
                        (0..SENDERS).find(|of| answer == message(*of, next[*of as usize]).answer());
                    let of = of.expect("the next of some sender");
                    next[of as usize] += 1;
                }
            });
            let summary = kernel.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (SENDERS * count, 0));
        }
    });
}

fn send_from(sender: &ring_host::SharedSender<Echo>, thread: u64, count: u64) {
    let mut next = 0;
    while next < count {
        match mixed(thread + next) % 3 {
            0 => {
                let batch = [0, 1, 2].map(|k| message(thread, next + k));
                let most = batch.len().min((count - next) as usize);
                next += sender.try_send_batch(&batch[..most]).unwrap() as u64;
            }
            1 => match sender.try_send(message(thread, next)) {
                Ok(()) => next += 1,
                Err(TrySendError::Full(_)) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            },
            _ => {
                sender.send(message(thread, next), LONG).unwrap();
                next += 1;
            }
        }
    }
}

#[test]
fn a_shared_sender_tells_what_a_sender_tells() {
    on_each_device(|runtime| {
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().capacity(2)).unwrap();
        let (sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
        let sender = sender.into_shared();
        let request = message(0, 0);
        let not_active = sender.send(request, LONG).unwrap_err();
        assert!(matches!(not_active, SendTimeoutError::NotActive { .. }), "{not_active}");
        kernel.activate(LONG).unwrap();
        // Two rings of two slots, and what is handled at the moment.
        let full = (0..100).find_map(|_| sender.send(request, SHORT).err()).expect("full");
        assert!(matches!(full, SendTimeoutError::Timeout { .. }), "{full}");
        assert_eq!(full.into_inner(), request);
        // While another waits for room, others may send and are refused.
        scope(|scope| {
            let waits = scope.spawn(|| sender.send(request, LONG));
            std::thread::sleep(SHORT);
            let refused = sender.try_send(request).unwrap_err();
            assert!(matches!(refused, TrySendError::Full(_)), "{refused}");
            assert_eq!(receiver.recv(LONG).unwrap(), request.answer());
            waits.join().unwrap().unwrap();
        });
        let other = sender.clone();
        let sender = sender.into_sender().expect_err("there is another clone");
        drop(other);
        let mut sender = sender.into_sender().expect("there is no other clone");
        kernel.terminate(LONG).unwrap();
        assert!(matches!(sender.try_send(request), Err(TrySendError::Closed { .. })));
    });
}

/// The index of the receiver that is ready first.
fn ready(
    select: &mut Select,
    receivers: &mut [Receiver<Echo>; 3],
    deadline: Duration,
) -> Option<usize> {
    let [first, second, third] = receivers;
    select.ready(&mut [first, second, third], deadline)
}

#[test]
fn one_thread_waits_for_several_channels() {
    on_each_device(|runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(64);
            let mut two = active(runtime, launch.clone().channels(2));
            let mut one = active(runtime, launch);
            let channels = [two.take_channel(0), two.take_channel(1), one.take_channel(0)];
            let [a, b, c] = channels.map(|channel| channel.unwrap().into_split());
            let (mut senders, mut receivers) = ([a.0, b.0, c.0], [a.1, b.1, c.1]);
            let mut select = Select::new();
            assert_eq!(ready(&mut select, &mut receivers, SHORT), None);
            assert_eq!(select.ready(&mut [], SHORT), None);
            let sent = [60, 40, 20];
            for (of, sender) in senders.iter_mut().enumerate() {
                for i in 0..sent[of] {
                    sender.send(message(of as u64, i), LONG).unwrap();
                }
            }
            let mut next = [0; 3];
            while next != sent {
                let found = ready(&mut select, &mut receivers, LONG).expect("more answers");
                match receivers[found].try_recv() {
                    Ok(answer) => {
                        assert_eq!(answer, message(found as u64, next[found]).answer());
                        next[found] += 1;
                    }
                    // Seen, and not there yet.
                    Err(TryRecvError::Empty) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            // A receiver that has come to its end is found, which is how a caller learns of it.
            two.terminate(LONG).unwrap();
            one.terminate(LONG).unwrap();
            let ended = |_| ready(&mut select, &mut receivers, LONG).expect("all have ended");
            let mut found = [0, 1, 2].map(ended);
            found.sort_unstable();
            assert_eq!(found, [0, 1, 2], "each has its turn");
            assert!(matches!(receivers[2].try_recv(), Err(TryRecvError::Closed { .. })));
        }
    });
}

#[test]
fn a_port_is_waited_for_beside_a_channel() {
    let host = cpu();
    let mut graph = GraphBuilder::new();
    let pass =
        graph.kernel::<Pass>(LaunchConfig::default().kernels(kernels::of_examples::<Pass>()));
    let read = graph.feed(pass).read(pass, Pass::ON);
    let mut graph = host.launch_graph(&graph).unwrap();
    graph.activate(LONG).unwrap();
    let mut kernel = active(&host, LaunchConfig::default());
    let (mut requests, mut answers) = kernel.take_channel(0).unwrap().into_split();
    let mut items = graph.sender(pass, 0).unwrap();
    let mut passed = graph.receiver(read, 0).unwrap();
    let mut select = Select::new();
    for i in 0..100 {
        if mixed(i).is_multiple_of(2) {
            requests.send(message(0, i), LONG).unwrap();
            while select.ready(&mut [&mut passed, &mut answers], LONG) != Some(1) {}
            assert_eq!(answers.recv(LONG).unwrap(), message(0, i).answer());
        } else {
            items.send(Item { number: i, ..Item::default() }, LONG).unwrap();
            while select.ready(&mut [&mut passed, &mut answers], LONG) != Some(0) {}
            assert_eq!(passed.recv(LONG).unwrap().number, i);
        }
    }
    kernel.terminate(LONG).unwrap();
    graph.terminate(LONG).unwrap();
}
