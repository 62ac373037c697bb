//! The places of a channel's calls between their requests and their answers: which is free, which answer is for which, and
//! who waits for it.
//!
//! Answers come in the order of the requests, so a queue of places says whose each is. It has one writer and one reader at a
//! time: whoever sends, which [`Sent`] proves, and whoever receives, which [`Received`] proves.

use crate::sync::{AtomicBool, AtomicU32, Mutex, Thread, unpoisoned};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Behind the last of the free places, and where no place is in the queue.
const NONE: u32 = u32::MAX;

/// What became of an answer.
pub(super) enum Given<R> {
    /// It is the caller's own.
    Own(R),
    /// It lies ready for another; the thread is parked until it does, if there is one.
    ToAnother(Option<Thread>),
}

/// How many requests were sent. Who has it is the only one who sends.
#[derive(Debug)]
pub(super) struct Sent(usize);

/// How many answers have come. Who has it is the only one who receives.
#[derive(Debug)]
pub(super) struct Received(usize);

/// What a place's answer is to become, or is.
enum Answer<R> {
    /// It has not come, or the place is free; the thread is parked until it has, or until it is to receive.
    Expected(Option<Thread>),
    /// It has not come, and nobody wants it any more.
    Forgotten,
    /// It is there until its caller takes it.
    There(R),
}

/// A place, on cache lines of its own: its caller looks at it again and again.
#[repr(align(128))]
struct Place<R> {
    /// The answer is [`There`](Answer::There).
    is_there: AtomicBool,
    answer: Mutex<Answer<R>>,
    /// The free place below this one, if this one is free.
    below: AtomicU32,
}

/// The places of the calls of one channel.
pub(super) struct Places<R> {
    each: Box<[Place<R>]>,
    /// The free place that was freed last. The free ones are a stack: any thread puts one on it, and only who sends takes one.
    free: AtomicU32,
    /// The places whose requests are sent and not answered: that of request `n` at `n`, modulo the length, a power of two.
    in_flight: Box<[AtomicU32]>,
}

impl<R> Places<R> {
    /// So many places, all free, of which there is one at least.
    pub fn new(places: u32) -> (Places<R>, Sent, Received) {
        let place = |below: Option<u32>| Place {
            is_there: AtomicBool::new(false),
            answer: Mutex::new(Answer::Expected(None)),
            below: AtomicU32::new(below.unwrap_or(NONE)),
        };
        let made = Places {
            each: (0..places).map(|index| place(index.checked_sub(1))).collect(),
            free: AtomicU32::new(places - 1),
            in_flight: (0..places.next_power_of_two()).map(|_| AtomicU32::new(NONE)).collect(),
        };
        (made, Sent(0), Received(0))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.each.len()
    }

    /// A place for the request that is sent next, if one is free.
    pub fn take(&self, sent: &mut Sent) -> Option<u32> {
        // SYNC: acquires `release`, and with it what was in the place before, and that its entry in the queue is no longer read.
        let mut top = self.free.load(Acquire);
        while top != NONE {
            // It stays the top until it is taken here, or until others are put on it: nobody else takes any.
            let below = self.each[top as usize].below.load(Relaxed);
            match self.free.compare_exchange_weak(top, below, Acquire, Acquire) {
                Ok(_) => {
                    // SYNC: released to `give`.
                    self.entry(sent.0).store(top, Release);
                    sent.0 = sent.0.wrapping_add(1);
                    return Some(top);
                }
                Err(now) => top = now,
            }
        }
        None
    }

    /// Gives back the place that was taken last: its request was not sent.
    pub fn give_back_last(&self, sent: &mut Sent) {
        sent.0 = sent.0.wrapping_sub(1);
        let entry = self.entry(sent.0);
        let place = entry.load(Relaxed);
        entry.store(NONE, Relaxed);
        self.release(place);
    }

    /// Gives the next answer to whom it belongs: to the place `own`, or to another.
    pub fn give(&self, received: &mut Received, answer: R, own: Option<u32>) -> Given<R> {
        let entry = self.entry(received.0);
        // SYNC: acquires `take`.
        let place = entry.load(Acquire);
        if place == NONE {
            return Given::ToAnother(None); // an answer without a request: the ring sees to it that there is none
        }
        entry.store(NONE, Relaxed);
        received.0 = received.0.wrapping_add(1);
        if own == Some(place) {
            self.release(place);
            return Given::Own(answer);
        }
        let Place { is_there, answer: kept, .. } = &self.each[place as usize];
        let mut kept = unpoisoned(kept.lock());
        match &mut *kept {
            Answer::Expected(thread) => {
                let thread = thread.take();
                *kept = Answer::There(answer);
                // SYNC: released to `collect`, which locks then; nothing is read by this alone.
                is_there.store(true, Release);
                Given::ToAnother(thread)
            }
            Answer::Forgotten | Answer::There(_) => {
                *kept = Answer::Expected(None);
                drop(kept);
                self.release(place);
                Given::ToAnother(None)
            }
        }
    }

    /// The answer of a place, if it has come; then the place is free.
    #[inline]
    pub fn collect(&self, place: u32) -> Option<R> {
        // SYNC: acquires `give`.
        if self.each[place as usize].is_there.load(Acquire) {
            self.take_answer(place)
        } else {
            None
        }
    }

