//! Calls of a kernel from many threads: each gets its own answer, and nobody waits for what nobody does.

use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    CallError, ChannelError, Client, ClientConfig, DeviceFault, KernelHandle, LaunchConfig, Mode,
    RecvTimeoutError, SendTimeoutError, SubmitError, Ticket,
};
use ring_tests::{LONG, Slow, Unlucky, WAYS, active, cpu, mixed, on_each_device};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;
use std::time::Duration;
use tokio::time::timeout;

const SHORT: Duration = Duration::from_millis(30);

fn message(i: u64) -> EchoMessage {
    EchoMessage::from_seed(i)
}

fn tickets(most: u32) -> ClientConfig {
    ClientConfig::default().tickets(NonZeroU32::new(most).unwrap())
}

/// So many threads call so often each, now and then by ticket and by key.
fn call_from(client: &Client<Echo>, threads: u64, calls: u64) {
    scope(|scope| {
        for thread in 0..threads {
            let client = client.clone();
            scope.spawn(move || {
                for call in 0..calls {
                    let request = message(thread << 32 | call);
                    // As what woke the thread too late for an earlier wait: the next parking returns at once.
                    if call % 5 == 0 {
                        std::thread::current().unpark();
                    }
                    let answer = match mixed(thread + call) % 3 {
                        0 => client.call_by_key(&thread, request, LONG).unwrap(),
                        1 => client.submit(request, LONG).unwrap().wait(LONG).unwrap(),
                        _ => client.call(request, LONG).unwrap(),
                    };
                    assert_eq!(answer, request.answer(), "call {call} of thread {thread}");
                }
            });
        }
    });
}

#[test]
fn each_thread_gets_its_own_answers() {
    on_each_device(|runtime| {
        for (mode, memory) in WAYS {
            for channels in [1, 3] {
                let launch = LaunchConfig::default().mode(mode).memory(memory);
                let mut kernel = active(runtime, launch.channels(channels).capacity(16));
                let client = kernel.client_with(tickets(8)).unwrap();
                assert_eq!(client.channels() as u32, channels);
                call_from(&client, 5, 40);
                let summary = kernel.terminate(LONG).unwrap();
                assert_eq!((summary.processed, summary.unhandled), (200, 0), "{mode}, {memory}");
            }
        }
    });
}

/// A thread stays with one channel, a key with its own, and by turns every call goes to the next one.
#[test]
fn calls_are_spread_as_was_chosen() {
    fn counts(config: ClientConfig, call: impl Fn(&Client<Echo>, u64)) -> [u64; 3] {
        let mut kernel = active(&cpu(), LaunchConfig::default().channels(3));
        let client = kernel.client_with(config).unwrap();
        (0..30).for_each(|i| call(&client, i));
        kernel.terminate(LONG).unwrap();
        let mut counts = [0, 1, 2].map(|i| kernel.channel_telemetry(i).unwrap().processed);
        counts.sort_unstable();
        counts
    }
    let call = |client: &Client<Echo>, i| {
        assert_eq!(client.call(message(i), LONG).unwrap(), message(i).answer());
    };
    let by_key = |client: &Client<Echo>, i| {
        let answer = client.call_by_key(&"a key", message(i), LONG).unwrap();
        assert_eq!(answer, message(i).answer());
    };
    let by_threads = |client: &Client<Echo>, i| {
        if i % 10 == 0 {
            scope(|scope| {
                scope.spawn(|| (i..i + 10).for_each(|i| call(client, i)));
            });
        }
    };
    assert_eq!(counts(ClientConfig::default(), call), [0, 0, 30]);
    assert_eq!(counts(ClientConfig::default().by_turns(), call), [10, 10, 10]);
    assert_eq!(counts(ClientConfig::default().by_turns(), by_key), [0, 0, 30]);
    // Which channel a thread has depends on the threads of other tests.
    let of_threads = counts(ClientConfig::default(), by_threads);
    assert!(of_threads.iter().all(|count| count % 10 == 0), "{of_threads:?}");
}

