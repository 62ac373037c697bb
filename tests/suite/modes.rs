//! Modes and memories: each keeps the same promises; budgets bound a launch; what is forced is done
//! or refused; telemetry counts what was handled.

use crate::faults::names;
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::error::Budget;
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{
    Budgets, DeviceFault, DeviceKind, Exit, KernelHandle, LaunchConfig, LaunchError, Memory, Mode,
    Obstacle, OpenError, Processing, RecvTimeoutError, Refusal, Runtime, RuntimeConfig,
};
use ring_tests::{
    LONG, Progress, Slow, Unlucky, WAYS, active, exchange, on_each_device, opened, this_program,
};
use std::time::Duration;

fn way((mode, memory): (Mode, Memory)) -> LaunchConfig {
    LaunchConfig::default().mode(mode).memory(memory)
}

/// Sends and receives `count` messages in batches through the whole ring.
fn stream(kernel: &mut KernelHandle<Echo>, count: u64) {
    let (mut sent, mut received, mut progress) = (0u64, 0u64, Progress::new());
    let mut responses = [EchoMessage { words: [0; 8] }; 100];
    while received < count {
        let batch: Vec<_> = (sent..count.min(sent + 300)).map(EchoMessage::from_seed).collect();
        sent += kernel.try_send_batch(&batch).unwrap() as u64;
        let got = kernel.try_recv_batch(&mut responses).unwrap();
        for (i, response) in (received..).zip(&responses[..got]) {
            assert_eq!(*response, EchoMessage::from_seed(i).answer(), "message {i}");
        }
        received += got as u64;
        progress.is_at(received, format_args!("more than {received} of {count}"));
    }
}

#[test]
fn each_way_answers_singly_and_in_streams() {
    on_each_device(|host| {
        for both in WAYS {
            let mut kernel = active(host, way(both));
            assert_eq!(kernel.runs_as(), both);
            assert_eq!((kernel.selection().mode, kernel.selection().memory), both);
            (0..100).for_each(|i| exchange(&mut kernel, i));
            stream(&mut kernel, 20_000);
            kernel.deactivate(LONG).unwrap();
            kernel.activate(LONG).unwrap();
            exchange(&mut kernel, 7);
            let summary = kernel.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (20_101, 0), "{both:?}");
            assert_eq!(kernel.fallbacks().count(), 0);
        }
    });
}

#[test]
fn each_way_has_channels_that_do_not_wait_for_each_other() {
    on_each_device(|host| {
        for both in WAYS {
            let mut kernel = active(host, way(both).channels(3).capacity(64));
            for round in 0..30 {
                for channel in [2, 0, 1, 2] {
                    let request = EchoMessage::from_seed(round * 4 + u64::from(channel));
                    let channel = kernel.channel(channel).unwrap();
                    channel.send(request, LONG).unwrap();
                    assert_eq!(channel.recv(LONG).unwrap(), request.answer(), "{both:?}");
                }
                if round % 10 == 0 && both.0 != Mode::Persistent {
                    kernel.rest(LONG).unwrap();
                }
            }
            assert_eq!(kernel.terminate(LONG).unwrap().processed, 120);
        }
    });
}

#[test]
fn each_way_carries_payload() {
    on_each_device(|host| {
        for both in WAYS {
            let mut kernel = host.launch::<VectorAdd>(way(both)).unwrap();
            kernel.activate(LONG).unwrap();
            for n in [10, 25, 100, 5000] {
                let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
                let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
                let mut c = vec![0.0; n];
                kernel.add(&a, &b, &mut c, LONG).unwrap();
                assert!((0..n).all(|i| c[i] == a[i] + b[i]), "{both:?}, {n}");
            }
        }
    });
}

