//! A channel's halves as `Sink` and `Stream` under tokio: exactly once and in order, without blocking the
//! executor, until the kernel is terminated or lost.

use futures_util::{SinkExt, StreamExt};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    DeviceFault, Kernel, KernelHandle, LaunchConfig, Memory, Mode, RequestSink, ResponseStream,
    Runtime, TrySendError,
};
use ring_tests::{LONG, Slow, Unlucky, WAYS, cpu, on_each_device};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

fn active<K: Kernel>(runtime: &Runtime, launch: LaunchConfig) -> KernelHandle<K> {
    let mut kernel = runtime.launch::<K>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn channel<K: Kernel>(
    kernel: &mut KernelHandle<K>,
    channel: u32,
) -> (RequestSink<K>, ResponseStream<K>) {
    let (sender, receiver) = kernel.take_channel(channel).unwrap().into_split();
    (sender.into_sink(), receiver.into_stream())
}

fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

fn message(i: u64) -> EchoMessage {
    EchoMessage::from_seed(i)
}

async fn send(requests: &mut RequestSink<Echo>, of: std::ops::Range<u64>) {
    for i in of {
        timeout(LONG, requests.send(message(i))).await.expect("in time").unwrap();
    }
}

async fn receive(responses: &mut ResponseStream<Echo>, of: std::ops::Range<u64>) {
    for i in of {
        let answer = timeout(LONG, responses.next()).await.expect("in time");
        assert_eq!(answer.expect("not terminated").unwrap(), message(i).answer(), "message {i}");
    }
}

/// Both halves in tasks of their own, which a runtime of several threads moves about.
#[test]
fn in_order_and_exactly_once_across_threads() {
    const COUNT: u64 = 100_000;
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let executor = executor.unwrap();
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(256));
        let (mut requests, mut responses) = channel(&mut kernel, 0);
        let sending = executor.spawn(async move { send(&mut requests, 0..COUNT).await });
        let receiving = executor.spawn(async move {
            receive(&mut responses, 0..COUNT).await;
            responses
        });
        let mut responses = executor.block_on(async {
            sending.await.unwrap();
            receiving.await.unwrap()
        });
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!((summary.processed, summary.unhandled), (COUNT, 0));
        assert!(executor.block_on(responses.next()).is_none());
    });
}

#[test]
fn in_every_mode_and_memory() {
    on_each_device(|runtime| {
        for (mode, memory) in WAYS {
            let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(64);
            let mut kernel = active(runtime, launch);
            let (mut requests, mut responses) = channel(&mut kernel, 0);
            one_thread().block_on(async {
                tokio::join!(send(&mut requests, 0..3000), receive(&mut responses, 0..3000));
                for i in 3000..3010 {
                    // Long enough to leave the device, if that is its mode.
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    send(&mut requests, i..i + 1).await;
                    receive(&mut responses, i..i + 1).await;
                }
            });
            kernel.terminate(LONG).unwrap();
        }
    });
}

/// To the end of the executor's queue. (tokio's `yield_now` waits until that is empty.)
async fn others_turn() {
    let mut had = false;
    let turn = std::future::poll_fn(|context| {
        if std::mem::replace(&mut had, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    });
    turn.await;
}

/// The tasks of two channels and one that counts its turns, on one thread, while the channels are busy and
/// while they wait.
#[test]
fn other_tasks_run_all_the_while() {
    const COUNT: u64 = 20_000;
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().channels(2).capacity(128));
        let channels = [0, 1].map(|i| channel(&mut kernel, i));
        let ticks = Arc::new(AtomicU64::new(0));
        let ticking = Arc::clone(&ticks);
        one_thread().block_on(async {
            let ticking = tokio::spawn(async move {
                loop {
                    ticking.fetch_add(1, Relaxed);
                    others_turn().await;
                }
            });
            let tasks = channels.map(|(mut requests, mut responses)| {
                let sending = tokio::spawn(async move { send(&mut requests, 0..COUNT).await });
                let receiving = tokio::spawn(async move {
                    receive(&mut responses, 0..COUNT).await;
                    responses
                });
                (sending, receiving)
            });
            let mut waiting = Vec::new();
            for (sending, receiving) in tasks {
                sending.await.unwrap();
                waiting.push(receiving.await.unwrap());
            }
            // Each half lets others run after 256 messages at the latest; twice that is tolerated.
            let busy = ticks.load(Relaxed);
            assert!(busy >= COUNT / 512, "{busy} turns while the channels were busy");
            // Nobody sends: the streams wait, and nobody is blocked.
            let [first, second] = &mut waiting[..] else { unreachable!() };
            let both = async { tokio::join!(first.next(), second.next()) };
            let nothing = timeout(Duration::from_millis(20), both).await;
            assert!(nothing.is_err(), "{nothing:?}");
            assert!(ticks.load(Relaxed) > busy, "no turn while the channels waited");
            ticking.abort();
        });
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn termination_ends_a_stream_that_waits_after_all_answers() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default());
        let (mut requests, mut responses) = channel(&mut kernel, 0);
        one_thread().block_on(async {
            send(&mut requests, 0..10).await;
            receive(&mut responses, 0..5).await;
        });
        let waiting = std::thread::spawn(move || {
            one_thread().block_on(async {
                receive(&mut responses, 5..10).await;
                let end = timeout(LONG, responses.next()).await.expect("in time");
                assert!(end.is_none(), "{end:?}");
                assert!(responses.next().await.is_none(), "it stays so");
            });
        });
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(kernel.terminate(LONG).unwrap().processed, 10);
        waiting.join().unwrap();
        let refused = one_thread().block_on(requests.send(message(0)));
        assert!(matches!(refused, Err(TrySendError::Closed { .. })), "{refused:?}");
    });
}

