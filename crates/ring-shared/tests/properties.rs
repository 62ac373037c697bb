//! The ring against a plain model, in one thread: whatever is pushed and popped, in whatever order
//! and wherever the indices start, each message comes out once and in order.
#![cfg(not(loom))]

use proptest::prelude::*;
use ring_shared::heap::RingMemory;
use ring_shared::message::{INLINE_ATOM_BYTES, INLINE_ATOMS, takes_inline};
use ring_shared::ring::{
    CONTROL, Control, SCRUB, Seen, credit_index, decide, may_go_inline, room, runs, stamp, widen,
    window,
};
use ring_shared::{Inbox, Message, Outbox, PushError, Ring};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

const ROUND: u64 = 1 << 32;

/// A message whose every byte depends on its index.
fn message<T: Message>(index: u64) -> T {
    let mut message = T::zeroed();
    for (at, byte) in bytemuck::bytes_of_mut(&mut message).iter_mut().enumerate() {
        let mixed = (index ^ (at as u64) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        *byte = (mixed >> 56) as u8;
    }
    message
}

/// Where a ring starts: the low halves of indices and stamps wrap within a few messages of most.
fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..100u64,
        (1..100u64).prop_map(|k| ROUND - k),
        (1..100u64).prop_map(|k| 2 * ROUND - k),
        (0..u64::MAX >> 1),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    Push,
    PushSlice(usize),
    Pop,
    PopShort,
    PopSlice(usize),
    /// So many; the closure panics at this one, if it gets there.
    PushEach(usize, usize),
    PushSliceInline(usize),
    PushEachInline(usize, usize),
    PopEach(usize, usize),
    /// The consumer publishes its credit at once.
    Publish,
    /// The producer learns, as by an answer, that so many (of 256) of those taken are consumed.
    Note(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => Just(Op::Push),
        2 => (0..80usize).prop_map(Op::PushSlice),
        4 => Just(Op::Pop),
        4 => Just(Op::PopShort),
        2 => (0..80usize).prop_map(Op::PopSlice),
        2 => (0..80usize, 0..200usize).prop_map(|(n, panic)| Op::PushEach(n, panic)),
        2 => (0..70usize).prop_map(Op::PushSliceInline),
        2 => (0..6usize).prop_map(Op::PushSliceInline),
        1 => (0..70usize, 0..100usize).prop_map(|(n, panic)| Op::PushEachInline(n, panic)),
        1 => (0..6usize, 0..9usize).prop_map(|(n, panic)| Op::PushEachInline(n, panic)),
        1 => (0..3usize).prop_map(|panic| Op::PushEach(1, panic)),
        2 => (0..80usize, 0..200usize).prop_map(|(n, panic)| Op::PopEach(n, panic)),
        1 => Just(Op::Publish),
        1 => (0..=256u64).prop_map(Op::Note),
    ];
    proptest::collection::vec(op, 1..200)
}

/// What is in the ring, and what its producer may know of its consumer.
struct Model {
    queue: VecDeque<u64>,
    next: u64,
    noted: u64,
    /// The inline messages, and those of them that are in a slot, too.
    inline: HashSet<u64>,
    in_both: HashSet<u64>,
    /// Index after the last message that is in a slot only.
    slots_end: u64,
    /// Where pushes have begun.
    begun: BTreeSet<u64>,
    /// Whether the ring takes such messages inline.
    takes_inline: bool,
    window: u64,
    credit: u64,
    inline_pushes: usize,
}

fn control(ring: &Ring, index: u64) -> Control {
    Control::from_words(ring.line(index).atoms[CONTROL].observe())
}

/// Runs `ops` in rings of one and of several lines, and says how many messages went through slots and how many
/// inline where there is one.
fn run<T>(log2: u32, start: u64, ops: &[Op]) -> (usize, usize)
where
    T: Message + PartialEq + std::fmt::Debug,
{
    for lines in [2, 4, 64] {
        run_in::<T>(lines, log2, start, ops);
    }
    run_in::<T>(1, log2, start, ops)
}

