//! Threads of the host that panic while they own a part of a kernel: what they owned is dropped, and nothing
//! else is lost.

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{Channel, KernelHandle, LaunchConfig, Receiver, Runtime, Sender};
use ring_tests::{LONG, WAYS, on_each_device};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts what was accepted, whatever becomes of the thread that sent it.
#[derive(Default)]
struct Accepted(AtomicU64);

impl Accepted {
    fn send(&self, sender: &mut Sender<Echo>, seed: u64) {
        sender.send(EchoMessage::from_seed(seed), LONG).unwrap();
        self.0.fetch_add(1, Relaxed);
    }
}

/// A panic that the test causes.
fn panic_quietly() -> ! {
    resume_unwind(Box::new("on purpose"))
}

fn with_a_sender(accepted: &Accepted, mut sender: Sender<Echo>) {
    (0..5).for_each(|seed| accepted.send(&mut sender, seed));
    let _ = sender.try_send_each(4, |k| match k {
        2 => panic_quietly(), // so none of these is sent
        k => EchoMessage::from_seed(k as u64),
    });
}

fn with_a_receiver(mut receiver: Receiver<Echo>) {
    for seed in 0..2 {
        assert_eq!(receiver.recv(LONG).unwrap(), EchoMessage::from_seed(seed).answer());
    }
    loop {
        let _ = receiver.try_recv_each(8, |_| panic_quietly());
    }
}

/// Leaves both rings full.
fn with_both(accepted: &Accepted, mut sender: Sender<Echo>, mut receiver: Receiver<Echo>) {
    (0..32).for_each(|seed| accepted.send(&mut sender, seed));
    assert_eq!(receiver.recv(LONG).unwrap(), EchoMessage::from_seed(0).answer());
    panic_quietly()
}

fn with_a_channel(accepted: &Accepted, mut channel: Channel<Echo>) {
    accepted.send(channel.split().0, 0);
    assert_eq!(channel.recv(LONG).unwrap(), EchoMessage::from_seed(0).answer());
    accepted.send(channel.split().0, 1);
    panic_quietly()
}

fn go_on(kernel: &mut KernelHandle<Echo>, accepted: &Accepted, channel: u32) {
    let channel = kernel.channel(channel).unwrap();
    for seed in 0..100 {
        accepted.send(channel.split().0, seed);
        assert_eq!(channel.recv(LONG).unwrap(), EchoMessage::from_seed(seed).answer());
    }
}

fn survives(host: &Runtime, launch: &LaunchConfig) {
    let mut kernel = host.launch::<Echo>(launch.clone()).unwrap();
    kernel.activate(LONG).unwrap();
    let accepted = Accepted::default();
    let [apart, both] = [0, 1].map(|channel| kernel.take_channel(channel).unwrap().into_split());
    let channel = kernel.take_channel(2).unwrap();
    std::thread::scope(|threads| {
        let all = [
            threads.spawn(|| with_a_sender(&accepted, apart.0)),
            threads.spawn(|| with_a_receiver(apart.1)),
            threads.spawn(|| with_both(&accepted, both.0, both.1)),
            threads.spawn(|| with_a_channel(&accepted, channel)),
        ];
        go_on(&mut kernel, &accepted, 3); // beside them
        for thread in all {
            let panic = thread.join().expect_err("it panics");
            assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
        }
    });
    go_on(&mut kernel, &accepted, 3);
    let summary = kernel.terminate(LONG).unwrap();
    let accepted = accepted.0.into_inner();
    assert_eq!(summary.processed + summary.unhandled, accepted, "{summary:?}");
    assert!(summary.unhandled > 0, "a channel whose answers nobody takes");
    assert_eq!(kernel.telemetry().errors, 0);
}

#[test]
fn what_a_panicking_thread_held_is_all_that_is_lost() {
    on_each_device(|host| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).channels(4).capacity(16);
            (0..3).for_each(|_| survives(host, &launch));
        }
    });
}
