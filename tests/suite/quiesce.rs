//! Kernels that are kept off the device for a while: none is there meanwhile, nothing is lost, and they go on where they were.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{GridSum, Ledger, LedgerState, Pass};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, GraphBuilder, KernelHandle, LaunchConfig, QuiesceError, Runtime,
    SendTimeoutError, TrySendError,
};
use ring_tests::kernels::of_examples;
use ring_tests::latch::Latch;
use ring_tests::{LONG, Progress, WAYS, active, cpu, on_each_device, until};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::scope;
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(5);

fn message(i: u64) -> EchoMessage {
    EchoMessage::from_seed(i)
}

/// Whether the kernel's heartbeat stands still, which a resident one renews every 100 us.
fn stands_still(kernel: &ring_host::SharedKernel<Echo>) -> bool {
    let before = kernel.status().heartbeat;
    std::thread::sleep(Duration::from_millis(2));
    kernel.status().heartbeat == before
}

/// Messages all the while, by two threads to kernels of different kinds.
#[test]
fn nothing_is_lost_and_nobody_is_refused() {
    on_each_device_alone(here!("nothing_is_lost_and_nobody_is_refused"), |runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(256);
            let of_ledger = launch.clone().kernels(of_examples::<Ledger>());
            runtime.prepare::<Ledger>(&of_ledger).unwrap(); // nothing is loaded beside a resident kernel
            let mut echo = active(runtime, launch.channels(2));
            let mut ledger = runtime.launch::<Ledger>(of_ledger).unwrap();
            ledger.activate(LONG).unwrap();
            let shared = echo.share();
            let times = 12;
            let client = echo.client().unwrap();
            let done = AtomicU64::new(0);
            let (mut calls, mut counted) = (0, 0);
            scope(|scope| {
                let calling = scope.spawn(|| {
                    let mut calls = 0;
                    while done.load(Relaxed) == 0 {
                        let request = message(calls);
                        assert_eq!(client.call(request, LONG).unwrap(), request.answer());
                        calls += 1;
                    }
                    calls
                });
                let counting = scope.spawn(|| {
                    let (mut sent, mut received, mut progress) = (0, 0, Progress::new());
                    while done.load(Relaxed) == 0 || received < sent {
                        if done.load(Relaxed) == 0 {
                            sent += ledger.try_send_each(16, |k| sent + k as u64).unwrap() as u64;
                        }
                        let answer = |answer: &u64| {
                            received += 1;
                            assert_eq!(*answer, received);
                        };
                        ledger.try_recv_each(64, answer).unwrap();
                        progress.is_at(received, format_args!("more than {received} of {sent}"));
                    }
                    received
                });
                for _ in 0..times {
                    let stood = runtime.quiesce(LONG, || stands_still(&shared)).unwrap();
                    assert!(stood, "a kernel ran meanwhile: {mode} in {memory}");
                    std::thread::sleep(Duration::from_millis(1));
                }
                done.store(1, Relaxed);
                (calls, counted) = (calling.join().unwrap(), counting.join().unwrap());
            });
            let summary = echo.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (calls, 0), "{mode} in {memory}");
            let summary = ledger.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (counted, 0), "{mode} in {memory}");
            let mut room = vec![0u64; size_of::<LedgerState>() / 8];
            let state: &mut [LedgerState] = bytemuck::cast_slice_mut(&mut room);
            ledger.read_state_into(0, &mut state[0], LONG).unwrap();
            assert_eq!((state[0].first, state[0].last), (counted, counted));
        }
    });
}

/// The kernel has taken some messages of a batch, and goes on inside it, where no doorbell line but the first tells of the next one.
#[test]
fn it_goes_on_inside_a_batch() {
    on_each_device_alone(here!("it_goes_on_inside_a_batch"), |runtime| {
        for ((mode, memory), deactivated) in
            WAYS.into_iter().flat_map(|way| [(way, false), (way, true)])
        {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(256);
            let mut kernel = active(runtime, launch);
            let batch: [EchoMessage; 200] = std::array::from_fn(|i| message(i as u64));
            let mut received = 0;
            let mut receive = |kernel: &mut KernelHandle<Echo>| {
                assert_eq!(
                    kernel.recv(LONG).unwrap(),
                    batch[received % 200].answer(),
                    "{mode} in {memory}"
                );
                received += 1;
            };
            assert_eq!(kernel.try_send_batch(&batch).unwrap(), 200);
            (0..10).for_each(|_| receive(&mut kernel));
            let handled = |kernel: &KernelHandle<Echo>, n| {
                until("handled", || {
                    // An event-driven launch whose time is over is followed by one that some step of the host's makes.
                    let _ = kernel.is_resting();
                    (kernel.telemetry().processed == n).then_some(())
                });
            };
            handled(&kernel, 200);
            assert_eq!(kernel.try_send_batch(&batch).unwrap(), 200);
            // There is room for no more answers.
            handled(&kernel, 266);
            if deactivated {
                kernel.deactivate(LONG).unwrap();
            }
            runtime.quiesce(LONG, || ()).unwrap();
            if deactivated {
                kernel.activate(LONG).unwrap();
            }
            (10..400).for_each(|_| receive(&mut kernel));
            let summary = kernel.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (400, 0), "{mode} in {memory}");
        }
    });
}