fn run_in<T>(lines: u32, log2: u32, start: u64, ops: &[Op]) -> (usize, usize)
where
    T: Message + PartialEq + std::fmt::Debug,
{
    let capacity = 1 << log2;
    let memory = RingMemory::with_lines::<T>(lines, capacity, start);
    // SAFETY: the memory is dropped at the end of this function, after all its users.
    let ring = unsafe { memory.ring_for_now() };
    let (mut producer, mut consumer) = (Outbox::new(ring), Inbox::new(ring));
    let credit_line = || ring.credit().consumed.load(std::sync::atomic::Ordering::Relaxed);
    let mut m = Model {
        queue: VecDeque::new(),
        next: start,
        noted: start,
        inline: HashSet::new(),
        in_both: HashSet::new(),
        slots_end: start,
        begun: BTreeSet::new(),
        takes_inline: takes_inline::<T>(&ring),
        window: u64::from(window(lines, capacity)),
        credit: start, // what `reset` leaves in the line
        inline_pushes: 0,
    };
    for (step, op) in ops.iter().enumerate() {
        // What the producer must find out if it looks, and so the room it must find.
        let consumed = credit_line().max(m.noted);
        let free = capacity as usize - (m.next - consumed) as usize;
        let credit = (step as u64).wrapping_mul(0x1234_5678_9abc_def1);
        match *op {
            Op::Push => {
                let pushed = producer.push(&message::<T>(m.next), credit);
                assert_eq!(pushed, if free > 0 { Ok(()) } else { Err(PushError::Full) });
                // A refused push still publishes the credit.
                let (may, known) = (m.all_inline(1, consumed), producer.consumed());
                let last = m.send(usize::from(free > 0), may, known, credit);
                check_line::<T>(&ring, &m, last);
            }
            Op::PushSlice(n) => {
                let batch: Vec<T> = (m.next..).take(n).map(message).collect();
                let (want, may) = (n.min(free), m.all_inline(n, consumed));
                assert_eq!(producer.push_slice(&batch, credit), Ok(want), "of {n}, room {free}");
                let last = match n {
                    1 => m.send(want, may, producer.consumed(), credit),
                    _ => m.push(want, credit),
                };
                check_line::<T>(&ring, &m, last);
            }
            Op::PushSliceInline(n) => {
                let batch: Vec<T> = (m.next..).take(n).map(message).collect();
                let may = m.all_inline(n, consumed);
                assert_eq!(producer.push_slice_inline(&batch, credit), Ok(may), "of {n}");
                if may {
                    let last = m.send(n, may, producer.consumed(), credit);
                    check_line::<T>(&ring, &m, last);
                }
            }
            Op::Pop => {
                let got = consumer.pop::<T>();
                assert_eq!(got, Ok(m.queue.pop_front().map(message)));
                check_credit(&consumer, capacity, credit_line(), got == Ok(None), m.credit);
            }
            Op::PopShort => match consumer.pop_short::<T>() {
                Some(got) => assert_eq!(Some(got), m.queue.pop_front().map(message)),
                None => assert!(m.queue.front().is_none_or(|next| !m.is_in_line_alone(*next))),
            },
            Op::PopSlice(n) => {
                let mut out = vec![T::zeroed(); n];
                let got = consumer.pop_slice(&mut out).unwrap();
                assert_eq!(got, n.min(m.queue.len()), "all that is there and fits");
                for (out, index) in out.iter().zip(m.queue.drain(..got)) {
                    assert_eq!(*out, message(index));
                }
                check_credit(&consumer, capacity, credit_line(), got < n, m.credit);
            }
            Op::PushEach(n, panic) => {
                let (want, first, mut calls) = (n.min(free), m.next, 0);
                let may = m.all_inline(n, consumed);
                let pushed = catching(|| {
                    producer.push_each(n, credit, |k| {
                        assert_eq!(k, calls, "in order, and not after the last");
                        calls += 1;
                        panic_if(k == panic);
                        message::<T>(first + k as u64)
                    })
                });
                assert_eq!(calls, want.min(panic + 1));
                if panic < want {
                    assert_eq!(pushed, None);
                } else {
                    assert_eq!(pushed, Some(Ok(want)), "of {n}, room {free}");
                    let last = match n {
                        1 => m.send(want, may, producer.consumed(), credit),
                        _ => m.push(want, credit),
                    };
                    check_line::<T>(&ring, &m, last);
                }
            }
            Op::PushEachInline(n, panic) => {
                let (may, first, mut calls) = (m.all_inline(n, consumed), m.next, 0);
                let pushed = catching(|| {
                    producer.push_each_inline(n, credit, |k| {
                        assert_eq!(k, calls, "in order, and not after the last");
                        calls += 1;
                        panic_if(k == panic);
                        message::<T>(first + k as u64)
                    })
                });
                assert_eq!(calls, if may { n.min(panic + 1) } else { 0 });
                assert_eq!(pushed, (!may || panic >= n).then_some(Ok(may)), "of {n}");
                if may && panic >= n {
                    let last = m.send(n, may, producer.consumed(), credit);
                    check_line::<T>(&ring, &m, last);
                }
            }
            Op::PopEach(n, panic) => {
                let (want, mut seen) = (n.min(m.queue.len()), Vec::new());
                let popped = catching(|| {
                    consumer.pop_each(n, |message: &T| {
                        seen.push(*message);
                        panic_if(seen.len() == panic + 1);
                    })
                });
                assert_eq!(seen.len(), want.min(panic + 1), "shown");
                for (seen, index) in seen.iter().zip(m.queue.drain(..seen.len())) {
                    assert_eq!(*seen, message(index));
                }
                assert_eq!(popped, (panic >= want).then_some(Ok(want)));
                let idle = panic >= want && want < n;
                check_credit(&consumer, capacity, credit_line(), idle, m.credit);
            }
            Op::Publish => {
                consumer.publish();
                assert_eq!(credit_line(), consumer.next());
            }
            Op::Note(part) => {
                // From before the start to the last taken: late news must do no harm.
                let taken = consumer.next() - start;
                let index = start + taken * part / 256;
                producer.note_consumed(index);
                producer.note_consumed(index.saturating_sub(3));
                m.noted = m.noted.max(index);
                // Impossible news neither.
                producer.note_consumed(m.next + 1);
                producer.note_consumed(u64::MAX);
                assert!(producer.consumed() <= consumer.next());
            }
        }
        assert_eq!(producer.next(), m.next);
        assert_eq!(consumer.next(), m.next - m.queue.len() as u64);
        check_ahead(&ring, &m, consumer.next());
        assert!(ring.can_resume_from(consumer.next()), "by a consumer that remembers nothing else");
        assert!(producer.consumed() >= m.noted && producer.consumed() <= consumer.next());
    }
    let rest: Vec<T> = m.queue.iter().map(|&index| message(index)).collect();
    let mut out = vec![T::zeroed(); rest.len() + 1];
    assert_eq!(consumer.pop_slice(&mut out), Ok(rest.len()), "all that was pushed, and no more");
    assert_eq!(out[..rest.len()], rest[..]);
    ((m.next - start) as usize - m.inline_pushes, m.inline_pushes)
}

