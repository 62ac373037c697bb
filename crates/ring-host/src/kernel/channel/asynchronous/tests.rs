//! Polled by hand: what a poll says, and whom it wakes.

use super::{EAGER, RUN, RequestSink, ResponseStream};
use crate::deadline::CHECK_EVERY;
use crate::fake::{Bed, drive};
use crate::kernel::channel::idle_polls::IdlePolls;
use crate::kernels::{Echo, EchoMessage};
use crate::{
    Device, DeviceFault, KernelHandle, LaunchConfig, Memory, Mode, RecvTimeoutError, Runtime,
    TrySendError,
};
use futures_core::stream::{FusedStream, Stream};
use futures_sink::Sink;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Counter(AtomicU32);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn counter() -> (Arc<Counter>, Waker) {
    let counter = Arc::new(Counter::default());
    (Arc::clone(&counter), Waker::from(counter))
}

fn message(i: u64) -> EchoMessage {
    EchoMessage::from_seed(i)
}

fn echo(capacity: u32) -> (KernelHandle<Echo>, RequestSink<Echo>, ResponseStream<Echo>) {
    let host = Runtime::open(Device::Cpu).unwrap();
    let mut kernel = host.launch::<Echo>(LaunchConfig::default().capacity(capacity)).unwrap();
    kernel.activate(LONG).unwrap();
    let (sender, receiver) = kernel.take_channel(0).unwrap().into_split();
    (kernel, sender.into_sink(), receiver.into_stream())
}

type Answer = Option<Result<EchoMessage, DeviceFault>>;

fn next(responses: &mut ResponseStream<Echo>, waker: &Waker) -> Poll<Answer> {
    Pin::new(responses).poll_next(&mut Context::from_waker(waker))
}

fn ready(
    requests: &mut RequestSink<Echo>,
    waker: &Waker,
) -> Poll<Result<(), TrySendError<Option<EchoMessage>>>> {
    Pin::new(requests).poll_ready(&mut Context::from_waker(waker))
}

/// Polls until it is ready. Each pending poll must be followed by a wake.
fn until<T>(mut poll: impl FnMut(&Waker) -> Poll<T>) -> T {
    let (counter, waker) = counter();
    let begun = Instant::now();
    loop {
        let before = counter.0.load(SeqCst);
        if let Poll::Ready(found) = poll(&waker) {
            return found;
        }
        while counter.0.load(SeqCst) == before {
            assert!(begun.elapsed() < LONG, "no wake within {LONG:?}");
            std::thread::yield_now();
        }
    }
}

fn send(requests: &mut RequestSink<Echo>, i: u64) {
    until(|waker| ready(requests, waker)).unwrap();
    Pin::new(requests).start_send(message(i)).unwrap();
}

fn receive(responses: &mut ResponseStream<Echo>, i: u64) {
    let answer = until(|waker| next(responses, waker));
    assert_eq!(answer.unwrap().unwrap(), message(i).answer(), "message {i}");
}

#[test]
fn a_stream_that_waits_wakes_the_newest_waker() {
    let (mut kernel, mut requests, mut responses) = echo(8);
    for (i, waited) in (0..).zip([Duration::ZERO, 3 * EAGER, 2 * super::LONG, 3 * EAGER]) {
        let (_, first) = counter();
        let begun = Instant::now();
        while begun.elapsed() < waited {
            assert_eq!(next(&mut responses, &first), Poll::Pending);
        }
        let (second, waker) = counter();
        assert_eq!(next(&mut responses, &waker), Poll::Pending);
        let begun = Instant::now();
        while second.0.load(SeqCst) == 0 {
            assert!(begun.elapsed() < LONG, "the newest waker was not woken");
            std::thread::yield_now();
        }
        send(&mut requests, i);
        receive(&mut responses, i);
    }
    kernel.terminate(LONG).unwrap();
}

/// After long silence, a poll that follows a send looks eagerly again.
#[test]
fn a_wait_begins_anew_when_the_other_half_moves() {
    let (kernel, mut requests, mut responses) = echo(8);
    let (_, waker) = counter();
    let begun = Instant::now();
    while begun.elapsed() < 2 * EAGER {
        assert_eq!(next(&mut responses, &waker), Poll::Pending);
    }
    assert!(responses.waiting.is_watched());
    let (sent, context) = (responses.receiver.sent(), Context::from_waker(&waker));
    send(&mut requests, 0);
    assert_eq!(responses.receiver.sent(), sent + 1);
    responses.waiting.found_nothing(&context, sent);
    assert!(responses.waiting.is_watched(), "as long as nobody sends");
    let begun = Instant::now();
    responses.waiting.found_nothing(&context, sent + 1);
    assert!(!responses.waiting.is_watched() || begun.elapsed() >= EAGER);
    receive(&mut responses, 0);
    drop(kernel);
}