/// More threads than tickets, and fewer slots than both: callers wait for room, which others' answers make.
#[test]
fn callers_wait_for_tickets_and_for_room() {
    on_each_device(|runtime| {
        for (capacity, most) in [(1, 4), (4, 1), (2, 16)] {
            let mut kernel = active(runtime, LaunchConfig::default().capacity(capacity));
            let client = kernel.client_with(tickets(most)).unwrap();
            call_from(&client, 8, 250);
            assert_eq!(kernel.terminate(LONG).unwrap().processed, 2000);
        }
    });
}

#[test]
fn answers_wait_for_their_tickets_in_any_order() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(64));
        let client = kernel.client_with(tickets(32)).unwrap();
        for round in 0..50 {
            let mut held: Vec<(u64, Option<Ticket<Echo>>)> = (0..32)
                .map(|i| {
                    (round * 32 + i, Some(client.submit(message(round * 32 + i), LONG).unwrap()))
                })
                .collect();
            for turn in 0..32u64 {
                let (seed, ticket) = &mut held[((turn * 13 + round) % 32) as usize];
                let mut ticket = ticket.take().unwrap();
                match (*seed + turn) % 4 {
                    0 => drop(ticket),
                    1 => {
                        let answer = loop {
                            match ticket.try_take().unwrap() {
                                Ok(answer) => break answer,
                                Err(again) => ticket = again,
                            }
                            std::thread::yield_now();
                        };
                        assert_eq!(answer, message(*seed).answer());
                    }
                    _ => assert_eq!(ticket.wait(LONG).unwrap(), message(*seed).answer()),
                }
            }
        }
        // None of the tickets that were dropped is lost.
        let held: Vec<Ticket<Echo>> =
            (0..32).map(|i| client.submit(message(i), LONG).unwrap()).collect();
        drop(held);
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!(summary.processed + summary.unhandled, 51 * 32);
    });
}

#[test]
fn more_tickets_than_there_are_say_how_many() {
    let mut kernel = active(&cpu(), LaunchConfig::default());
    let client = kernel.client_with(tickets(2)).unwrap();
    let mut held = [0, 1].map(|i| Some(client.submit(message(i), LONG).unwrap()));
    let error = client.submit(message(2), Duration::ZERO).unwrap_err();
    for part in ["echo", "channel 0", "2 tickets", "ClientConfig::tickets"] {
        assert!(error.to_string().contains(part), "{part} is not in: {error}");
    }
    assert_eq!(error.into_inner(), message(2));
    let error = client.call(message(3), SHORT).unwrap_err();
    assert!(matches!(error, CallError::NotSent(SubmitError::NoTicket { tickets: 2, .. })));
    assert_eq!(error.into_inner(), Some(message(3)));
    // An answer that is there and not taken holds its ticket; one that is given up does not.
    held[0] = None;
    assert_eq!(client.call(message(4), LONG).unwrap(), message(4).answer());
    assert_eq!(held[1].take().unwrap().wait(LONG).unwrap(), message(1).answer());
    kernel.terminate(LONG).unwrap();
}