/// What `call` gives, or nothing if it panics.
fn catching<R>(call: impl FnOnce() -> R) -> Option<R> {
    let caught = catch_unwind(AssertUnwindSafe(call));
    caught.map_err(|panic| panic.downcast::<Wanted>().map_err(|other| resume_unwind(other))).ok()
}

/// A panic that the test wants; nothing is printed for it.
struct Wanted;

fn panic_if(now: bool) {
    if now {
        resume_unwind(Box::new(Wanted));
    }
}

impl Model {
    /// Whether so many messages may go inline, of a producer that has seen so much consumed.
    fn all_inline(&self, n: usize, consumed: u64) -> bool {
        let whole = self.slots_end <= consumed && n <= 8;
        let window = if whole { self.window } else { self.window / 2 };
        self.takes_inline && n > 0 && self.next - consumed + n as u64 <= window
    }

    /// Whether a message is inline, and in no slot.
    fn is_in_line_alone(&self, index: u64) -> bool {
        self.inline.contains(&index) && !self.in_both.contains(&index)
    }

    /// So many messages are sent, inline if they `may` go so, by a producer that knows so many to be consumed. Of how many
    /// the last control atom tells that was written.
    fn send(&mut self, n: usize, may: bool, known: u64, credit: u64) -> usize {
        if !may {
            return self.push(n, credit);
        }
        for _ in 0..n {
            self.inline.insert(self.next);
            if self.slots_end > known {
                self.in_both.insert(self.next);
            }
            self.inline_pushes += 1;
            self.sent(1, credit);
        }
        1
    }