#[test]
fn a_full_ring_is_not_ready_and_gives_back_what_is_sent_all_the_same() {
    let (mut kernel, mut requests, mut responses) = echo(16);
    let (mut accepted, mut pending_since) = (0, Instant::now());
    let (_, waker) = counter();
    // Nobody receives: the device answers until its ring is full, then ours fills up.
    while pending_since.elapsed() < Duration::from_millis(50) {
        match ready(&mut requests, &waker) {
            Poll::Pending => continue,
            Poll::Ready(is) => is.unwrap(),
        }
        Pin::new(&mut requests).start_send(message(accepted)).unwrap();
        (accepted, pending_since) = (accepted + 1, Instant::now());
    }
    assert_eq!(accepted, 32, "two rings of sixteen slots");
    let refused = Pin::new(&mut requests).start_send(message(accepted));
    assert_eq!(refused, Err(TrySendError::Full(Some(message(accepted)))));
    // One received makes room for one, of which the device must be told first.
    for i in 0..20 {
        receive(&mut responses, i);
        send(&mut requests, accepted + i);
    }
    (20..accepted + 20).for_each(|i| receive(&mut responses, i));
    assert_eq!(kernel.terminate(LONG).unwrap().processed, accepted + 20);
}

#[test]
fn who_always_finds_something_lets_others_run() {
    let count = u64::from(RUN) + 8;
    let (mut kernel, mut requests, mut responses) = echo(2 * RUN);
    let (woken, waker) = counter();
    for i in 0..count {
        if i == u64::from(RUN) {
            assert_eq!(ready(&mut requests, &waker), Poll::Pending, "others' turn");
            assert_eq!(woken.0.load(SeqCst), 1);
        }
        assert_eq!(ready(&mut requests, &waker), Poll::Ready(Ok(())), "request {i}");
        Pin::new(&mut requests).start_send(message(i)).unwrap();
    }
    let begun = Instant::now();
    while kernel.status().processed < count {
        assert!(begun.elapsed() < LONG);
        std::thread::yield_now();
    }
    kernel.terminate(LONG).unwrap(); // all is there
    let pending = (0..count).position(|_| next(&mut responses, &waker).is_pending());
    assert_eq!(pending, Some(RUN as usize));
    assert_eq!(woken.0.load(SeqCst), 2);
    (u64::from(RUN)..count).for_each(|i| receive(&mut responses, i));
    assert_eq!(next(&mut responses, &waker), Poll::Ready(None));
}

#[test]
fn it_ends_with_the_kernel() {
    let (mut kernel, mut requests, mut responses) = echo(8);
    send(&mut requests, 0);
    receive(&mut responses, 0);
    assert!(!responses.is_terminated());
    kernel.terminate(LONG).unwrap();
    let (_, waker) = counter();
    for _ in 0..3 {
        assert_eq!(next(&mut responses, &waker), Poll::Ready(None));
        assert!(responses.is_terminated());
        let closed = |message| TrySendError::Closed { message, kernel: "echo" };
        assert_eq!(ready(&mut requests, &waker), Poll::Ready(Err(closed(None))));
        let sent = Pin::new(&mut requests).start_send(message(1));
        assert_eq!(sent, Err(closed(Some(message(1)))));
    }
    let ended = responses.into_receiver().recv(LONG);
    assert_eq!(ended, Err(RecvTimeoutError::Closed { kernel: "echo" }));
}

/// Who looks seldom asks the driver after its next look, not after the 256th.
#[test]
fn who_hurries_asks_after_the_next_look() {
    let bed = Bed::active(drive(Mode::Persistent, Memory::Mapped), 1);
    let mut idle_polls = IdlePolls::new();
    bed.launch_slot.fault();
    std::thread::sleep(2 * CHECK_EVERY);
    for _ in 0..5 {
        assert_eq!(idle_polls.note(&bed.core), Ok(()));
    }
    idle_polls.force_check();
    assert!(idle_polls.note(&bed.core).is_err());
}

/// The driver is asked once a millisecond at most, and once a millisecond has gone by.
#[test]
fn the_driver_is_asked_once_a_millisecond_at_most() {
    let bed = Bed::active(drive(Mode::Persistent, Memory::Mapped), 1);
    bed.launch_slot.fault();
    let hour = Duration::from_secs(3600);
    let mut idle_polls = IdlePolls::new();
    idle_polls.checked = Instant::now() + hour; // no millisecond has gone by since
    for _ in 0..1000 {
        assert_eq!(idle_polls.note(&bed.core), Ok(()));
    }
    idle_polls.checked = Instant::now() - CHECK_EVERY;
    idle_polls.force_check();
    assert!(idle_polls.note(&bed.core).is_err());
}