/// The answer of a call whose deadline has passed comes later, and is nobody's.
#[test]
fn a_late_answer_goes_to_nobody_else() {
    let host = cpu();
    let mut kernel = host.launch::<Slow>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    let client = kernel.client_with(tickets(4)).unwrap();
    let mut late = 0;
    for i in 0..60 {
        let request = i;
        let deadline = if i % 2 == 0 { Duration::from_micros(50) } else { LONG };
        match client.call(request, deadline) {
            Ok(answer) => assert_eq!(answer, request),
            Err(CallError::NotAnswered(RecvTimeoutError::Timeout { kernel: "slow", .. })) => {
                late += 1
            }
            Err(CallError::NotSent(SubmitError::NoTicket { .. })) => late += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(late > 0, "nothing was late");
    // A ticket may be waited for again.
    let unanswered = client.submit(7, LONG).unwrap().wait(Duration::ZERO);
    let answer = match unanswered {
        Ok(answer) => answer,
        Err(unanswered) => {
            assert!(matches!(unanswered.error(), RecvTimeoutError::Timeout { .. }));
            unanswered.into_ticket().wait(LONG).unwrap()
        }
    };
    assert_eq!(answer, 7);
    kernel.terminate(LONG).unwrap();
}

#[test]
fn a_kernel_that_is_not_active_refuses_or_is_waited_for() {
    on_each_device(|runtime| {
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default().channels(2)).unwrap();
        let own = kernel.take_channel(0).unwrap();
        let client = kernel.client().unwrap();
        assert_eq!(client.channels(), 1);
        let error = client.call(message(0), LONG).unwrap_err();
        let not_active = |error: &SubmitError<EchoMessage>| {
            matches!(
                error,
                SubmitError::NotSent(SendTimeoutError::NotActive { kernel: "echo", .. })
            )
        };
        assert!(matches!(&error, CallError::NotSent(error) if not_active(error)), "{error}");
        assert!(error.to_string().contains("call activate first"), "{error}");
        drop((own, client));
        assert!(matches!(kernel.client(), Err(ChannelError::Taken(0))));
        kernel.terminate(LONG).unwrap();

        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();
        let client = kernel.client_with(ClientConfig::default().wait_for_activation()).unwrap();
        let error = client.submit(message(0), SHORT).unwrap_err();
        assert!(not_active(&error), "{error}");
        let answered = AtomicBool::new(false);
        scope(|scope| {
            let calling = scope.spawn(|| {
                let answer = client.call(message(1), LONG).unwrap();
                answered.store(true, Ordering::Relaxed);
                answer
            });
            std::thread::sleep(SHORT);
            assert!(!answered.load(Ordering::Relaxed), "answered by a kernel that is not active");
            kernel.activate(LONG).unwrap();
            assert_eq!(calling.join().unwrap(), message(1).answer());
        });
        kernel.terminate(LONG).unwrap();
    });
}

/// All who wait learn of the end, whoever receives; so does a client that outlives its kernel.
#[test]
fn everybody_learns_of_the_end() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default());
        let client = kernel.client().unwrap();
        call_from(&client, 2, 10);
        kernel.deactivate(LONG).unwrap();
        drop(kernel);
        let closed = |error: &CallError<EchoMessage>| {
            matches!(
                error,
                CallError::NotSent(SubmitError::NotSent(SendTimeoutError::Closed { .. }))
            )
        };
        for _ in 0..2 {
            let error = client.call(message(0), LONG).unwrap_err();
            assert!(closed(&error), "{error}");
        }

        // Also where every ticket is held.
        let mut kernel = active(runtime, LaunchConfig::default());
        let client = kernel.client_with(tickets(1)).unwrap();
        let held = client.submit(message(1), LONG).unwrap();
        kernel.terminate(LONG).unwrap();
        let error = client.call(message(0), LONG).unwrap_err();
        assert!(closed(&error), "{error}");
        match held.wait(LONG) {
            Ok(answer) => assert_eq!(answer, message(1).answer()),
            Err(unanswered) => {
                assert!(matches!(unanswered.error(), RecvTimeoutError::Closed { kernel: "echo" }));
            }
        }
    });
}

