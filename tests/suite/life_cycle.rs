//! The life cycle: launch, activate, deactivate, terminate, drop; of one kernel, of many at once, a
//! thousand times over; and handles, halves and runtimes that go in any order.

use crate::faults::{in_child, names, promptly};
use ring_device::ring_kernel;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, Cooperative, Device, DeviceKind, Kernel, KernelHandle, LaunchConfig, LaunchError,
    RecvTimeoutError, Runtime, RuntimeConfig, SendTimeoutError, State, Summary, TryRecvError,
    TrySendError,
};
use ring_tests::kernels::config;
use ring_tests::{
    LONG, Progress, StopOnDrop, WAYS, active, cpu, cpu_with, gpu, on_each_device, until,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A launch so small that dozens fit anywhere.
fn small() -> LaunchConfig {
    LaunchConfig::default().capacity(16)
}

/// Opens the device of `runtime` once more.
fn open_again(runtime: &Runtime) -> Runtime {
    match runtime.device().kind {
        DeviceKind::Cpu => cpu(),
        _ => gpu().expect("there was one"),
    }
}

/// One round trip on every channel.
fn exchange(kernel: &mut KernelHandle<Echo>, seed: u64) {
    for channel in 0..kernel.channels() {
        let request = EchoMessage::from_seed(seed + u64::from(channel));
        kernel.channel(channel).unwrap().send(request, LONG).unwrap();
    }
    for channel in 0..kernel.channels() {
        let answer = kernel.channel(channel).unwrap().recv(LONG).unwrap();
        assert_eq!(
            answer,
            EchoMessage::from_seed(seed + u64::from(channel)).answer(),
            "channel {channel}"
        );
    }
}

/// Sends until both rings, of 8 slots each, are full: 8 are answered, the rest waits for room. How
/// many were sent: a channel that waits for room may not have published all that it consumed.
fn clog(kernel: &mut KernelHandle<Echo>) -> u64 {
    let mut sent = 0;
    until("eight answers, and eight requests behind them", || {
        let answered = kernel.status().processed == 8;
        while kernel.try_send(EchoMessage::from_seed(sent)).is_ok() {
            sent += 1;
        }
        (answered && sent == 16).then_some(())
    });
    sent
}

fn receive(kernel: &mut KernelHandle<Echo>, which: std::ops::Range<u64>) {
    for i in which {
        assert_eq!(kernel.recv(LONG).unwrap(), EchoMessage::from_seed(i).answer(), "answer {i}");
    }
}

/// Pinned memory that one such kernel takes of an arena.
fn bytes_of<K: Kernel>(launch: &LaunchConfig) -> usize {
    cpu().launch::<K>(launch.clone()).unwrap().pinned_bytes().next_multiple_of(256)
}

/// What one handler marks, and waits for.
struct Place {
    begun: AtomicBool,
    released: AtomicBool,
}

static PLACES: [Place; 4] =
    [const { Place { begun: AtomicBool::new(false), released: AtomicBool::new(false) } }; 4];

ring_kernel! {
    /// Answers with its request when the place that it names is released, and says there when it has begun.
    /// For the CPU device only.
    struct Held {
        name: "held",
        entry: "ring_echo",
    }

    fn handle(place: &u32) -> u32 {
        let at = &PLACES[*place as usize];
        at.begun.store(true, Ordering::Relaxed);
        let begun = Instant::now();
        while !at.released.load(Ordering::Relaxed) && begun.elapsed() < 3 * LONG {
            std::thread::sleep(Duration::from_micros(200));
        }
        *place
    }
}

/// A kernel that is busy until its place is [released](release).
fn busy(runtime: &Runtime, place: u32) -> KernelHandle<Held> {
    let mut kernel = runtime.launch::<Held>(small()).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.send(place, LONG).unwrap();
    let begun = || PLACES[place as usize].begun.load(Ordering::Relaxed).then_some(());
    until("the handler", begun);
    kernel
}

fn release(place: u32) {
    PLACES[place as usize].released.store(true, Ordering::Relaxed);
}

#[test]
fn every_transition_is_acknowledged() {
    on_each_device(|runtime| {
        let state = |kernel: &KernelHandle<Echo>| kernel.status().state;
        let mut kernel = runtime.launch::<Echo>(small()).unwrap();
        assert_eq!(state(&kernel), State::Launched);
        assert_eq!(kernel.channels(), 1);
        kernel.deactivate(LONG).unwrap();
        assert_eq!(state(&kernel), State::Inactive);
        for round in 0..3 {
            for _ in 0..2 {
                kernel.activate(LONG).unwrap();
                assert_eq!(state(&kernel), State::Active);
            }
            exchange(&mut kernel, round);
            for _ in 0..2 {
                kernel.deactivate(LONG).unwrap();
                assert_eq!(state(&kernel), State::Inactive);
            }
            let status = kernel.status();
            assert_eq!(status.processed, round + 1, "exact when acknowledged");
            assert_ne!(status.heartbeat, 0);
            until("a heartbeat", || (kernel.status().heartbeat > status.heartbeat).then_some(()));
        }
        kernel.activate(LONG).unwrap();
        assert_eq!(kernel.terminate(LONG).unwrap(), Summary { processed: 3, unhandled: 0 });
        assert_eq!(state(&kernel), State::Terminated);
        assert_eq!(kernel.status().processed, 3);

        let mut never = runtime.launch::<Echo>(small()).unwrap();
        assert_eq!(never.terminate(LONG).unwrap(), Summary { processed: 0, unhandled: 0 });
        assert!(matches!(never.recv(LONG), Err(RecvTimeoutError::Closed { kernel: "echo" })));
    });
}

#[test]
fn what_is_in_the_ring_waits_for_the_next_activation() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(8));
        let sent = clog(&mut kernel);
        kernel.deactivate(LONG).unwrap();
        assert_eq!(kernel.summary(), Summary { processed: 8, unhandled: sent - 8 });
        receive(&mut kernel, 0..8);
        let pause = Duration::from_millis(30);
        let nothing = kernel.recv(pause).unwrap_err();
        assert!(
            matches!(nothing, RecvTimeoutError::Timeout { .. }),
            "an inactive kernel: {nothing}"
        );
        assert_eq!(kernel.summary(), Summary { processed: 8, unhandled: sent - 8 });
        kernel.activate(LONG).unwrap();
        receive(&mut kernel, 8..sent);
        exchange(&mut kernel, 99);
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!(summary, Summary { processed: sent + 1, unhandled: 0 });
    });
}