#[test]
fn two_threads_drive_an_event_driven_kernel() {
    on_each_device(|host| {
        for both in WAYS {
            let mut kernel = active(host, way(both).capacity(64));
            let channel = kernel.channel(0).unwrap();
            let (sender, receiver) = channel.split();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for i in 0..5000 {
                        sender.send(EchoMessage::from_seed(i), LONG).unwrap();
                        if i % 1000 == 0 {
                            std::thread::sleep(Duration::from_millis(1));
                        }
                    }
                });
                for i in 0..5000 {
                    let response = receiver.recv(LONG).unwrap();
                    assert_eq!(response, EchoMessage::from_seed(i).answer(), "{both:?}");
                }
            });
        }
    });
}

#[test]
fn a_kernel_at_rest_is_launched_by_a_send() {
    on_each_device(|host| {
        for both in WAYS.into_iter().filter(|(mode, _)| *mode != Mode::Persistent) {
            // However long it does not get the processor, it leaves only when it finds nothing to do.
            let (idle, time) = (Duration::from_micros(50), Duration::MAX);
            let budgets = Budgets { idle, time, ..Budgets::default() };
            let mut kernel = active(host, way(both).budgets(budgets));
            for i in 0..20 {
                kernel.rest(LONG).unwrap();
                let launches = kernel.launches();
                exchange(&mut kernel, i);
                assert!(kernel.launches() > launches, "{both:?}");
            }
            kernel.rest(LONG).unwrap();
            assert_eq!(kernel.status().exit, Exit::Idle, "{both:?}");
        }
    });
}

#[test]
fn budgets_bound_a_launch() {
    on_each_device(|host| {
        // Two iterations a launch: thousands of launches, and nothing is lost between them.
        for memory in [Memory::Mapped, Memory::StagedAsync, Memory::StagedSync] {
            let budgets = Budgets { iterations: 2, ..Budgets::default() };
            let launch = way((Mode::EventDriven, memory)).budgets(budgets).max_messages(8);
            let mut kernel = active(host, launch.capacity(64));
            stream(&mut kernel, 3000);
            assert!(kernel.launches() >= 3000 / 16, "{} launches", kernel.launches());
            kernel.rest(LONG).unwrap();
            exchange(&mut kernel, 1);
            assert_eq!(kernel.terminate(LONG).unwrap().processed, 3001);
        }
        // Time: it leaves although messages would keep it busy, or nothing comes.
        let (time, idle) = (Duration::from_millis(50), Duration::from_secs(5));
        let budgets = Budgets { time, idle, ..Budgets::default() };
        let mut kernel = active(host, way((Mode::EventDriven, Memory::Mapped)).budgets(budgets));
        // A host that is held up may put a launch behind it, which finds nothing to do.
        let spent = (0..20).any(|i| {
            exchange(&mut kernel, i);
            kernel.rest(LONG).unwrap();
            kernel.status().exit == Exit::TimeSpent
        });
        assert!(spent, "{:?}", kernel.status());
    });
}

/// A slow handler is cut off between two messages, and goes on in the next launch. CPU only.
#[test]
fn residency_is_bounded_by_one_handler_call() {
    let host = ring_tests::cpu();
    let budgets = Budgets { time: Duration::from_millis(1), ..Budgets::default() };
    let launch = way((Mode::EventDriven, Memory::Mapped)).budgets(budgets);
    let mut kernel = host.launch::<Slow>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    for i in 0..40 {
        kernel.send(i, LONG).unwrap();
    }
    for i in 0..40 {
        assert_eq!(kernel.recv(LONG).unwrap(), i);
    }
    // 40 calls of 0.5 ms: at most two or three fit a launch.
    assert!(kernel.launches() >= 10, "{} launches", kernel.launches());
}