    /// So many messages are sent together through slots, or none.
    fn push(&mut self, n: usize, credit: u64) -> usize {
        self.sent(n, credit);
        if n > 0 {
            self.slots_end = self.next;
        }
        n
    }

    fn sent(&mut self, n: usize, credit: u64) {
        self.queue.extend(self.next..self.next + n as u64);
        if n > 0 {
            self.begun.insert(self.next);
        }
        self.next += n as u64;
        self.credit = credit;
    }
}

/// Wherever the consumer looks next, the line leads it to its next message. It does not look while it knows of
/// messages in slots, so it looks where a push has begun.
fn check_ahead(ring: &Ring, m: &Model, next: u64) {
    let mut at = m.begun.range(next..).next().copied().unwrap_or(m.next);
    while at < m.next {
        match decide(control(ring, at), at, ring.capacity()) {
            Seen::Inline => {
                assert!(m.inline.contains(&at), "message {at} is in no line");
                at += 1;
            }
            Seen::Slots(n) => {
                let end = at + u64::from(n);
                assert!((at..end).all(|k| k < m.next && !m.is_in_line_alone(k)), "{at}..{end}");
                at = end;
            }
            seen => panic!("message {at}: {seen:?}"),
        }
    }
    assert_eq!(decide(control(ring, at), at, ring.capacity()), Seen::Nothing);
    // Line 0 tells of all that are in slots alone, wherever a consumer was when it stopped.
    for &index in m.queue.iter().filter(|index| !m.inline.contains(index)) {
        let found = decide(control(ring, 0), index, ring.capacity());
        assert!(matches!(found, Seen::Slots(_)), "line 0 shows {found:?} at {index}");
    }
    // One that takes them out of order finds that only inline ones are before those that it may take.
    for &index in m.queue.iter().filter(|index| m.inline.contains(index)) {
        let early = u64::from(control(ring, index).early).min(index - next);
        let all_inline = (index - early..index).all(|before| m.inline.contains(&before));
        assert!(all_inline, "{index} may be taken when {} is next", index - early);
    }
}

/// After a push of so many messages the control atom says what the other side, perhaps a GPU, must be able to rely
/// on.
fn check_line<T: Message>(ring: &Ring, m: &Model, pushed: usize) {
    let control = control(ring, m.next - pushed as u64);
    assert_eq!((control.tail, control.credit), (m.next as u32, m.credit as u32));
    // The unread messages that it says to be in slots are there; behind a push through slots it says so of all that are
    // there alone.
    let in_slots = |index: u64| {
        (index as u32).wrapping_sub(control.first) < control.tail.wrapping_sub(control.first)
    };
    let through_slots = m.slots_end == m.next;
    for &index in &m.queue {
        assert!(!m.is_in_line_alone(index) || !in_slots(index), "message {index} is in no slot");
        let must = through_slots && !m.inline.contains(&index);
        assert!(!must || in_slots(index), "message {index} is in a slot");
    }
    for &index in m.queue.iter().filter(|index| m.inline.contains(index)) {
        let atoms = ring.lines_of(index).iter().flat_map(|line| &line.atoms[..CONTROL]);
        for atom in atoms.take(T::INLINE_ATOMS) {
            assert_eq!((atom.observe()[1] >> 32) as u32, stamp(index));
        }
    }
}

