//! Calls of handlers to the host: answered each by itself, in any order, by any thread; ended by deadlines and by the kernel's end.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{Asker, Question, Told};
use ring_host::{
    CallError, Error, HostCall, HostCallsError, KernelHandle, LaunchConfig, LaunchError, Memory,
    Mode, NextCallError, Obstacle, RecvTimeoutError, Runtime,
};
use ring_shared::calls::CALL_SLOTS;
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, WAYS, cpu, mixed, until};
use std::time::{Duration, Instant};

/// How long handlers wait that are to be answered.
const PATIENT: u32 = 100_000_000;

fn asker(runtime: &Runtime, channels: u32) -> KernelHandle<Asker> {
    let launch = LaunchConfig::default().channels(channels).capacity(1024);
    let mut kernel = runtime.launch::<Asker>(launch.kernels(of_examples::<Asker>())).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn question(number: u64) -> Question {
    Question { number, within: PATIENT, which: number.is_multiple_of(3).into() }
}

/// What is answered to it.
fn expected(question: Question) -> u64 {
    match question.which {
        0 => question.number.wrapping_mul(2),
        _ => u64::from(question.number.checked_ilog10().map_or(1, |log| log + 1)),
    }
}

fn answer(call: HostCall<Asker>) {
    let other = call.on(Asker::double, |number| number.wrapping_mul(2));
    let other = other.and_then(|call| {
        call.on(Asker::digits, |number| number.checked_ilog10().map_or(1, |log| log + 1))
    });
    assert!(other.is_none());
}

/// Many messages at once on several channels: each caller gets the answer to what it asked.
#[test]
fn each_caller_gets_its_own_answer() {
    on_each_device_alone(here!("each_caller_gets_its_own_answer"), |runtime| {
        let mut kernel = asker(runtime, 3);
        let server = kernel.host_calls().unwrap().serve(answer).unwrap();
        for round in 0..40u64 {
            for channel in 0..3 {
                let questions: Vec<_> =
                    (0..500).map(|i| question(mixed(round * 1500 + i) >> (i % 64))).collect();
                let channel = kernel.channel(channel).unwrap();
                let n = [500, 1, 3][round as usize % 3];
                assert_eq!(channel.try_send_batch(&questions[..n]), Ok(n));
                for question in &questions[..n] {
                    let told = channel.recv(LONG).unwrap();
                    assert_eq!((told.how, told.number), (Told::ANSWERED, expected(*question)));
                }
            }
        }
        assert!(!server.is_finished());
        kernel.terminate(LONG).unwrap();
        until("the server has ended", || server.is_finished().then_some(()));
        server.stop().unwrap();
    });
}

/// Calls that wait are taken out, and answered by another thread, last first.
#[test]
fn calls_are_answered_in_any_order_by_any_thread() {
    on_each_device_alone(here!("calls_are_answered_in_any_order_by_any_thread"), |runtime| {
        let mut kernel = asker(runtime, 1);
        let mut calls = kernel.host_calls().unwrap();
        let questions: Vec<_> = (0..100).map(|i| question(mixed(i))).collect();
        assert_eq!(kernel.try_send_batch(&questions), Ok(100));
        let (mut told, mut taken) = (0, Vec::new());
        while told < questions.len() {
            // What can be had at once; a channel of a CPU's thread calls once at a time.
            taken.push(calls.next(LONG).unwrap());
            let more = Instant::now();
            while more.elapsed() < Duration::from_millis(1) {
                taken.extend(calls.try_next());
            }
            let batch = std::mem::take(&mut taken);
            told += batch.len();
            std::thread::spawn(move || batch.into_iter().rev().for_each(answer)).join().unwrap();
        }
        for question in questions {
            let told = kernel.recv(LONG).unwrap();
            assert_eq!((told.how, told.number), (Told::ANSWERED, expected(question)));
        }
        assert!(calls.try_next().is_none());
        kernel.terminate(LONG).unwrap();
        let ended = calls.next(LONG);
        assert!(matches!(ended, Err(NextCallError::Ended { kernel: "asker" })), "{ended:?}");
    });
}

/// Where nobody takes calls, handlers wait as long as they said; more than there are slots; and then all goes on.
#[test]
fn calls_that_nobody_takes_end_at_their_deadlines() {
    on_each_device_alone(here!("calls_that_nobody_takes_end_at_their_deadlines"), |runtime| {
        let mut kernel = asker(runtime, 1);
        for i in 0..150 {
            kernel.send(Question { within: 50, ..question(i) }, LONG).unwrap();
            let told = kernel.recv(LONG).unwrap();
            assert_eq!((told.how, told.number), (Told::TIMEOUT, 0), "{i}");
            assert!(told.waited >= 50_000, "{told:?}");
        }
        // What was called is taken late, and its answers land nowhere.
        let server = kernel.host_calls().unwrap().serve(answer).unwrap();
        for i in 0..1000 {
            kernel.send(question(i), LONG).unwrap();
            let told = kernel.recv(LONG).unwrap();
            assert_eq!((told.how, told.number), (Told::ANSWERED, expected(question(i))), "{i}");
        }
        kernel.terminate(LONG).unwrap();
        drop(server);
    });
}

#[test]
fn a_call_that_is_dropped_is_refused() {
    on_each_device_alone(here!("a_call_that_is_dropped_is_refused"), |runtime| {
        let mut kernel = asker(runtime, 1);
        let mut calls = kernel.host_calls().unwrap();
        let taken = kernel.host_calls().map(drop);
        assert_eq!(taken, Err(HostCallsError::Taken { kernel: "asker" }));
        let none = calls.next(Duration::from_millis(1));
        assert!(matches!(none, Err(NextCallError::Timeout { .. })), "{none:?}");
        for wrongly in [false, true] {
            kernel.send(question(1), LONG).unwrap();
            let call = calls.next(LONG).unwrap();
            assert_eq!((call.channel(), call.request(Asker::double)), (0, Some(1)));
            assert_eq!(call.request(Asker::digits), None);
            match wrongly {
                false => drop(call),
                true => call.answer(Asker::digits, 7), // it has called the other one
            }
            assert_eq!(kernel.recv(LONG).unwrap().how, Told::REFUSED);
        }
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn a_panic_refuses_the_call_and_ends_the_server() {
    on_each_device_alone(here!("a_panic_refuses_the_call_and_ends_the_server"), |runtime| {
        let mut kernel = asker(runtime, 1);
        let server = kernel.host_calls().unwrap().serve(|call| {
            let number = call.request(Asker::double).unwrap();
            assert_ne!(number, 13, "as the test asks");
            answer(call);
        });
        let server = server.unwrap();
        for (number, how) in [(2, Told::ANSWERED), (13, Told::REFUSED)] {
            kernel.send(Question { which: 0, ..question(number) }, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap().how, how);
        }
        until("the server has ended", || server.is_finished().then_some(()));
        assert!(server.stop().is_err());
        kernel.terminate(LONG).unwrap();
    });
}

/// A kernel that waits for the host leaves at once when it is told to.
#[test]
fn termination_ends_calls() {
    on_each_device_alone(here!("termination_ends_calls"), |runtime| {
        let mut kernel = asker(runtime, 2);
        let mut calls = kernel.host_calls().unwrap();
        for channel in 0..2 {
            kernel.channel(channel).unwrap().send(question(1), LONG).unwrap();
        }
        let taken = [calls.next(LONG).unwrap(), calls.next(LONG).unwrap()];
        let begun = Instant::now();
        kernel.terminate(LONG).unwrap();
        assert!(begun.elapsed() < Duration::from_micros(PATIENT.into()) / 2);
        for channel in 0..2 {
            let told = kernel.channel(channel).unwrap().recv(LONG).unwrap();
            assert_eq!((told.how, told.number), (Told::STOPPED, 0));
        }
        drop(kernel);
        drop(taken); // their memory is still there
    });
}

/// Kernels are kept away and brought back while they call: the calls go on where they were.
#[test]
fn calls_go_on_behind_quiesce() {
    on_each_device_alone(here!("calls_go_on_behind_quiesce"), |runtime| {
        let mut kernel = asker(runtime, 2);
        let server = kernel.host_calls().unwrap().serve(answer).unwrap();
        for i in 0..100 {
            let questions = [0, 1, 2].map(|k| question(3 * i + k));
            let channel = kernel.channel(i as u32 % 2).unwrap();
            assert_eq!(channel.try_send_batch(&questions), Ok(3));
            if i % 2 == 0 {
                runtime.quiesce(LONG, || ()).unwrap();
            }
            let channel = kernel.channel(i as u32 % 2).unwrap();
            for question in questions {
                let told = channel.recv(LONG).unwrap();
                match told.how {
                    Told::ANSWERED => {
                        assert_eq!(told.number, expected(question), "{i}: {question:?}, {told:?}");
                    }
                    how => assert_eq!(how, Told::STOPPED),
                }
            }
        }
        kernel.terminate(LONG).unwrap();
        drop(server);
    });
}

/// It needs a kernel that stays, and memory that both see.
#[test]
fn other_ways_than_resident_in_mapped_memory_are_refused() {
    for (mode, memory) in WAYS {
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let launched = cpu().launch::<Asker>(launch.kernels(of_examples::<Asker>()));
        if (mode, memory) == (Mode::Persistent, Memory::Mapped) {
            launched.unwrap().terminate(LONG).unwrap();
            continue;
        }
        let error = Error::from(launched.unwrap_err());
        let told = error.to_string();
        assert!(told.contains("asker") && told.contains("call the host"), "{told}");
        let Error::Launch(LaunchError::Unfit { refused, .. }) = error else { panic!("{error}") };
        assert!(refused.iter().any(|refusal| refusal.why == Obstacle::CallsHost), "{told}");
    }
}

ring_device::ring_kernel! {
    /// Asks the host with a warp, and keeps what it says. For the CPU device only.
    struct ByWarp { name: "asks by warp", calls: { fn next(u32) -> u128; }, }

    fn handle(ctx: &WarpContext, n: &u32, response: &Output<[u32; 4]>) {
        if ctx.thread() == 0 {
            let answer = ctx.call(ByWarp::next, *n, Duration::from_secs(100)).unwrap_or(0);
            for (k, word) in bytemuck::cast::<u128, [u32; 4]>(answer).into_iter().enumerate() {
                response.set(4 * k, 0, word);
            }
        }
    }
}

ring_device::ring_kernel! {
    /// Asks for what another kernel asks for, and with a state. For the CPU device only.
    struct Foreign { name: "asks for others", calls: { fn other([u64; 9]) -> u32; }, }

    fn handle(ctx: &ThreadContext, refused: &mut u64, number: &u64) -> u64 {
        let foreign = ctx.call(Asker::double, *number, Duration::from_secs(100));
        *refused += u64::from(foreign == Err(ring_host::HostCallError::Refused));
        let own = ctx.call(Foreign::other, [*number; 9], Duration::from_secs(100));
        *refused * 1000 + u64::from(own.unwrap_or(0))
    }
}

ring_device::ring_kernel! {
    /// Calls nobody, but tries. For the CPU device only.
    struct Without { name: "calls nobody", }

    fn handle(ctx: &ThreadContext, number: &u64) -> u32 {
        let refused = Err(ring_host::HostCallError::Refused);
        u32::from(ctx.call(Asker::double, *number, Duration::from_secs(100)) == refused)
    }
}

#[test]
fn handlers_of_other_scopes_call_and_no_kernel_calls_for_another() {
    let runtime = cpu();
    let mut by_warp = runtime.launch::<ByWarp>(LaunchConfig::default()).unwrap();
    let server = by_warp.host_calls().unwrap();
    let server = server.serve(|call| {
        call.on(ByWarp::next, |n| u128::from(n) << 100 | 7);
    });
    by_warp.activate(LONG).unwrap();
    by_warp.send(9, LONG).unwrap();
    assert_eq!(by_warp.recv(LONG), Ok([7, 0, 0, 9 << 4]));
    by_warp.terminate(LONG).unwrap();
    drop(server);

    let mut foreign = runtime.launch::<Foreign>(LaunchConfig::default()).unwrap();
    let server = foreign.host_calls().unwrap();
    let server = server.serve(|call| {
        call.on(Foreign::other, |numbers| numbers.iter().sum::<u64>() as u32);
    });
    foreign.activate(LONG).unwrap();
    foreign.send(5, LONG).unwrap();
    assert_eq!(foreign.recv(LONG), Ok(1045));
    foreign.terminate(LONG).unwrap();
    drop(server);

    let mut without = runtime.launch::<Without>(LaunchConfig::default()).unwrap();
    without.activate(LONG).unwrap();
    without.send(5, LONG).unwrap();
    assert_eq!(without.recv(LONG), Ok(1));
    without.terminate(LONG).unwrap();
}

ring_device::ring_kernel! {
    /// Handles one message after the other, and asks the host about those that are not 0. For the CPU device only.
    struct Nested { name: "nested", calls: { fn more(u64) -> u64; }, }

    fn handle(ctx: &ThreadContext, handled: &mut u64, number: &u64) -> u64 {
        *handled += 1;
        match number {
            0 => *handled,
            _ => ctx.call(Nested::more, *number, Duration::from_secs(100)).unwrap_or(u64::MAX),
        }
    }
}

/// What answers a call waits for the handler that waits for it: one of the two deadlines ends it, and all goes on.
#[test]
fn an_answer_that_waits_for_the_same_kernel_ends_at_its_deadline() {
    let mut kernel = cpu().launch::<Nested>(LaunchConfig::default()).unwrap();
    kernel.activate(LONG).unwrap();
    let (calls, client) = (kernel.host_calls().unwrap(), kernel.client().unwrap());
    let within = client.clone();
    let server = calls.serve(move |call| {
        let late = within.call(0, Duration::from_millis(20)).unwrap_err();
        assert!(matches!(late, CallError::NotAnswered(RecvTimeoutError::Timeout { .. })), "{late}");
        assert!(late.to_string().contains("nested"), "{late}");
        call.on(Nested::more, |number| number + 1);
    });
    assert_eq!(client.call(5, LONG), Ok(6));
    // What was asked in between is handled behind it, and nobody waits for its answer.
    assert_eq!(client.call(0, LONG), Ok(3));
    kernel.terminate(LONG).unwrap();
    server.unwrap().stop().unwrap();
}

/// Calls by an executor: each is answered, and the stream ends when the kernel has gone.
#[test]
fn a_stream_of_calls_ends_with_the_kernel() {
    use futures_util::StreamExt;
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut kernel = asker(&cpu(), 2);
    let mut calls = kernel.host_calls().unwrap().into_stream();
    executor.block_on(async {
        for i in 0..100 {
            let channel = kernel.channel(i % 2).unwrap();
            channel.send(question(i.into()), LONG).unwrap();
            answer(calls.next().await.unwrap().unwrap());
            let told = channel.recv(LONG).unwrap();
            assert_eq!((told.how, told.number), (Told::ANSWERED, expected(question(i.into()))));
        }
        // Long enough for either watch to look for it.
        let nothing = tokio::time::timeout(Duration::from_millis(20), calls.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        kernel.terminate(LONG).unwrap();
        assert!(calls.next().await.is_none());
    });
}

/// A slot is not used again while one of its callers has no answer, though it has long given up: the last call before that waits for room.
#[test]
fn a_call_waits_for_the_slot_of_one_that_is_not_answered() {
    on_each_device_alone(
        here!("a_call_waits_for_the_slot_of_one_that_is_not_answered"),
        |runtime| {
            let mut kernel = asker(runtime, 1);
            let mut calls = kernel.host_calls().unwrap();
            kernel.send(Question { within: 50, ..question(1) }, LONG).unwrap();
            let held = calls.next(LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap().how, Told::TIMEOUT);
            for i in 1..u64::from(CALL_SLOTS) {
                kernel.send(question(i), LONG).unwrap();
                answer(calls.next(LONG).unwrap());
                let told = kernel.recv(LONG).unwrap();
                assert_eq!((told.how, told.number), (Told::ANSWERED, expected(question(i))));
            }
            kernel.send(Question { within: 50, ..question(2) }, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap().how, Told::TIMEOUT);
            assert!(calls.try_next().is_none(), "it has no slot");
            answer(held);
            kernel.send(question(3), LONG).unwrap();
            answer(calls.next(LONG).unwrap());
            assert_eq!(kernel.recv(LONG).unwrap().number, expected(question(3)));
            kernel.terminate(LONG).unwrap();
        },
    );
}
