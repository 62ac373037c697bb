//! Two threads of the operating system and a million messages there and back: what a model
//! checker cannot reach, by length and by the real machine's reordering.
#![cfg(not(loom))]

use ring_shared::heap::RingMemory;
use ring_shared::ring::widen;
use ring_shared::{Inbox, Message, Outbox, PushError};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const MESSAGES: u64 = if cfg!(miri) {
    100
} else if cfg!(ring_atomic_slots) {
    100_000 // a sanitizer looks on
} else {
    1_000_000
};

/// After so long and so many messages it is enough: where many programs share the processors, each message
/// may wait for a thread to have its turn.
const ENOUGH: (Duration, u64) = (Duration::from_secs(20), if cfg!(miri) { MESSAGES } else { 1000 });

/// The first index: the 32 bits of a stamp come round early.
const START: u64 = (1 << 32) - ENOUGH.1 / 2;

/// Far more than it takes until the next message comes, on however busy a machine; a lost message or
/// credit ends here instead of never.
const PATIENCE: Duration = Duration::from_secs(120);

/// A message whose every word depends on its index.
trait Numbered: Message + PartialEq + std::fmt::Debug {
    fn of(index: u64) -> Self;
}

impl<const N: usize> Numbered for [u64; N]
where
    [u64; N]: Message,
{
    fn of(index: u64) -> Self {
        core::array::from_fn(|k| (index << 8 | k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }
}

/// Counts idle looks: spins a little, then lets the other thread run (there may be one core
/// for both), and gives up at the deadline.
struct Wait {
    looks: u32,
    deadline: Instant,
}

impl Wait {
    fn new() -> Wait {
        Wait { looks: 0, deadline: Instant::now() + PATIENCE }
    }

    /// Something came.
    fn over(&mut self) {
        if self.looks >= 64 {
            *self = Wait::new();
        }
    }

    fn a_little(&mut self) {
        self.looks += 1;
        if !self.looks.is_multiple_of(64) {
            std::hint::spin_loop();
            return;
        }
        assert!(Instant::now() < self.deadline, "nothing came for {PATIENCE:?}");
        std::thread::yield_now();
    }
}

/// Takes requests in runs of changing length and answers each with the message of `!index`.
fn echo<T: Numbered>(mut requests: Inbox, mut responses: Outbox, end: &AtomicU64) {
    let mut wait = Wait::new();
    let mut batch = [T::zeroed(); 48];
    while requests.next() < end.load(Relaxed) {
        let (first, most) = (requests.next(), 1 + (requests.next() % 48) as usize);
        let n = requests.pop_slice(&mut batch[..most]).expect("an honest host");
        responses.note_consumed(widen(requests.credit(), responses.consumed()));
        for (index, message) in (first..).zip(&mut batch[..n]) {
            assert_eq!(*message, T::of(index), "request {index}");
            *message = T::of(!index);
        }
        let mut done = 0;
        while done < n {
            done += responses.push_slice(&batch[done..n], requests.next()).expect("an honest host");
            if done < n {
                wait.a_little();
            }
        }
        match n {
            0 => wait.a_little(),
            _ => wait.over(),
        }
    }
    requests.publish();
}

/// Bursts of up to `ahead` requests, single and in runs, so that inline messages and slots
/// alternate, and both rings run full and empty.
fn round_trips<T: Numbered>(capacity: u32, start: u64, ahead: u64) {
    let (begun, end) = (Instant::now(), &AtomicU64::new(start + MESSAGES));
    let memory = [(); 2].map(|()| RingMemory::boxed::<T>(capacity, start));
    // SAFETY: the scope below ends both threads before the memory is dropped.
    let [requests, responses] = memory.each_ref().map(|m| unsafe { m.ring_for_now() });
    let (take, answer) = (Inbox::new(requests), Outbox::new(responses));
    let (mut ask, mut hear) = (Outbox::new(requests), Inbox::new(responses));
    std::thread::scope(|threads| {
        let echo = threads.spawn(move || echo::<T>(take, answer, end));
        let mut wait = Wait::new();
        let mut batch = [T::zeroed(); 32];
        while hear.next() < end.load(Relaxed) {
            let is_enough = ask.next() - start >= ENOUGH.1 && begun.elapsed() >= ENOUGH.0;
            if is_enough && hear.next() < ask.next() {
                end.fetch_min(ask.next(), Relaxed); // what was asked is answered yet
            }
            let end = end.load(Relaxed);
            if echo.is_finished() && hear.next() == ask.next() && ask.next() < end {
                break; // it failed; the scope panics with why
            }
            // A new burst only when the last one is answered, every so often: then inline is due.
            let burst = 1 + ask.next() / 1000 % ahead;
            let free = burst.saturating_sub(ask.next() - hear.next()).min(end - ask.next());
            if free == 1 || (free > 0 && ask.next() % 3 == 0) {
                match ask.push(&T::of(ask.next()), hear.next()) {
                    Ok(()) | Err(PushError::Full) => {}
                    Err(PushError::Corrupt(corrupt)) => panic!("{corrupt:?}"),
                }
            } else if free > 0 {
                let n = free.min(32) as usize;
                for (index, message) in (ask.next()..).zip(&mut batch[..n]) {
                    *message = T::of(index);
                }
                if n.is_multiple_of(2) {
                    ask.push_slice(&batch[..n], hear.next()).expect("an honest echo");
                } else {
                    ask.push_each(n, hear.next(), |k| batch[k]).expect("an honest echo");
                }
            }
            let (first, mut out) = (hear.next(), [T::zeroed(); 32]);
            let most = 1 + (first % 32) as usize;
            let n = if most.is_multiple_of(2) {
                hear.pop_slice(&mut out[..most]).expect("an honest echo")
            } else {
                let mut to = out.iter_mut();
                let keep = |message: &T| *to.next().expect("no more than asked for") = *message;
                hear.pop_each(most, keep).expect("an honest echo")
            };
            for (index, message) in (first..).zip(&out[..n]) {
                assert_eq!(*message, T::of(!index), "answer {index}");
            }
            if n > 0 {
                ask.note_consumed(hear.next());
                wait.over();
            } else {
                wait.a_little();
            }
        }
    });
    let end = end.load(Relaxed);
    assert_eq!((ask.next(), hear.next()), (end, end));
    assert_eq!(hear.pop::<T>(), Ok(None), "one answer for each request");
}

#[test]
fn a_million_that_fit_the_line() {
    round_trips::<[u64; 4]>(64, START, 100);
}

#[test]
fn a_million_that_do_not() {
    round_trips::<[u64; 16]>(16, 0, 40);
}

/// One at a time, so all of them inline (no deeper than the line), and one slot each.
#[test]
fn a_million_one_at_a_time() {
    round_trips::<[u64; 8]>(1, (2 << 32) - ENOUGH.1 / 2, 1);
}