/// Credit is published in time: at once when nothing is left, else after a quarter of the ring.
fn check_credit(consumer: &Inbox, capacity: u32, line: u64, idle: bool, credit: u64) {
    let late = consumer.next() - line;
    assert!(late < u64::from(capacity).div_ceil(4), "{late} of {capacity} not published");
    if idle {
        assert_eq!(late, 0, "an idle consumer owes no credit");
        assert_eq!(consumer.credit(), credit as u32, "the credit of the last push");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 8 } else if cfg!(debug_assertions) { 192 } else { 1000 }))]

    #[test]
    fn a_ring_is_a_queue(log2 in 0..=6u32, start in starts(), ops in ops()) {
        run::<[u32; 4]>(log2, start, &ops);
        run::<[u8; 1]>(log2, start, &ops);
        run::<[u8; 84]>(log2, start, &ops);
        run::<[u64; 16]>(log2, start, &ops);
    }

    /// Sizes that are no multiple of an atom, or of four, and those about the most that fits the
    /// line.
    #[test]
    fn a_ring_of_odd_sizes_is_a_queue(log2 in 0..=6u32, start in starts(), ops in ops()) {
        run::<[u8; 7]>(log2, start, &ops);
        run::<[u32; 3]>(log2, start, &ops);
        run::<[u64; 3]>(log2, start, &ops);
        run::<[u8; 60]>(log2, start, &ops);
        run::<[u64; 8]>(log2, start, &ops);
        run::<[u8; 85]>(log2, start, &ops);
        run::<[u32; 54]>(log2, start, &ops);
        run::<[u8; 336]>(log2, start, &ops);
        run::<[u8; 337]>(log2, start, &ops);
        run::<[u32; 25]>(log2, start, &ops);
    }

    /// `decide` on every control atom that an honest producer may have written, computed on
    /// indices that do not wrap.
    #[test]
    fn decide_as_without_wrapping(
        next in starts(),
        log2 in 0..=20u32,
        (pending, first) in (0..=1u64 << 20, prop_oneof![0..4u64, 0..=1u64 << 20]),
        is_ahead: bool,
        credit: u32,
    ) {
        let capacity = 1u64 << log2;
        let pending = pending % (capacity + 1);
        let tail = u128::from(next) + u128::from(pending);
        // The run of slots: from an unread message on, or from one taken since the credit.
        let first = if is_ahead {
            u128::from(next) + u128::from(first % (pending + 1))
        } else {
            u128::from(next.saturating_sub(first % (capacity - pending + 1)))
        };
        let expected = if pending == 0 {
            Seen::Nothing
        } else if first > u128::from(next) {
            Seen::Inline
        } else {
            Seen::Slots(pending as u32)
        };
        let control = Control { credit, early: 0, first: first as u32, tail: tail as u32 };
        prop_assert_eq!(decide(control, next, capacity as u32), expected);
    }

    /// `decide` on anything at all: never more slots than there are, and an impossible tail is
    /// either refused or not acted on.
    #[test]
    fn decide_never_exceeds_the_ring(
        next: u64, log2 in 0..=20u32, first in prop_oneof![any::<u32>(), (0..1u32 << 21)], credit: u32,
        tail in prop_oneof![any::<u32>(), (0..1u32 << 21)], near: bool,
    ) {
        let capacity = 1u32 << log2;
        let tail = if near { (next as u32).wrapping_add(tail) } else { tail };
        let ahead = (i128::from(tail) - i128::from(next)).rem_euclid(1 << 32) as u64;
        let first = if near { tail.wrapping_sub(first) } else { first };
        let run = u64::from(tail.wrapping_sub(first));
        match decide(Control { credit, early: 0, first, tail }, next, capacity) {
            Seen::Nothing => prop_assert!(ahead == 0 || ahead > u64::from(u32::MAX / 2)),
            Seen::Inline => prop_assert!(run < ahead && (1..=u64::from(capacity)).contains(&ahead)),
            Seen::Slots(n) => prop_assert!(
                u64::from(n) == ahead && ahead <= run && n >= 1 && run <= u64::from(capacity)
            ),
            Seen::Corrupt(c) if ahead <= u64::from(capacity) => {
                prop_assert!(run > u64::from(capacity));
                prop_assert_eq!((c.found, c.high), (u64::from(first), u64::from(tail)));
                prop_assert_eq!(c.low, u64::from(tail.wrapping_sub(capacity)));
            }
            Seen::Corrupt(c) => {
                prop_assert!(ahead > u64::from(capacity) && ahead <= u64::from(u32::MAX / 2));
                prop_assert_eq!((c.found, c.low), (u64::from(tail), u64::from(next as u32)));
                prop_assert_eq!(c.high, u64::from((next as u32).wrapping_add(capacity)));
            }
        }
    }

    #[test]
    fn arithmetic_as_without_wrapping(
        low in 0..u64::MAX >> 1, ahead in 0..ROUND, log2 in 0..=20u32, used in 0..=1u32 << 20,
    ) {
        prop_assert_eq!(widen((low + ahead) as u32, low), low + ahead);
        prop_assert_eq!(u128::from(stamp(low)), (u128::from(low) + 1) % (1 << 32));
        let capacity = 1 << log2;
        let used = used % (capacity + 1);
        prop_assert_eq!(room(low + u64::from(used), low, capacity), capacity - used);
    }

    /// A control atom announces just the messages in slots that may be unread, whatever the consumer has taken
    /// since: the inline message before them is none of them.
    #[test]
    fn a_control_names_only_what_is_in_slots(
        start in starts(), pushed in 1..64u64, known in 0..65u64, run in 0..65u64, taken in 0..65u64,
    ) {
        let tail = start + pushed;
        let (known, run_start) = (start + known % (pushed + 1), start + run % (pushed + 1));
        let next = known + taken % (tail - known + 1);
        let control = Control::behind_slots(run_start, known, tail, 0);
        let expected = if next == tail {
            Seen::Nothing
        } else if next < run_start {
            Seen::Inline
        } else {
            Seen::Slots((tail - next) as u32)
        };
        prop_assert_eq!(decide(control, next, 64), expected);
        prop_assert_eq!(may_go_inline(tail - next, 1, false, 1), next == tail);
        prop_assert_eq!(decide(Control::behind_inline(tail, 0), tail - 1, 64), Seen::Inline);
    }

    /// A credit of 32 bits means the one index that it can be.
    #[test]
    fn credit_as_without_wrapping(next in starts(), log2 in 0..=20u32, credit: u32, behind in 0..1u64 << 21) {
        let capacity = 1u64 << log2;
        if let Some(index) = next.checked_sub(behind) {
            let expected = (behind <= capacity).then_some(index);
            prop_assert_eq!(credit_index(index as u32, next, capacity as u32), expected);
        }
        if let Some(index) = credit_index(credit, next, capacity as u32) {
            prop_assert!(index as u32 == credit && index <= next && next - index <= capacity);
        }
    }

    /// The runs of messages are the slots of the messages.
    #[test]
    fn runs_as_one_by_one(index: u64, log2 in 0..=20u32, n in 0..=1usize << 20) {
        let capacity = 1u32 << log2;
        let n = n % (capacity as usize + 1);
        let one_by_one = (0..n as u64).map(|k| index.wrapping_add(k) as usize % capacity as usize);
        let [first, second] = runs(index, n, capacity);
        prop_assert!(second.is_empty() || first.end == capacity as usize);
        prop_assert!(first.chain(second).eq(one_by_one));
    }

    /// Asked for too many, they are still slots of the ring, each once.
    #[test]
    fn runs_stay_in_the_ring(index: u64, log2 in 0..=20u32, n: usize) {
        let capacity = 1usize << log2;
        let [first, second] = runs(index, n, capacity as u32);
        prop_assert!(first.end <= capacity && second.end <= first.start);
    }

    #[test]
    fn slots_lie_side_by_side(log2 in 0..=6u32, index: u64) {
        let (capacity, atoms) = (1u64 << log2, <[u64; 6] as Message>::SLOT_ATOMS);
        let memory = RingMemory::boxed::<[u64; 6]>(capacity as u32, 0);
        // SAFETY: the memory outlives the ring, which ends with this test case.
        let ring = unsafe { memory.ring_for_now() };
        let at = ring.slot(index).as_ptr() as usize - ring.slot(0).as_ptr() as usize;
        prop_assert_eq!(at, (u128::from(index) % u128::from(capacity)) as usize * atoms * 16);
        prop_assert_eq!(ring.slot(index).len(), atoms);
    }

    /// A line whose atoms are partly those of an earlier message, as a GPU may see it (the eight
    /// atoms are read separately) or as a GPU may write it (without a fence): nothing is taken
    /// before the last atom is there, and then the message is whole.
    #[test]
    fn old_atoms_with_new_control_are_no_message(
        start in starts(), before in 0..3u64,
        order in Just(std::array::from_fn::<usize, 18, _>(|k| k)).prop_shuffle(),
    ) {
        type M = [u32; 54];
        let memory = RingMemory::boxed::<M>(4, start);
        // SAFETY: the memory outlives the ring, which ends with this test case.
        let ring = unsafe { memory.ring_for_now() };
        let (mut producer, mut consumer) = (Outbox::new(ring), Inbox::new(ring));
        for index in start..start + before {
            producer.push(&message::<M>(index), 0).unwrap();
            prop_assert_eq!(consumer.pop::<M>(), Ok(Some(message(index))));
        }
        let index = start + before;
        let new = Control::behind_inline(index + 1, 0);
        ring.line(0).atoms[CONTROL].publish(new.to_words());
        let taken = message::<M>(index);
        let bytes: &[u8] = bytemuck::bytes_of(&taken);
        for k in order {
            prop_assert_eq!(consumer.pop::<M>(), Ok(None), "before atom {} came", k);
            prop_assert_eq!(consumer.next(), index);
            let mut words = [0u8; 16];
            words[..12].copy_from_slice(&bytes[k * INLINE_ATOM_BYTES..][..INLINE_ATOM_BYTES]);
            words[12..].copy_from_slice(&stamp(index).to_le_bytes());
            let words = u128::from_le_bytes(words);
            let atom = &ring.lines_of(0)[k / INLINE_ATOMS].atoms[k % INLINE_ATOMS];
            atom.publish([words as u64, (words >> 64) as u64]);
        }
        prop_assert_eq!(consumer.pop::<M>(), Ok(Some(taken)));
        prop_assert_eq!(consumer.pop::<M>(), Ok(None));
    }

    /// 2^32 messages after an inline message its 32-bit stamps would match again. Go there
    /// through slots, by any steps: no atom may still match, and a control atom that announces an
    /// inline message (its own atoms not yet there) must not bring the old one back.
    #[test]
    fn an_inline_line_does_not_come_round(
        start in starts(), steps in proptest::collection::vec(1..=SCRUB, 0..8), size in 0..3,
    ) {
        match size {
            0 => comes_round::<[u8; 1]>(start, &steps),
            1 => comes_round::<[u8; 84]>(start, &steps),
            _ => comes_round::<[u8; 336]>(start, &steps),
        }
    }

    /// Rings that never rang inline go round too: what `reset` left in the line must not match
    /// then, nor may the start of the run of slots stand still and wait for the index to meet it.
    #[test]
    fn a_line_that_never_rang_does_not_come_round(start in starts()) {
        never_rang::<[u64; 16]>(start);
        never_rang::<[u32; 4]>(start);
    }

    /// The scrub overwrites stamps while messages may be unread in slots. A reader that believes
    /// matching stamps before it has looked at the control atom, as a polling warp may, must not
    /// take the scrubbed line for one of them.
    #[test]
    fn a_scrubbed_line_looks_like_no_message(start in starts(), unread in 2..=8usize) {
        let memory = RingMemory::boxed::<[u32; 4]>(8, start);
        // SAFETY: the memory outlives the ring, which ends with this test case.
        let ring = unsafe { memory.ring_for_now() };
        let (mut producer, mut consumer) = (Outbox::new(ring), Inbox::new(ring));
        producer.fast_forward(SCRUB, 0);
        consumer.fast_forward(SCRUB);
        let first = producer.next();
        prop_assert!(stamps(&ring).all(|s| s == start as u32), "scrubbed too early for this test");
        let batch: Vec<[u32; 4]> = (first..).take(unread).map(message).collect();
        prop_assert_eq!(producer.push_slice(&batch, 0), Ok(unread));
        prop_assert!(stamps(&ring).all(|s| s != start as u32), "not scrubbed: no test of it");
        for index in first..=producer.next() {
            prop_assert!(stamps(&ring).all(|s| s != stamp(index)), "stamped as message {}", index);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]

    #[test]
    fn a_ring_of_the_largest_is_a_queue(log2 in 0..=3u32, start in starts(), ops in ops()) {
        run::<[u8; 8192]>(log2, start, &ops);
    }
}

