//! The ring under loom: every interleaving (within a bound on preemptions) of two threads, and
//! every old value that the memory model lets a relaxed or acquiring load return.
//!
//!     RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 cargo test --release -p ring-shared --test loom
//!
//! Loom never lets a load see a store that has not run yet, so it cannot show that a slot is read
//! before its credit is given merely from the bytes. [`Cells`] can: plain memory beside the ring,
//! as a payload arena is, written before an operation and read after its partner. A release or
//! acquire that is missing is a data race on a cell, and loom reports it.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread::{self, yield_now};
use ring_shared::atomics::Atom;
use ring_shared::atomics::model::{Kind, share};
use ring_shared::heap::RingMemory;
use ring_shared::ring::{CONTROL, Control, stamp, widen};
use ring_shared::{Inbox, Outbox, Ring};
use std::sync::Arc;

/// Two halves that must agree, 16 bytes: one atom of a slot, two of the doorbell line, so that a
/// message put together from two is noticed on either path.
type Message = [u64; 2];

fn message(index: u64) -> Message {
    let word = index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    [word, !word]
}

/// The low half of an index wraps in the middle of each model that starts at the second or third.
const STARTS: [u64; 3] = [0, (1 << 32) - 2, (3 << 32) - 1];

/// Plain memory that both threads touch, one cell a message.
struct Cells {
    cells: Vec<UnsafeCell<u64>>,
    start: u64,
}

// SAFETY: that no two threads touch a cell at once is what loom checks at every access.
unsafe impl Sync for Cells {}
// SAFETY: as above.
unsafe impl Send for Cells {}

impl Cells {
    fn new(start: u64, n: u64) -> Arc<Cells> {
        Arc::new(Cells { cells: (0..n).map(|_| UnsafeCell::new(u64::MAX)).collect(), start })
    }

    fn at(&self, index: u64) -> Option<&UnsafeCell<u64>> {
        self.cells.get(index.checked_sub(self.start)? as usize)
    }

    fn write(&self, index: u64) {
        if let Some(cell) = self.at(index) {
            // SAFETY: loom fails the test if another thread is here too.
            cell.with_mut(|at| unsafe { *at = index });
        }
    }

    /// True also where there is no such cell.
    fn is_written(&self, index: u64) -> bool {
        // SAFETY: loom fails the test if another thread is here too.
        self.at(index).is_none_or(|cell| cell.with(|at| unsafe { *at }) == index)
    }