#[test]
fn terminate_counts_and_leaves_the_answers() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(8));
        let sent = clog(&mut kernel);
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!(summary, Summary { processed: 8, unhandled: sent - 8 });
        receive(&mut kernel, 0..8);
        assert!(matches!(kernel.recv(LONG), Err(RecvTimeoutError::Closed { kernel: "echo" })));
    });
}

#[test]
fn terminate_counts_however_far_the_kernel_came() {
    // What was accepted was handled or is counted, and can be received.
    on_each_device(|runtime| {
        for sent in [1, 5, 40, 64] {
            let mut kernel = active(runtime, LaunchConfig::default().capacity(64));
            let requests: Vec<_> = (0..sent).map(EchoMessage::from_seed).collect();
            assert_eq!(kernel.try_send_batch(&requests).unwrap() as u64, sent);
            let summary = kernel.terminate(LONG).unwrap();
            assert_eq!(summary.processed + summary.unhandled, sent, "{summary:?}");
            receive(&mut kernel, 0..summary.processed);
            assert!(matches!(kernel.recv(LONG), Err(RecvTimeoutError::Closed { .. })));
        }
    });
}

#[test]
fn dropped_kernels_leave_the_device() {
    let each = bytes_of::<Echo>(&small().channels(2));
    let mut runtimes = vec![cpu_with(each, 4096)];
    if gpu().is_some() {
        let options = RuntimeConfig { pinned_bytes: each, device_bytes: 4096, ..config() };
        runtimes.push(Runtime::open_with(Device::Cuda(0), options).unwrap());
    }
    for runtime in runtimes {
        for round in 0..20 {
            // There is room for one: the one before must have left.
            let launch = || runtime.launch::<Echo>(small().channels(2)).ok();
            let mut kernel = until("the memory of the last one", launch);
            if round % 4 > 0 {
                kernel.activate(LONG).unwrap();
            }
            if round % 4 > 1 {
                kernel.send(EchoMessage::from_seed(round), LONG).unwrap();
            }
            if round % 4 > 2 {
                kernel.deactivate(LONG).unwrap();
            }
            promptly("dropping it", || drop(kernel));
        }
    }
}