/// A kernel that was never activated, one that is deactivated, one of all blocks, and one that has left.
#[test]
fn each_is_afterwards_what_it_was() {
    on_each_device_alone(here!("each_is_afterwards_what_it_was"), |runtime| {
        let launch = LaunchConfig::default().kernels(of_examples::<GridSum>()).blocks(2);
        let of_ledger = LaunchConfig::default().kernels(of_examples::<Ledger>());
        // Nothing is loaded beside a resident kernel.
        runtime.prepare::<GridSum>(&launch).unwrap();
        runtime.prepare::<Ledger>(&of_ledger).unwrap();
        let mut launched = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();
        let mut inactive = active(runtime, LaunchConfig::default());
        inactive.deactivate(LONG).unwrap();
        let mut over = active(runtime, LaunchConfig::default());
        over.terminate(LONG).unwrap();
        let mut grid = runtime.launch::<GridSum>(launch).unwrap();
        grid.activate(LONG).unwrap();
        let mut ledger = runtime.launch::<Ledger>(of_ledger).unwrap();
        let mut room = vec![0u64; size_of::<LedgerState>() / 8];
        let state: &mut [LedgerState] = bytemuck::cast_slice_mut(&mut room);
        for _ in 0..3 {
            assert_eq!(runtime.quiesce(LONG, || 7).unwrap(), 7);
            ledger.read_state_into(0, &mut state[0], LONG).expect("it takes no messages");
            for kernel in [&mut launched, &mut inactive] {
                let refused = kernel.try_send(message(0)).unwrap_err();
                assert!(matches!(refused, TrySendError::NotActive { .. }), "{refused}");
            }
        }
        for kernel in [&mut launched, &mut inactive] {
            kernel.activate(LONG).unwrap();
            kernel.send(message(3), LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), message(3).answer());
            kernel.terminate(LONG).unwrap();
        }
        grid.terminate(LONG).unwrap();
        // No kernel at all.
        drop((launched, inactive, over, grid, ledger));
        runtime.quiesce(LONG, || ()).unwrap();
    });
}

#[test]
fn what_panics_and_what_terminates_brings_nothing_into_disorder() {
    on_each_device(|runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory);
            let mut stays = active(runtime, launch.clone());
            let mut leaves = Some(active(runtime, launch.clone()));
            let mut ends = active(runtime, launch);
            let panics = || runtime.quiesce(LONG, || panic!("in the closure"));
            assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
            let late = runtime.quiesce(LONG, || {
                ends.send(message(1), LONG).unwrap();
                let summary = ends.terminate(LONG).unwrap();
                assert_eq!((summary.processed, summary.unhandled), (0, 1));
                leaves = None;
                // Commands wait until the closure has returned.
                let late = stays.deactivate(SHORT).unwrap_err();
                assert!(matches!(late, ControlError::Timeout { .. }), "{late}");
                stays.activate(SHORT).unwrap_err()
            });
            assert!(matches!(late.unwrap(), ControlError::Timeout { .. }));
            stays.activate(LONG).unwrap();
            stays.send(message(2), LONG).unwrap();
            assert_eq!(stays.recv(LONG).unwrap(), message(2).answer(), "{mode} in {memory}");
            let closed = ends.send(message(3), LONG).unwrap_err();
            assert!(matches!(closed, SendTimeoutError::Closed { .. }), "{closed}");
            runtime.quiesce(LONG, || ()).unwrap();
            stays.terminate(LONG).unwrap();
        }
    });
}

/// In the handler of `Busy`.
static AT_WORK: Latch = Latch::new();

ring_device::ring_kernel! {
    /// Waits until it is released. For the CPU device only.
    struct Busy { name: "busy", }

    fn handle(request: &u64) -> u64 {
        if *request > 0 {
            AT_WORK.wait();
        }
        *request
    }
}

/// Neither that kernel nor another one is kept away.
#[test]
fn a_handler_that_does_not_end_is_told() {
    let runtime = cpu();
    let mut other = active(&runtime, LaunchConfig::default());
    let mut kernel: KernelHandle<Busy> =
        runtime.launch(LaunchConfig::default().channels(2)).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.channel(1).unwrap().send(1, LONG).unwrap();
    until("the handler", || AT_WORK.is_reached().then_some(()));
    // On a busy machine others may be late, too.
    until("it is named", || match runtime.quiesce(SHORT, || unreachable!("a handler runs")) {
        Err(QuiesceError::Control(ControlError::Timeout {
            kernel: "busy", channel: 1, ..
        })) => Some(()),
        Err(QuiesceError::Control(ControlError::Timeout { .. })) => None,
        other => panic!("{other:?}"),
    });
    other.send(message(0), LONG).unwrap();
    assert_eq!(other.recv(LONG).unwrap(), message(0).answer());
    kernel.send(0, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(0), "its other channel goes on");
    AT_WORK.release();
    assert_eq!(kernel.channel(1).unwrap().recv(LONG), Ok(1));
    runtime.quiesce(LONG, || ()).unwrap();
    kernel.send(0, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(0));
    kernel.terminate(LONG).unwrap();
    other.terminate(LONG).unwrap();
}

#[test]
fn kernels_with_ports_are_named() {
    let runtime: Runtime = cpu();
    let mut graph = GraphBuilder::new();
    let config = LaunchConfig::default().kernels(of_examples::<Pass>());
    let pass = graph.kernel::<Pass>(config);
    graph.feed(pass).read(pass, Pass::ON);
    let mut graph = runtime.launch_graph(&graph).unwrap();
    let linked = runtime.quiesce(LONG, || ()).unwrap_err();
    assert_eq!(linked, QuiesceError::Linked { kernel: "pass" });
    assert!(linked.to_string().contains("pass has ports"), "{linked}");
    graph.terminate(LONG).unwrap();
    runtime.quiesce(LONG, || ()).unwrap();
}