#[test]
fn a_panic_of_the_handler_ends_a_stream_that_waits_with_the_fault() {
    for (mode, memory) in [WAYS[0], (Mode::EventDriven, Memory::Mapped)] {
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let mut kernel = active::<Unlucky>(&cpu(), launch);
        let (mut requests, mut responses) = channel(&mut kernel, 0);
        one_thread().block_on(async {
            for request in 1..=3 {
                requests.send(request).await.unwrap();
                let answer = timeout(LONG, responses.next()).await.expect("in time");
                assert_eq!(answer, Some(Ok(request * request)));
            }
            let waiting = async {
                let mut items = Vec::new();
                while let Some(item) = responses.next().await {
                    items.push(item);
                }
                items
            };
            let sending = async {
                tokio::time::sleep(Duration::from_millis(5)).await; // the stream waits by then
                requests.send(13).await.unwrap();
            };
            let both = async { tokio::join!(waiting, sending) };
            let (items, ()) = timeout(LONG, both).await.expect("in time");
            let [Err(fault)] = &items[..] else { panic!("the fault, once: {items:?}") };
            assert!(matches!(fault, DeviceFault::HandlerPanicked { channel: 0, .. }), "{fault}");
            let refused = TrySendError::Fault { message: None, fault: fault.clone() };
            assert_eq!(requests.send(1).await, Err(refused));
        });
    }
}

/// A sink that waits for room learns of the fault too, although nobody receives.
#[test]
fn a_panic_of_the_handler_ends_a_sink_that_waits_with_the_fault() {
    let mut kernel = active::<Unlucky>(&cpu(), LaunchConfig::default().capacity(4));
    let (mut requests, _responses) = channel(&mut kernel, 0);
    let refused = one_thread().block_on(async {
        for request in [1, 2, 13].into_iter().chain([1; 16]) {
            if let Err(refused) = timeout(LONG, requests.send(request)).await.expect("in time") {
                return refused;
            }
        }
        panic!("two rings of four slots took 19 requests")
    });
    let TrySendError::Fault { fault, .. } = refused else { panic!("{refused}") };
    assert!(matches!(fault, DeviceFault::HandlerPanicked { .. }), "{fault}");
}

/// Futures that are dropped, halves that go over to blocking calls and back.
#[test]
fn what_is_dropped_midway_loses_nothing() {
    on_each_device(|runtime| {
        let mut kernel = active(runtime, LaunchConfig::default().capacity(8));
        let (mut requests, mut responses) = channel(&mut kernel, 0);
        let (mut sent, mut received, mut dropped) = (0, 0, 0);
        for round in 0..50 {
            one_thread().block_on(async {
                let limit = Duration::from_micros(50 * (round % 5));
                let until = sent + 40;
                let sending = async {
                    // More than there is room for: it is dropped while it waits.
                    while sent < until {
                        requests.send(message(sent)).await.unwrap();
                        sent += 1;
                    }
                };
                dropped += u32::from(timeout(limit, sending).await.is_err());
                while received + 2 < sent {
                    let Ok(answer) = timeout(limit, responses.next()).await else {
                        dropped += 1;
                        continue;
                    };
                    assert_eq!(answer.unwrap().unwrap(), message(received).answer());
                    received += 1;
                }
            });
            let (mut sender, mut receiver) = (requests.into_sender(), responses.into_receiver());
            while received < sent {
                assert_eq!(receiver.recv(LONG).unwrap(), message(received).answer());
                received += 1;
            }
            sender.send(message(sent), LONG).unwrap();
            sent += 1;
            (requests, responses) = (sender.into_sink(), receiver.into_stream());
        }
        assert!(dropped > 0, "nothing was dropped midway");
        one_thread().block_on(receive(&mut responses, received..sent));
        let summary = kernel.terminate(LONG).unwrap();
        assert_eq!((summary.processed, summary.unhandled), (sent, 0));
        assert!(one_thread().block_on(responses.next()).is_none(), "an answer nobody asked for");
    });
}

/// `forward`, `buffer` and the like rely on `feed`, `flush` and `close` as the trait says.
#[test]
fn combinators_of_the_traits() {
    let mut kernel = active::<Slow>(&cpu(), LaunchConfig::default().capacity(4));
    let (mut requests, responses) = channel(&mut kernel, 0);
    one_thread().block_on(async {
        let mut all = futures_util::stream::iter((0..20).map(Ok));
        let sending = async {
            requests.send_all(&mut all).await.unwrap();
            requests.feed(20).await.unwrap();
            requests.close().await.unwrap();
            requests.close().await.unwrap();
        };
        let receiving = responses.take(21).map(Result::unwrap).collect::<Vec<u64>>();
        let ((), answers) = tokio::join!(sending, receiving);
        assert_eq!(answers, (0..=20).collect::<Vec<u64>>());
    });
}