#[test]
fn channels_acknowledge_together() {
    on_each_device(|runtime| {
        for cooperative in [Cooperative::Always, Cooperative::Never, Cooperative::Auto] {
            let mut kernel = active(runtime, small().channels(4).cooperative(cooperative));
            assert_eq!(kernel.channels(), 4);
            exchange(&mut kernel, 10);
            kernel.deactivate(LONG).unwrap();
            for channel in 0..4 {
                let message = EchoMessage::from_seed(u64::from(channel));
                let sent = kernel.channel(channel).unwrap().try_send(message);
                let (kernel, state) = ("echo", State::Inactive);
                assert_eq!(sent, Err(TrySendError::NotActive { message, kernel, state }));
            }
            kernel.activate(LONG).unwrap();
            exchange(&mut kernel, 20);
            assert_eq!(kernel.terminate(LONG).unwrap(), Summary { processed: 8, unhandled: 0 });
            for channel in 0..4 {
                let end = kernel.channel(channel).unwrap().recv(LONG);
                assert_eq!(
                    end,
                    Err(RecvTimeoutError::Closed { kernel: "echo" }),
                    "channel {channel}"
                );
            }
        }
        let mut one = active(runtime, small().cooperative(Cooperative::Always));
        exchange(&mut one, 30);
    });
}

#[test]
fn halves_outlive_the_handle() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, small().channels(2));
        let (mut sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
        let mut other = kernel.take_channel(1).unwrap();
        let request = EchoMessage::from_seed(5);
        for _ in 0..3 {
            sender.send(request, LONG).unwrap();
        }
        until("three answers", || (kernel.status().processed == 3).then_some(()));
        promptly("dropping the handle", || drop(kernel));
        let (message, kernel) = (request, "echo");
        let refused = SendTimeoutError::Closed { message, kernel };
        assert_eq!(sender.send(request, LONG).unwrap_err(), refused);
        let refused = TrySendError::Closed { message, kernel };
        assert_eq!(other.try_send(request).unwrap_err(), refused);
        for _ in 0..3 {
            assert_eq!(receiver.recv(LONG).unwrap(), request.answer());
        }
        let ended = RecvTimeoutError::Closed { kernel: "echo" };
        assert_eq!(receiver.recv(LONG).unwrap_err(), ended);
        assert_eq!(other.recv(LONG).unwrap_err(), ended);
        drop(sender);
        assert_eq!(receiver.recv(LONG).unwrap_err(), ended);
        exchange(&mut active(runtime, small()), 1);
    });
}

#[test]
fn halves_of_a_kernel_that_left_late_see_the_end() {
    for (mode, memory) in WAYS {
        let launch = small().capacity(512).mode(mode).memory(memory);
        let mut kernel = cpu().launch::<ring_tests::Slow>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        let (mut sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
        assert_eq!(sender.try_send_batch(&[1; 400]), Ok(400)); // 200 ms, where a drop waits 40
        assert_eq!(receiver.recv(LONG), Ok(1));
        promptly("dropping the handle", || drop(kernel));
        let (mut answered, mut progress) = (1, Progress::new());
        let end = loop {
            match receiver.try_recv() {
                Ok(answer) => {
                    assert_eq!(answer, 1);
                    answered += 1;
                }
                Err(TryRecvError::Empty) => std::thread::yield_now(),
                Err(end) => break end,
            }
            progress
                .is_at(answered, format_args!("{mode} in {memory}: the end of {answered} answers"));
        };
        assert_eq!(end, TryRecvError::Closed { kernel: "slow" }, "{mode} in {memory}");
    }
}

#[test]
fn halves_on_other_threads_see_the_end() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, small());
        let (mut sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
        let (sent, received) = std::thread::scope(|threads| {
            let sending = threads.spawn(move || {
                for i in 0.. {
                    match sender.send(EchoMessage::from_seed(i), LONG) {
                        Ok(()) => {}
                        Err(SendTimeoutError::Closed { .. }) => return i,
                        Err(error) => panic!("{error}"),
                    }
                }
                unreachable!()
            });
            let receiving = threads.spawn(move || {
                for i in 0.. {
                    match receiver.recv(LONG) {
                        Ok(answer) => assert_eq!(answer, EchoMessage::from_seed(i).answer()),
                        Err(RecvTimeoutError::Closed { .. }) => return i,
                        Err(error) => panic!("{error}"),
                    }
                }
                unreachable!()
            });
            until("some traffic", || (kernel.status().processed > 100).then_some(()));
            let processed = kernel.terminate(LONG).unwrap().processed;
            let ends = (sending.join().unwrap(), receiving.join().unwrap());
            assert_eq!(ends.1, processed, "every answer was received");
            ends
        });
        assert!(sent >= received, "{sent} sent, {received} received");
        let Summary { processed, unhandled } = kernel.summary();
        assert_eq!(processed + unhandled, sent, "every request was handled or is counted");
    });
}