    /// The same; if there is none yet, the thread is about to be parked until there is, or until it is
    /// [woken to receive](Self::woken).
    pub fn collect_or_park(&self, place: u32, thread: Thread) -> Option<R> {
        let mut answer = unpoisoned(self.each[place as usize].answer.lock());
        if let Answer::Expected(parked) = &mut *answer {
            *parked = Some(thread);
            return None;
        }
        drop(answer);
        self.take_answer(place)
    }

    /// The thread that is parked for the answer of that place, which then is not any more.
    pub fn woken(&self, place: u32) -> Option<Thread> {
        match &mut *unpoisoned(self.each[place as usize].answer.lock()) {
            Answer::Expected(thread) => thread.take(),
            Answer::Forgotten | Answer::There(_) => None,
        }
    }

    /// Nobody wants that answer any more.
    pub fn forget(&self, place: u32) {
        let mut answer = unpoisoned(self.each[place as usize].answer.lock());
        if let Answer::Expected(_) = &*answer {
            *answer = Answer::Forgotten;
        } else {
            drop(answer);
            self.take_answer(place);
        }
    }

    /// The answer of a place if it has come.
    fn take_answer(&self, place: u32) -> Option<R> {
        let Place { is_there, answer, .. } = &self.each[place as usize];
        let mut answer = unpoisoned(answer.lock());
        match std::mem::replace(&mut *answer, Answer::Expected(None)) {
            Answer::There(taken) => {
                is_there.store(false, Relaxed);
                drop(answer);
                self.release(place);
                Some(taken)
            }
            other => {
                *answer = other;
                None
            }
        }
    }

    /// Puts a place, which expects an answer that nobody is parked for, on the free ones.
    fn release(&self, place: u32) {
        let mut top = self.free.load(Relaxed);
        loop {
            self.each[place as usize].below.store(top, Relaxed);
            // SYNC: released to `take`.
            match self.free.compare_exchange_weak(top, place, AcqRel, Relaxed) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    fn entry(&self, n: usize) -> &AtomicU32 {
        &self.in_flight[n & (self.in_flight.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::{Given, Places, Sent};
    use crate::sync::current;

    /// Whose the answer is: the caller's own, or a thread's that is parked.
    fn own(given: Given<u32>) -> Option<u32> {
        match given {
            Given::Own(answer) => Some(answer),
            Given::ToAnother(_) => None,
        }
    }

    fn all(places: &Places<u32>, sent: &mut Sent) -> Vec<u32> {
        std::iter::from_fn(|| places.take(sent)).collect()
    }

    #[test]
    fn answers_go_by_the_order_of_the_requests() {
        let (places, mut sent, mut received) = Places::new(3);
        let taken = all(&places, &mut sent);
        assert_eq!(taken.len(), 3);
        assert_eq!(own(places.give(&mut received, 10, Some(taken[1]))), None);
        assert_eq!(own(places.give(&mut received, 11, Some(taken[1]))), Some(11));
        assert_eq!(own(places.give(&mut received, 12, None)), None);
        assert_eq!([0, 1, 2].map(|k| places.collect(taken[k])), [Some(10), None, Some(12)]);
        assert_eq!(own(places.give(&mut received, 13, None)), None, "without a request");
        assert_eq!(all(&places, &mut sent).len(), 3);
    }

    #[test]
    fn what_was_not_sent_or_is_forgotten_leaves_its_place() {
        let (places, mut sent, mut received) = Places::new(2);
        let forgotten = places.take(&mut sent).unwrap();
        places.take(&mut sent).unwrap();
        places.give_back_last(&mut sent);
        places.forget(forgotten);
        // Its answer comes still, and is nobody's.
        let next = places.take(&mut sent).unwrap();
        assert_eq!(places.take(&mut sent), None);
        assert_eq!(own(places.give(&mut received, 1, Some(next))), None);
        assert_eq!(own(places.give(&mut received, 2, Some(next))), Some(2));
        let answered = places.take(&mut sent).unwrap();
        assert_eq!(own(places.give(&mut received, 3, None)), None);
        places.forget(answered);
        assert_eq!(all(&places, &mut sent).len(), 2);
    }

    #[test]
    fn who_is_parked_is_woken_once() {
        let (places, mut sent, mut received) = Places::new(2);
        let taken = all(&places, &mut sent);
        for place in &taken {
            assert_eq!(places.collect_or_park(*place, current()), None);
            assert_eq!(places.collect_or_park(*place, current()), None, "parked again");
        }
        assert!(matches!(places.give(&mut received, 7, None), Given::ToAnother(Some(_))));
        assert!(places.woken(taken[0]).is_none(), "who has an answer need not receive");
        assert!(places.woken(taken[1]).is_some());
        assert!(places.woken(taken[1]).is_none());
        assert!(matches!(places.give(&mut received, 8, None), Given::ToAnother(None)));
        assert_eq!(
            taken.iter().map(|place| places.collect(*place)).collect::<Vec<_>>(),
            [Some(7), Some(8)]
        );
    }

    /// Far more calls than places, in other orders than that of the queue.
    #[test]
    fn places_are_used_again_and_again() {
        let (places, mut sent, mut received) = Places::new(5);
        for round in 0..100u32 {
            let taken = all(&places, &mut sent);
            assert_eq!(taken.len(), 5, "round {round}");
            for n in 0..5 {
                assert_eq!(own(places.give(&mut received, round * 5 + n, None)), None);
            }
            for n in 0..5 {
                let n = (n * 3 + round) % 5;
                assert_eq!(places.collect(taken[n as usize]), Some(round * 5 + n));
            }
        }
    }
}