/// The lost channel is not run again, neither by a launch queued behind nor by a new one. CPU only.
#[test]
fn a_panic_is_reported_in_each_way() {
    let host = ring_tests::cpu();
    for both in WAYS {
        for batch in [1, 20] {
            let mut kernel = host.launch::<Unlucky>(way(both)).unwrap();
            kernel.activate(LONG).unwrap();
            let mut answered = 0;
            let fault = loop {
                let from = answered;
                let sent = kernel.try_send_batch(&(from..from + batch).collect::<Vec<u64>>());
                let lost = sent.is_err();
                let fault = loop {
                    match kernel.recv(if lost { Duration::ZERO } else { LONG }) {
                        Ok(answer) => {
                            assert_eq!(answer, answered * answered, "{both:?}");
                            answered += 1;
                        }
                        Err(error) => break Some(error),
                    }
                    if answered == from + batch {
                        break None;
                    }
                };
                if let Some(error) = fault {
                    break error;
                }
            };
            assert!(answered <= 13, "{both:?}: {answered} answers");
            let panicked = matches!(
                fault,
                RecvTimeoutError::Fault(DeviceFault::HandlerPanicked {
                    kernel: "unlucky",
                    channel: 0,
                    ..
                })
            );
            assert!(panicked, "{both:?}: {fault}");
            assert!(kernel.deactivate(LONG).is_err(), "{both:?}: a lost kernel acknowledged");
        }
    }
}

/// What one runtime is given does not decide what others find out.
#[test]
fn small_arenas_do_not_spoil_the_probe() {
    let driver = Quirks::of(Cpu::open());
    for options in [
        RuntimeConfig { device_bytes: 0, ..RuntimeConfig::default() },
        RuntimeConfig { pinned_bytes: 1024, ..RuntimeConfig::default() },
        RuntimeConfig::default(),
    ] {
        let host = opened(&driver, options);
        assert!(host.report().probe.mapped.is_ok() && host.report().probe.resident.is_ok());
        let choice = host.report().selection.as_ref().unwrap();
        assert_eq!((choice.mode, choice.memory), WAYS[0], "{choice}");
    }
}

#[test]
fn each_processing_answers_in_each_mode() {
    on_each_device(|host| {
        for processing in [Processing::Continuous, Processing::Batch, Processing::Adaptive] {
            for most in [1, 3, u32::MAX] {
                for both in [WAYS[0], WAYS[1], WAYS[4]] {
                    let launch = way(both).processing(processing).max_messages(most);
                    let mut kernel = active(host, launch);
                    stream(&mut kernel, 3000);
                    assert_eq!(kernel.terminate(LONG).unwrap().processed, 3000);
                }
            }
        }
    });
}

#[test]
fn telemetry_counts_in_each_way() {
    on_each_device(|host| {
        for both in WAYS {
            let mut kernel = active(host, way(both).channels(2));
            stream(&mut kernel, 500);
            kernel.channel(1).unwrap().send(EchoMessage::from_seed(1), LONG).unwrap();
            kernel.channel(1).unwrap().recv(LONG).unwrap();
            kernel.deactivate(LONG).unwrap(); // counters are exact now
            let before = kernel.status().heartbeat;
            let all = kernel.telemetry();
            kernel.terminate(LONG).unwrap();
            let end = kernel.telemetry();
            assert_eq!((all.processed, end.processed), (501, 501), "{both:?}");
            assert_eq!((end.refused, end.errors, end.depth), (0, 0, 0), "{both:?}");
            assert_eq!(end.handler.count(), 501, "{both:?}");
            assert_eq!(end.queueing.count(), 501, "{both:?}");
            assert!(end.handler.quantile(0.5) <= end.handler.quantile(1.0));
            if host.device().kind == DeviceKind::Cuda {
                // A tick is a cycle of the multiprocessor, and no handler takes less than two.
                assert_eq!((end.handler.buckets[0], end.queueing.buckets[0]), (0, 0), "{both:?}");
            }
            assert!(end.heartbeat >= before);
            let one = kernel.channel_telemetry(1).unwrap();
            assert_eq!((one.processed, one.handler.count()), (1, 1), "{both:?}");
            assert!(kernel.channel_telemetry(2).is_err());
        }
    });
}