#[test]
fn two_runtimes_of_one_device_go_in_either_order() {
    on_each_device(|runtime| {
        let open = || open_again(runtime);
        for first_goes in [true, false] {
            let (one, two) = (open(), open());
            let mut of_one = active(&one, small());
            let mut of_two = active(&two, small());
            exchange(&mut of_one, 1);
            exchange(&mut of_two, 2);
            if first_goes {
                promptly("dropping a kernel and its runtime", || drop((of_one, one)));
                exchange(&mut of_two, 3);
                exchange(&mut active(&two, small()), 4);
                promptly("dropping a runtime before its kernel", || drop(two));
                exchange(&mut of_two, 5);
                of_two.terminate(LONG).unwrap();
            } else {
                promptly("dropping a runtime before its kernel", || drop(two));
                exchange(&mut of_two, 3);
                promptly("dropping its kernel", || drop(of_two));
                exchange(&mut of_one, 4);
                exchange(&mut active(&one, small()), 5);
                exchange(&mut active(&open(), small()), 6);
                exchange(&mut of_one, 7);
            }
        }
    });
}

/// More than the driver makes streams for while a kernel is resident.
#[test]
fn sixty_kernels_with_payloads_at_once() {
    on_each_device(|runtime| {
        let launch = || small().payload_bytes(64);
        let mut kernels: Vec<_> = (0..60).map(|_| active(runtime, launch())).collect();
        for (i, kernel) in (0..).zip(&mut kernels) {
            exchange(kernel, i);
            kernel.write_payload(0, &[i as u32; 16], LONG).unwrap();
        }
        for (i, kernel) in (0..).zip(&mut kernels) {
            let mut back = [0u32; 16];
            kernel.read_payload(0, &mut back, LONG).unwrap();
            assert_eq!(back, [i as u32; 16], "kernel {i}");
            exchange(kernel, i);
        }
    });
}

#[test]
fn sixteen_resident_at_once_while_others_come_and_go() {
    on_each_device(|runtime| {
        let mut kernels: Vec<_> = (0..16).map(|_| active(runtime, small())).collect();
        let stop = AtomicBool::new(false);
        let rounds = std::thread::scope(|threads| {
            let until_dropped = StopOnDrop(&stop); // or a failure below would never end
            let exchanging = threads.spawn(|| {
                let mut rounds = 0;
                while !stop.load(Ordering::Relaxed) || rounds == 0 {
                    for kernel in &mut kernels {
                        exchange(kernel, rounds);
                    }
                    rounds += 1;
                }
                rounds
            });
            for round in 0..10 {
                let mut other = promptly("launching", || active(runtime, small().channels(2)));
                promptly("querying", || (other.status(), other.summary(), runtime.device()));
                exchange(&mut other, round);
                promptly("copying", || {
                    let launch = small().payload_bytes(4096);
                    let mut other = runtime.launch::<Echo>(launch).unwrap();
                    other.write_payload(0, &[round as u32; 16], LONG).unwrap();
                    let mut back = [0u32; 16];
                    other.read_payload(0, &mut back, LONG).unwrap();
                    assert_eq!(back, [round as u32; 16]);
                });
                if round % 2 == 0 {
                    promptly("terminating", || other.terminate(LONG)).unwrap();
                }
                promptly("dropping", || drop(other));
                promptly("opening and closing", || drop(open_again(runtime)));
            }
            drop(until_dropped);
            exchanging.join().unwrap()
        });
        for kernel in &mut kernels {
            assert_eq!(kernel.status().state, State::Active);
            assert_eq!(
                kernel.terminate(LONG).unwrap(),
                Summary { processed: rounds, unhandled: 0 }
            );
        }
    });
}

/// Kilobytes of memory that this process has resident.
#[cfg(target_os = "linux")]
fn resident_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[cfg(not(target_os = "linux"))]
fn resident_kilobytes() -> u64 {
    0 // exhausted arenas and shares of the device are still found
}