#[test]
fn everybody_learns_of_a_fault() {
    let host = cpu();
    let mut kernel: KernelHandle<Unlucky> = host.launch(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    let client = kernel.client().unwrap();
    let is_panic = |error: &RecvTimeoutError| {
        matches!(error, RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { .. }))
    };
    let held = client.submit(5, LONG).unwrap();
    scope(|scope| {
        for thread in 0..6 {
            let client = client.clone();
            scope.spawn(move || {
                // The unlucky request, and others before and behind it.
                for request in [3 + thread, 13, 20 + thread] {
                    match client.call(request, LONG) {
                        Ok(answer) => assert_eq!(answer, request * request),
                        Err(CallError::NotAnswered(error)) => assert!(is_panic(&error), "{error}"),
                        Err(CallError::NotSent(SubmitError::NotSent(error))) => {
                            assert!(matches!(error, SendTimeoutError::Fault { .. }), "{error}");
                        }
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(held.wait(LONG).unwrap(), 25);
    drop(kernel);
}

fn executor() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap()
}

/// Many tasks on two threads, and two threads that block, with fewer tickets than there are calls under way.
#[test]
fn each_task_gets_its_own_answers() {
    let executor = executor();
    on_each_device(|runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).channels(2).capacity(16);
            let mut kernel = active(runtime, launch);
            let client = kernel.client_with(tickets(4)).unwrap();
            let tasks: Vec<_> = (0..10)
                .map(|task| {
                    let client = client.clone();
                    executor.spawn(async move {
                        for call in 0..20 {
                            let request = message(task << 32 | call);
                            let answer = match call % 3 {
                                0 => client.call_async_by_key(&task, request).await.unwrap(),
                                1 => match client.submit(request, Duration::ZERO) {
                                    Ok(ticket) => ticket.await.unwrap(),
                                    Err(error) => {
                                        client.call_async(error.into_inner()).await.unwrap()
                                    }
                                },
                                _ => client.call_async(request).await.unwrap(),
                            };
                            assert_eq!(answer, request.answer(), "call {call} of task {task}");
                        }
                    })
                })
                .collect();
            call_from(&client, 2, 20);
            executor.block_on(async {
                for task in tasks {
                    timeout(LONG, task).await.expect("in time").unwrap();
                }
            });
            let summary = kernel.terminate(LONG).unwrap();
            assert_eq!((summary.processed, summary.unhandled), (240, 0), "{mode}, {memory}");
        }
    });
}

/// Futures that are dropped at any point give up their answers, and their tickets are free again.
#[test]
fn a_call_that_is_dropped_leaves_its_ticket() {
    let executor = executor();
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(8));
        let client = kernel.client_with(tickets(4)).unwrap();
        executor.block_on(async {
            let mut dropped = 0;
            for round in 0..200u64 {
                let limit = Duration::from_micros(round % 7 * 10);
                let request = message(round);
                match timeout(limit, client.call_async(request)).await {
                    Ok(answer) => assert_eq!(answer.unwrap(), request.answer()),
                    Err(_) => dropped += 1,
                }
                drop(client.call_async(request)); // never polled, never sent
                let kept = client.call_async(message(round + 1000));
                let kept = timeout(LONG, kept).await.expect("in time").unwrap();
                assert_eq!(kept, message(round + 1000).answer());
            }
            println!("{dropped} of 200 calls were dropped");
        });
        let held: Vec<_> = (0..4).map(|i| client.submit(message(i), LONG).unwrap()).collect();
        assert_eq!(held.len(), 4);
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn tasks_learn_of_what_ends_their_calls() {
    let executor = executor();
    on_each_device(|runtime| {
        let mut kernel = runtime.launch::<Echo>(LaunchConfig::default()).unwrap();
        let waits = kernel.client_with(ClientConfig::default().wait_for_activation()).unwrap();
        let call = executor.spawn(waits.call_async(message(0)));
        std::thread::sleep(SHORT);
        assert!(!call.is_finished(), "answered by a kernel that is not active");
        kernel.activate(LONG).unwrap();
        let answer = executor.block_on(async { timeout(LONG, call).await.unwrap() });
        assert_eq!(answer.unwrap().unwrap(), message(0).answer());
        kernel.deactivate(LONG).unwrap();
        let call = executor.spawn(waits.call_async(message(1)));
        std::thread::sleep(SHORT);
        kernel.terminate(LONG).unwrap();
        let error = executor.block_on(async { timeout(LONG, call).await.unwrap() }).unwrap();
        let error = error.unwrap_err();
        assert!(matches!(
            error,
            CallError::NotSent(SubmitError::NotSent(SendTimeoutError::Closed { .. }))
        ));
        assert_eq!(error.into_inner(), Some(message(1)));
    });
    for mode in [Mode::Persistent, Mode::EventDriven] {
        let host = cpu();
        let mut kernel: KernelHandle<Unlucky> =
            host.launch(LaunchConfig::default().mode(mode)).unwrap();
        kernel.activate(LONG).unwrap();
        let client = kernel.client().unwrap();
        let error =
            executor.block_on(async { timeout(LONG, client.call_async(13)).await.unwrap() });
        assert!(
            matches!(
                error,
                Err(CallError::NotAnswered(RecvTimeoutError::Fault(
                    DeviceFault::HandlerPanicked { .. }
                )))
            ),
            "{error:?}"
        );
    }
}