#[test]
fn refused_messages_are_counted() {
    on_each_device(|host| {
        let mut kernel = host.launch::<VectorAdd>(LaunchConfig::default()).unwrap();
        kernel.activate(LONG).unwrap();
        for len in [0, 26, 3] {
            let mut request = ring_host::kernels::VectorAddRequest::in_payload(len, 0);
            request.in_payload = 0;
            kernel.send(request, LONG).unwrap();
            kernel.recv(LONG).unwrap();
        }
        kernel.terminate(LONG).unwrap();
        assert_eq!(kernel.telemetry().refused, 2);
    });
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_launched() {
    on_each_device(|host| {
        let zero = |budgets| {
            let launch = LaunchConfig::default().budgets(budgets);
            match host.launch::<Echo>(launch) {
                Err(LaunchError::Budget(which)) => which,
                other => panic!("{other:?}"),
            }
        };
        let d = Budgets::default();
        assert_eq!(zero(Budgets { time: Duration::ZERO, ..d }), Budget::Time);
        assert_eq!(zero(Budgets { iterations: 0, ..d }), Budget::Iterations);
        assert_eq!(zero(Budgets { idle: Duration::ZERO, ..d }), Budget::Idle);
        let none = host.launch::<Echo>(LaunchConfig::default().max_messages(0));
        assert!(matches!(none, Err(LaunchError::MaxMessages)));
        let error = host.launch::<Echo>(way((Mode::Persistent, Memory::StagedSync))).unwrap_err();
        let (mode, memory, why) = (Mode::Persistent, Memory::StagedSync, Obstacle::OneLaunch);
        let refused = vec![Refusal { mode, memory, why }];
        let expected = LaunchError::Unfit { kernel: "echo", mode, memory, refused };
        assert_eq!(error, expected);
        names(&error, &["persistent in staged-sync memory", "between launches"]);
    });
}

/// The environment is the process's own: each case is a child process.
#[test]
fn the_environment_forces() {
    const CHILD: &str = "RING_TEST_FORCED";
    if let Ok(expected) = std::env::var(CHILD) {
        let opened = Runtime::open(ring_host::Device::Cpu);
        let said = match opened {
            Err(OpenError::Environment { variable, source }) => format!("{variable}: {source}"),
            Err(error) => panic!("{error}"),
            // The environment wins over the caller.
            Ok(host) => match host.launch::<Echo>(way(WAYS[1])) {
                Ok(kernel) => kernel.selection().to_string(),
                Err(error) => error.to_string(),
            },
        };
        assert!(said.contains(&expected), "{said:?} lacks {expected:?}");
        return;
    }
    let cases: [(&[(&str, &str)], &str); 6] = [
        (&[("RING_MODE", "graph")], "graph in mapped memory (forced by RING_MODE"),
        (
            &[("RING_MEMORY", "staged-sync")],
            "event-driven in staged-sync memory (forced by RING_ME",
        ),
        (
            &[("RING_MODE", "persistent"), ("RING_MEMORY", "staged-async")],
            "persistent in staged-async memory (forced by RING_MODE and RING_MEMORY",
        ),
        (
            &[("RING_MODE", "persistent"), ("RING_MEMORY", "staged-sync")],
            "(mode persistent, memory staged-sync)",
        ),
        (&[("RING_MODE", "fast")], "RING_MODE: unknown mode 'fast'; use auto, persistent"),
        (&[("RING_MEMORY", "Mapped")], "RING_MEMORY: unknown memory 'Mapped'"),
    ];
    for (variables, expected) in cases {
        let mut child = this_program();
        child.args(["--exact", "modes::the_environment_forces"]).env(CHILD, expected);
        child.env_remove("RING_MODE").env_remove("RING_MEMORY").envs(variables.iter().copied());
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && said.contains("1 passed"), "{variables:?}: {said}");
    }
}