fn never_rang<T: Message + PartialEq + std::fmt::Debug>(start: u64) {
    let memory = RingMemory::boxed::<T>(8, start);
    // SAFETY: the memory is dropped at the end of this function, after all its users.
    let ring = unsafe { memory.ring_for_now() };
    let (mut producer, mut consumer) = (Outbox::new(ring), Inbox::new(ring));
    let near = start + ROUND - 12;
    while producer.next() < near {
        let n = SCRUB.min(near - producer.next());
        producer.fast_forward(n, 0);
        consumer.fast_forward(n);
    }
    // Past start + 2^32 in runs, which go through slots.
    for _ in 0..8 {
        let batch = [producer.next(), producer.next() + 1, producer.next() + 2].map(message::<T>);
        assert_eq!(producer.push_slice(&batch, 0), Ok(3));
        let mut out = [T::zeroed(); 4];
        assert_eq!(consumer.pop_slice(&mut out), Ok(3), "at {:#x}", consumer.next());
        assert_eq!(out[..3], batch);
    }
}

fn comes_round<T: Message + PartialEq + std::fmt::Debug>(start: u64, steps: &[u64]) {
    let memory = RingMemory::boxed::<T>(8, start);
    // SAFETY: the memory is dropped at the end of this function, after all its users.
    let ring = unsafe { memory.ring_for_now() };
    let (mut producer, mut consumer) = (Outbox::new(ring), Inbox::new(ring));
    producer.push(&message::<T>(start), 0).unwrap();
    assert_eq!(consumer.pop::<T>(), Ok(Some(message(start))));
    assert_eq!(control(&ring, start).first, (start + 1) as u32, "the message did not go inline");
    // As the next producer may send none inline until the very last.
    let mut steps = steps.iter().copied().chain(std::iter::repeat(SCRUB));
    while producer.next() < start + ROUND {
        let n = steps.next().unwrap_or(SCRUB).min(start + ROUND - producer.next());
        producer.fast_forward(n, 0);
        consumer.fast_forward(n);
    }
    let index = start + ROUND;
    assert_eq!((producer.next(), stamp(index)), (index, stamp(start)), "once round");
    let used = T::INLINE_ATOMS;
    assert!(stamps(&ring).take(used).all(|s| s != stamp(index)), "old stamps match again");
    let new = Control::behind_inline(index + 1, 0);
    ring.line(0).atoms[CONTROL].publish(new.to_words());
    assert_eq!(consumer.pop::<T>(), Ok(None), "a message of 2^32 messages ago");
    // The real one still arrives.
    producer.push(&message::<T>(index), 0).unwrap();
    assert_eq!(consumer.pop::<T>(), Ok(Some(message(index))));
}

fn stamps(ring: &Ring) -> impl Iterator<Item = u32> {
    let atoms = ring.lines_of(0).iter().flat_map(|line| &line.atoms[..INLINE_ATOMS]);
    atoms.map(|atom| (atom.observe()[1] >> 32) as u32)
}