/// In a process of its own, whose memory is nobody else's.
#[test]
fn a_thousand_cycles_grow_nothing() {
    in_child(concat!(module_path!(), "::a_thousand_cycles_grow_nothing"), &[], || {
        on_each_device(|runtime| {
            let cycle = |i: u64| {
                let mut kernel = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();
                kernel.activate(LONG).unwrap();
                exchange(&mut kernel, i);
                kernel.deactivate(LONG).unwrap();
                let summary = kernel.terminate(LONG).unwrap();
                assert_eq!(summary, Summary { processed: 1, unhandled: 0 }, "cycle {i}");
            };
            (0..200).for_each(cycle);
            let before = resident_kilobytes();
            (0..1000).for_each(cycle);
            let after = resident_kilobytes();
            // A kilobyte a cycle; with a driver, whose own pools may grow, a page.
            let growth = if runtime.device().kind == DeviceKind::Cpu { 1000 } else { 4000 };
            assert!(after <= before + growth, "{before} kB grew to {after} kB");
            println!("{}: {before} kB before, {after} kB after", runtime.device().name);
        });
    });
}

#[test]
fn a_command_that_is_not_acknowledged_in_time() {
    let runtime = cpu();
    let mut kernel = busy(&runtime, 0);
    let limit = Duration::from_millis(40);
    let begun = Instant::now();
    let error = kernel.deactivate(limit).unwrap_err();
    let took = begun.elapsed();
    assert!(took >= limit && took < limit + Duration::from_secs(2), "{took:?}");
    let ControlError::Timeout { kernel: "held", channel: 0, asked: State::Inactive, waited } =
        error
    else {
        panic!("{error}")
    };
    assert!(waited >= limit);
    names(&error, &["kernel held", "channel 0", "Inactive", &format!("{waited:?}")]);
    release(0);
    kernel.deactivate(LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(0), "the batch it was at is finished");
    kernel.activate(LONG).unwrap();
    kernel.send(0, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(0));
}

#[test]
fn terminate_may_be_called_again_after_a_timeout() {
    let runtime = cpu();
    let mut kernel = busy(&runtime, 1);
    let (mut sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
    let limit = Duration::from_millis(20);
    for _ in 0..2 {
        let error = kernel.terminate(limit).unwrap_err();
        assert!(matches!(error, ControlError::Timeout { asked: State::Terminated, .. }), "{error}");
    }
    assert_eq!(kernel.status().state, State::Terminated);
    // It cannot be activated again: the channel may have left by now, or not.
    let ended = ControlError::Terminated { kernel: "held" };
    assert_eq!(kernel.activate(LONG), Err(ended.clone()));
    assert_eq!(kernel.deactivate(LONG), Err(ended.clone()));
    let closed = TrySendError::Closed { message: 1, kernel: "held" };
    assert_eq!(sender.try_send(1), Err(closed));
    release(1);
    assert_eq!(receiver.recv(LONG), Ok(1));
    assert_eq!(receiver.recv(LONG), Err(RecvTimeoutError::Closed { kernel: "held" }));
    let summary = promptly("terminating one that has left", || kernel.terminate(LONG));
    assert_eq!(summary, Ok(Summary { processed: 1, unhandled: 0 }));
    assert_eq!(kernel.terminate(LONG), Err(ended));
}

/// A kernel that is busy when it is dropped does not hold up its owner; its memory and its share of
/// the device come back when it has left, not before.
#[test]
fn dropped_while_busy() {
    let runtime = cpu_with(bytes_of::<Held>(&small()), 4096);
    let kernel = busy(&runtime, 2);
    let begun = Instant::now();
    drop(kernel);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let whole = small().channels(runtime.device().max_channels);
    let refused = |launch: LaunchConfig| match runtime.launch::<Held>(launch) {
        Ok(_) => panic!("launched in memory for one"),
        Err(error) => error,
    };
    let one_more = refused(small());
    assert!(matches!(one_more, LaunchError::Arena { free: 0, .. }), "{one_more}");
    let all = refused(whole.clone());
    assert!(matches!(&all, LaunchError::Crowded(c) if c.fit == 255), "{all}");
    release(2);
    drop(until("its memory", || runtime.launch::<Held>(small()).ok()));
    // The whole device is free again; what is lacking is memory.
    until("its share of the device", || match refused(whole.clone()) {
        LaunchError::Arena { .. } => Some(()),
        LaunchError::Crowded(_) => None,
        error => panic!("{error}"),
    });

    // The runtime, the handle and all else is dropped.
    let runtime = cpu();
    let mut kernel = busy(&runtime, 3);
    let (_sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
    drop((kernel, runtime));
    release(3);
    assert_eq!(receiver.recv(LONG), Ok(3));
    assert_eq!(receiver.recv(LONG), Err(RecvTimeoutError::Closed { kernel: "held" }));
}
