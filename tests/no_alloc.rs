//! No heap on the way of a message, in any mode and memory: every allocation of the process is
//! counted, on all its threads, the CPU device's included, while messages go there and back, and
//! while kernels leave the device and are launched again.

use futures_util::{SinkExt, StreamExt};
use ring_example_kernels::{Asker, Item, Pass, Question};
use ring_host::kernels::{Echo, EchoMessage, VectorAdd};
use ring_host::{
    GraphBuilder, LaunchConfig, Memory, Mode, RequestSink, ResponseStream, Route, Runtime, Select,
};
use ring_tests::{LONG, WAYS, kernels, on_each_device};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::time::timeout;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: the system's allocator, which only is counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const MESSAGES: u64 = 100_000;

fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.load(Relaxed);
    work();
    ALLOCATIONS.load(Relaxed) - before
}

fn run(runtime: &Runtime, (mode, memory): (Mode, Memory)) {
    let launch = LaunchConfig::default().mode(mode).memory(memory);
    let mut kernel = runtime.launch::<Echo>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let mut answers = [EchoMessage::from_seed(0); 64];
    let singly = allocations(|| {
        for i in 0..MESSAGES {
            let request = EchoMessage::from_seed(i);
            kernel.send(request, LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), request.answer());
        }
    });
    let in_batches = allocations(|| {
        let (mut sent, mut received) = (0, 0);
        while received < MESSAGES {
            let batch: [EchoMessage; 64] =
                std::array::from_fn(|k| EchoMessage::from_seed(sent + k as u64));
            let n = (MESSAGES - sent).min(64) as usize;
            sent += kernel.try_send_batch(&batch[..n]).unwrap() as u64;
            let n = kernel.try_recv_batch(&mut answers).unwrap();
            for answer in &answers[..n] {
                assert_eq!(*answer, EchoMessage::from_seed(received).answer());
                received += 1;
            }
        }
    });
    let from_rest = allocations(|| {
        for i in 0..100 {
            if mode != Mode::Persistent {
                kernel.rest(LONG).unwrap();
            }
            kernel.send(EchoMessage::from_seed(i), LONG).unwrap();
            assert_eq!(kernel.recv(LONG).unwrap(), EchoMessage::from_seed(i).answer());
            kernel.telemetry();
        }
    });
    let (device, launches) = (&runtime.device().name, kernel.launches());
    println!(
        "{device}, {mode} in {memory}: {singly} allocations in {MESSAGES} singly, {in_batches} in \
         batches, {from_rest} in 100 from rest, {launches} launches"
    );
    assert_eq!((singly, in_batches, from_rest), (0, 0, 0), "on {device}, {mode} in {memory}");
}

/// Vectors that are added through the payload arena, wherever it lies.
fn run_payload(runtime: &Runtime, (mode, memory): (Mode, Memory)) {
    let launch = LaunchConfig::default().mode(mode).memory(memory);
    let mut kernel = runtime.launch::<VectorAdd>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let (a, mut sum) = ([0.5f32; 100], [0f32; 100]);
    let counted = allocations(|| {
        for i in 0..1000 {
            let b = [i as f32; 100];
            kernel.add(&a, &b, &mut sum, LONG).unwrap();
            assert_eq!(sum, [i as f32 + 0.5; 100]);
        }
    });
    let (device, lies) = (&runtime.device().name, kernel.payload_memory());
    println!("{device}, {mode} in {memory}: {counted} allocations in 1000 sums by {lies} payload");
    assert_eq!(counted, 0, "payload on {device}, {mode} in {memory}");
}