    /// Fails unless `write` of this index happened before.
    fn read(&self, index: u64) {
        assert!(self.is_written(index), "a cell from before its message");
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // Unbounded, a model takes hours; the variable LOOM_MAX_PREEMPTIONS may ask for another bound.
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}

fn ring(memory: &RingMemory) -> Ring {
    // SAFETY: every model joins its threads before it drops the memory.
    unsafe { memory.ring_for_now() }
}

/// Looks for messages, checks each, and says how many there were.
fn take(consumer: &mut Inbox, notes: &Cells, gone: &Cells, most: usize) -> usize {
    let (first, mut out) = (consumer.next(), [[0; 2]; 2]);
    for index in (first..).take(most) {
        if !gone.is_written(index) {
            gone.write(index); // before the credit that this pop may publish
        }
    }
    let n = consumer.pop_slice(&mut out[..most]).expect("an honest producer");
    for (index, got) in (first..).zip(&out[..n]) {
        assert_eq!(*got, message(index), "message {index} lost, doubled, torn or out of order");
        notes.read(index);
    }
    n
}

/// One producer thread pushes in runs of `runs`, one consumer takes. Both give up after a few
/// tries, so that the model is finite; what is left is taken after the join. A run of one goes
/// inline when it can, a longer run goes through slots.
fn in_order(capacity: u32, start: u64, runs: &'static [u64], tries: usize) {
    in_order_of_lines(1, capacity, start, runs, tries);
}

/// The same in a ring of so many doorbell lines.
fn in_order_of_lines(lines: u32, capacity: u32, start: u64, runs: &'static [u64], tries: usize) {
    check(move || {
        let memory = RingMemory::with_lines::<Message>(lines, capacity, start);
        let total = runs.iter().sum();
        // Written before a push, read after the pop: what a payload arena relies on.
        let notes = Cells::new(start, total);
        // Written before a pop, read after the push into the same slot: what its reuse relies on.
        let gone = Cells::new(start, total);
        let mut producer = Outbox::new(ring(&memory));
        let mut consumer = Inbox::new(ring(&memory));

        let (n, g) = (notes.clone(), gone.clone());
        let pushing = thread::spawn(move || {
            for run in runs {
                let first = producer.next();
                (first..first + run).for_each(|index| n.write(index));
                let batch: Vec<_> = (first..first + run).map(message).collect();
                let mut done = 0;
                for attempt in 0..tries {
                    if attempt > 0 {
                        yield_now();
                    }
                    let k = producer.push_slice(&batch[done..], 0).expect("an honest consumer");
                    let now = first + done as u64..first + (done + k) as u64;
                    now.for_each(|index| g.read(index.wrapping_sub(u64::from(capacity))));
                    done += k;
                    if done == batch.len() {
                        break;
                    }
                }
                if done < batch.len() {
                    break; // the consumer was never there
                }
            }
            producer.next()
        });
        for look in 0..tries {
            if look > 0 {
                yield_now();
            }
            take(&mut consumer, &notes, &gone, 1 + look % 2);
        }
        let sent = pushing.join().expect("the producer's assertions");
        while take(&mut consumer, &notes, &gone, 2) > 0 {}
        assert_eq!(consumer.next(), sent, "exactly as many taken as were pushed");
    });
}

#[test]
fn one_slot_in_order() {
    for start in STARTS {
        in_order(1, start, &[1, 2, 1], 3);
    }
}

#[test]
fn two_slots_in_order() {
    for start in STARTS {
        in_order(2, start, &[1, 2, 1], 3);
    }
}

/// Slots alone, each overwritten as soon as there is credit for it: a run of two into one slot
/// is never inline. A producer that trusts its room by one too much, or a consumer that gives
/// credit before it has read, loses or tears a message here.
#[test]
fn a_slot_is_reused_only_after_credit() {
    for start in STARTS {
        in_order(1, start, &[3], 4);
        in_order(2, start, &[2, 2], 3);
    }
}

/// Inline alone: the line itself is reused only after credit.
#[test]
fn the_line_is_reused_only_after_credit() {
    in_order(1, 0, &[1, 1, 1], 3);
    in_order(2, STARTS[1], &[1, 1, 1], 3);
}

/// Several messages are inline at once, each in a line of its own, and a line is written again only when its
/// message is consumed.
#[test]
fn lines_are_reused_only_after_credit() {
    for start in STARTS {
        in_order_of_lines(2, 2, start, &[1, 1, 1, 1], 3);
    }
    in_order_of_lines(4, 4, STARTS[1], &[1, 1, 1], 3);
    in_order_of_lines(2, 4, STARTS[1], &[1, 1, 1], 3);
}

/// Slots behind inline messages that are unread, and inline messages behind slots that are not: the control of a
/// run lies in a line whose message may be unread, and in line 0.
#[test]
fn inline_and_slots_take_turns_in_several_lines() {
    for start in STARTS {
        in_order_of_lines(2, 4, start, &[1, 2, 1], 3);
        in_order_of_lines(2, 4, start, &[2, 1, 1], 3);
        in_order_of_lines(2, 2, start, &[1, 1, 2], 3);
        in_order_of_lines(4, 4, start, &[1, 2, 1], 3);
    }
}

/// A GPU channel writes its line without fences, so the control atom may arrive before the payload,
/// and the payload in any order. The stamps alone prove that the message is whole.
#[test]
fn a_line_written_in_any_order_is_taken_whole() {
    for (start, order) in [(0, [2, 1, 0]), (STARTS[1], [2, 0, 1]), (STARTS[2], [0, 2, 1])] {
        check(move || {
            let memory = RingMemory::boxed::<Message>(1, start);
            let bell_of = ring(&memory);
            let mut consumer = Inbox::new(ring(&memory));
            let channel = thread::spawn(move || {
                let [a, b] = message(start);
                let s = u64::from(stamp(start)) << 32;
                let atoms = [[a, (b & 0xffff_ffff) | s], [b >> 32, s]];
                for k in order {
                    match atoms.get(k) {
                        Some(words) => bell_of.line(0).atoms[k].publish(*words),
                        None => {
                            let control = Control::behind_inline(start + 1, 0);
                            bell_of.line(0).atoms[CONTROL].publish(control.to_words());
                        }
                    }
                }
            });
            let mut got = None;
            for _ in 0..3 {
                got = consumer.pop_short::<Message>();
                if got.is_some() {
                    break;
                }
                yield_now();
            }
            channel.join().expect("no assertions there");
            let got = got.or_else(|| consumer.pop().expect("a sound line"));
            assert_eq!(got, Some(message(start)));
        });
    }
}

/// A GPU reads the whole line at once, so it may see stamps whose control atom it has not seen: each
/// stamp must prove its own twelve bytes. (Between CPUs the control atom, read first, covers them.)
#[test]
fn a_stamp_alone_proves_its_atom() {
    check(|| {
        let memory = RingMemory::boxed::<Message>(1, 0);
        let ring = ring(&memory);
        let mut producer = Outbox::new(ring);
        let host = thread::spawn(move || producer.push(&message(0), 0));
        let [a, b] = message(0);
        for (k, payload) in [(1, b >> 32), (0, a)] {
            let [lo, hi] = ring.line(0).atoms[k].observe();
            if (hi >> 32) as u32 == stamp(0) {
                assert_eq!(lo, payload, "atom {k} is stamped but old");
            }
        }
        assert_eq!(host.join().expect("no assertions there"), Ok(()));
    });
}

/// The two halves of an atom: whoever sees the second sees the first, and either one brings what
/// was written before it. The credit (first half) may be newer than the tail (second half), so it
/// needs a release and an acquire of its own.
#[test]
fn each_half_of_an_atom_publishes() {
    check(|| {
        let atom = Arc::new(Atom::new([0, 0]));
        let _watched = share(&*atom, |_| Some(Kind::Atomic));
        let cells = Cells::new(1, 2);
        let (a, c) = (atom.clone(), cells.clone());
        let writer = thread::spawn(move || {
            for n in 1..=2 {
                c.write(n);
                a.publish([n, n]);
            }
        });
        let [lo, hi] = atom.observe();
        assert!(lo >= hi, "credit {lo} older than tail {hi}");
        cells.read(lo);
        writer.join().expect("no assertions there");
    });
}

/// Requests and responses, `ahead` requests under way at once. All credit for responses travels
/// in the requests' doorbell and all credit for requests is deduced from the answers, as between
/// host and GPU; the credit lines serve when there is no other way.
fn echo(capacity: u32, start: u64, total: u64, ahead: u64) {
    check(move || {
        let (requests, responses) = (
            RingMemory::boxed::<Message>(capacity, start),
            RingMemory::boxed::<Message>(capacity, start),
        );
        let asked = Cells::new(start, total); // host -> echo, with the request
        let answered = Cells::new(start, total); // echo -> host, with the answer
        let gone = Cells::new(start, total); // host -> echo, with the credit
        let (mut ask, mut hear) = (Outbox::new(ring(&requests)), Inbox::new(ring(&responses)));
        let (mut take, mut answer) = (Inbox::new(ring(&requests)), Outbox::new(ring(&responses)));

        let cells = (asked.clone(), answered.clone(), gone.clone());
        let echo = thread::spawn(move || {
            let (asked, answered, gone) = cells;
            for index in start..start + total {
                let request = loop {
                    match take.pop::<Message>().expect("an honest host") {
                        Some(request) => break request,
                        None => yield_now(),
                    }
                };
                assert_eq!(request, message(index));
                asked.read(index);
                answered.write(index);
                let known = widen(take.credit(), answer.consumed());
                if ahead == 1 {
                    // Only one request is under way, so its line must say: all answers are read.
                    assert_eq!(known, index, "the credit that came with request {index}");
                }
                answer.note_consumed(known);
                while answer.push(&message(!index), take.next()).is_err() {
                    yield_now();
                }
                gone.read(index.wrapping_sub(u64::from(capacity)));
            }
        });

        for index in start..start + total {
            while ask.next() < (index + ahead).min(start + total) {
                let next = ask.next();
                asked.write(next);
                if ask.push(&message(next), hear.next()).is_err() {
                    break; // not yet; an answer will make room
                }
            }
            gone.write(index);
            let response = loop {
                match hear.pop::<Message>().expect("an honest echo") {
                    Some(response) => break response,
                    None => yield_now(),
                }
            };
            assert_eq!(response, message(!index));
            answered.read(index);
            // The answer proves its request consumed, and its line says no less.
            ask.note_consumed(index + 1);
            let said = widen(hear.credit(), index);
            assert!(said > index && said <= ask.next(), "credit {said} with answer {index}");
        }
        echo.join().expect("the echo's assertions");
        assert_eq!(hear.pop::<Message>(), Ok(None), "one answer for each request");
    });
}

#[test]
fn echo_one_at_a_time() {
    for start in STARTS {
        echo(1, start, 3, 1);
    }
}

#[test]
fn echo_two_ahead() {
    echo(2, STARTS[1], 3, 2);
}