/// Two tasks of one thread: `of` messages through a sink and a stream, then waits for none.
async fn exchange(
    requests: &mut RequestSink<Echo>,
    responses: &mut ResponseStream<Echo>,
    of: std::ops::Range<u64>,
) {
    let sending = async {
        for i in of.clone() {
            requests.send(EchoMessage::from_seed(i)).await.unwrap();
        }
    };
    let receiving = async {
        for i in of.clone() {
            let answer = timeout(LONG, responses.next()).await.expect("in time").unwrap();
            assert_eq!(answer.unwrap(), EchoMessage::from_seed(i).answer());
        }
    };
    tokio::join!(sending, receiving);
    for _ in 0..3 {
        // Long enough for either watch to wake it, again and again.
        let nothing = timeout(Duration::from_millis(5), responses.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    }
}

fn run_asynchronously(runtime: &Runtime, (mode, memory): (Mode, Memory)) {
    let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(256);
    let mut kernel = runtime.launch::<Echo>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let (sender, receiver) = kernel.take_channel(0).unwrap().into_split();
    let (mut requests, mut responses) = (sender.into_sink(), receiver.into_stream());
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    // The executor's and the watch's first use is not counted.
    executor.block_on(exchange(&mut requests, &mut responses, 0..100));
    let counted = allocations(|| {
        executor.block_on(exchange(&mut requests, &mut responses, 100..MESSAGES));
    });
    let device = &runtime.device().name;
    println!("{device}, {mode} in {memory}: {counted} allocations in {MESSAGES} asynchronously");
    assert_eq!(counted, 0, "asynchronously on {device}, {mode} in {memory}");
}

/// Calls of two threads, one by one and by tickets.
fn run_calls(runtime: &Runtime, (mode, memory): (Mode, Memory)) {
    let launch = LaunchConfig::default().mode(mode).memory(memory);
    let mut kernel = runtime.launch::<Echo>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let client = kernel.client().unwrap();
    let line = Barrier::new(3);
    let counted = std::thread::scope(|scope| {
        for thread in 0..2 {
            let (client, line) = (client.clone(), &line);
            scope.spawn(move || {
                // A thread's own handle is allocated when it is first asked for.
                drop(std::thread::current());
                line.wait();
                for i in 0..MESSAGES / 20 {
                    let requests =
                        [0, 1, 2].map(|k| EchoMessage::from_seed(thread << 32 | i << 2 | k));
                    let tickets = requests.map(|request| client.submit(request, LONG).unwrap());
                    for (request, ticket) in requests.iter().zip(tickets) {
                        assert_eq!(ticket.wait(LONG).unwrap(), request.answer());
                    }
                    assert_eq!(client.call(requests[0], LONG).unwrap(), requests[0].answer());
                }
                line.wait();
                line.wait();
            });
        }
        line.wait();
        let counted = allocations(|| {
            line.wait();
        });
        line.wait();
        counted
    });
    let device = &runtime.device().name;
    println!("{device}, {mode} in {memory}: {counted} allocations in calls of two threads");
    assert_eq!(counted, 0, "{mode} in {memory} on {device}");
    kernel.terminate(LONG).unwrap();
}

/// Calls of a task, and what two halves of a channel send and receive that several threads could have.
fn run_shared(runtime: &Runtime, (mode, memory): (Mode, Memory)) {
    let launch = LaunchConfig::default().mode(mode).memory(memory).channels(2);
    let mut kernel = runtime.launch::<Echo>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let (sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
    let (sender, mut select) = (sender.into_shared(), Select::new());
    let client = kernel.client().unwrap();
    // The watches that wake tasks are started when they are needed first.
    let call = |i| client.call_async(EchoMessage::from_seed(i));
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let counted = executor.block_on(async {
        let mut counted = 0;
        for round in 0..2 {
            let before = ALLOCATIONS.load(Relaxed);
            for i in 0..MESSAGES / 20 {
                let request = EchoMessage::from_seed(i);
                assert_eq!(call(i).await.unwrap(), request.answer());
                let ticket = client.submit(request, LONG).unwrap();
                assert_eq!(ticket.await.unwrap(), request.answer());
                sender.send(request, LONG).unwrap();
                assert_eq!(select.ready(&mut [&mut receiver], LONG), Some(0));
                assert_eq!(receiver.recv(LONG).unwrap(), request.answer());
            }
            if round == 1 {
                counted = ALLOCATIONS.load(Relaxed) - before;
            }
        }
        counted
    });
    let device = &runtime.device().name;
    println!(
        "{device}, {mode} in {memory}: {counted} allocations in calls of a task and shared halves"
    );
    assert_eq!(counted, 0, "{mode} in {memory} on {device}");
    kernel.terminate(LONG).unwrap();
}

/// Messages whose handler calls the host, which answers on a thread of its own.
fn run_host_calls(runtime: &Runtime) {
    let launch = LaunchConfig::default().kernels(kernels::of_examples::<Asker>());
    let mut kernel = runtime.launch::<Asker>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    let calls = kernel.host_calls().unwrap();
    let server = calls.serve(|call| {
        call.on(Asker::double, |number| 2 * number);
    });
    let mut exchange = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            let question = Question { number, within: 100_000_000, which: 0 };
            assert_eq!(kernel.try_send_batch(&[question; 8]), Ok(8));
            for _ in 0..8 {
                assert_eq!(kernel.recv(LONG).unwrap().number, 2 * number);
            }
        }
    };
    exchange(0..100); // the thread's beginning is not counted
    let counted = allocations(|| exchange(100..MESSAGES / 20));
    let device = &runtime.device().name;
    println!("{device}: {counted} allocations in calls to the host");
    assert_eq!(counted, 0, "calls to the host on {device}");
    kernel.terminate(LONG).unwrap();
    drop(server);
}

/// Messages that pass two kernels on their way, one by one and in batches.
fn run_graph(runtime: &Runtime) {
    let config = || LaunchConfig::default().kernels(kernels::of_examples::<Pass>());
    let mut graph = GraphBuilder::new();
    let (first, second) = (graph.kernel::<Pass>(config()), graph.kernel::<Pass>(config()));
    graph.feed(first).link(first, Pass::ON, second, Route::Pairwise);
    let last = graph.read(second, Pass::ON);
    let mut graph = runtime.launch_graph(&graph).unwrap();
    graph.activate(LONG).unwrap();
    let mut sender = graph.sender(first, 0).unwrap();
    let mut receiver = graph.receiver(last, 0).unwrap();
    let item = |number| Item { number, ..Item::default() };
    let singly = allocations(|| {
        for i in 0..MESSAGES / 10 {
            sender.send(item(i), LONG).unwrap();
            assert_eq!(receiver.recv(LONG).unwrap().number, i);
        }
    });
    let in_batches = allocations(|| {
        let (mut sent, mut received) = (0, 0);
        while received < MESSAGES {
            let batch: [Item; 64] = std::array::from_fn(|k| item(sent + k as u64));
            let n = (MESSAGES - sent).min(64) as usize;
            sent += sender.try_send_batch(&batch[..n]).unwrap() as u64;
            let got = |item: &Item| {
                assert_eq!(item.number, received);
                received += 1;
            };
            receiver.try_recv_each(64, got).unwrap();
        }
    });
    let device = &runtime.device().name;
    println!("{device}, a graph: {singly} allocations singly, {in_batches} in batches");
    assert_eq!((singly, in_batches), (0, 0), "a graph on {device}");
    graph.terminate(LONG).unwrap();
}

/// No harness: that of the standard library is a thread of this process too, and allocates to say that a test
/// takes long, as this one does on a busy machine.
fn main() {
    const NAME: &str = "messages_need_no_heap";
    match std::env::args().nth(1).as_deref() {
        Some("--list") => return println!("{NAME}: test"),
        // What `cargo test` was asked to look for comes first.
        Some(filter) if !filter.starts_with('-') && !NAME.contains(filter) => return,
        _ => {}
    }
    messages_need_no_heap();
    println!("test {NAME} ... ok");
}

fn messages_need_no_heap() {
    assert!(allocations(|| drop(Box::new(1u8))) > 0, "the counter counts");
    on_each_device(|runtime| {
        WAYS.into_iter().for_each(|way| run(runtime, way));
        WAYS.into_iter().for_each(|way| run_payload(runtime, way));
        WAYS.into_iter().for_each(|way| run_asynchronously(runtime, way));
        WAYS.into_iter().for_each(|way| run_calls(runtime, way));
        WAYS.into_iter().for_each(|way| run_shared(runtime, way));
        run_graph(runtime);
        run_host_calls(runtime);
    });
}
