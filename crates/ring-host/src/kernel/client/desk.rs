//! Which answer of a channel is whose: the calls in flight in their order, and who waits for them.

use crate::sync::Thread;
use std::collections::VecDeque;

/// What became of an answer.
pub(super) enum Given<R> {
    /// It is the caller's own.
    Own(R),
    /// It lies ready for another; the thread waits for it, if there is one.
    ToAnother(Option<Thread>),
}

/// A call's place between its request and its answer.
enum Place<R> {
    /// No call has it.
    Free,
    /// The answer has not come; the thread is parked until it has, or until it is to receive.
    Expected(Option<Thread>),
    /// The answer has not come, and nobody wants it any more.
    Forgotten,
    /// The answer, until its caller takes it.
    Answered(R),
}

/// The places of the calls of one channel. What it has room for is allocated when it is made.
pub(super) struct Desk<R> {
    places: Box<[Place<R>]>,
    free: Vec<u32>,
    /// The places whose requests are sent and not answered, in the order of the requests, in which the answers come.
    in_flight: VecDeque<u32>,
    /// The places for whose answers a thread is parked, in the order in which they were.
    parked: VecDeque<u32>,
}

impl<R> Desk<R> {
    /// A desk with so many places.
    pub fn new(places: u32) -> Desk<R> {
        let room = places as usize;
        Desk {
            places: (0..places).map(|_| Place::Free).collect(),
            free: (0..places).rev().collect(),
            in_flight: VecDeque::with_capacity(room),
            parked: VecDeque::with_capacity(room),
        }
    }

    /// How many places there are.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// A place for the request that is sent next, if one is free.
    pub fn take(&mut self) -> Option<u32> {
        let place = self.free.pop()?;
        self.places[place as usize] = Place::Expected(None);
        self.in_flight.push_back(place);
        Some(place)
    }

    /// Gives back the place that was taken last: its request was not sent.
    pub fn give_back_last(&mut self) {
        if let Some(place) = self.in_flight.pop_back() {
            self.release(place);
        }
    }

    /// Gives the next answer to whom it belongs: to the place `own`, or to another.
    pub fn give(&mut self, answer: R, own: Option<u32>) -> Given<R> {
        // As many answers come as there were requests: the ring sees to that.
        let Some(place) = self.in_flight.pop_front() else { return Given::ToAnother(None) };
        if own == Some(place) {
            self.release(place);
            return Given::Own(answer);
        }
        match std::mem::replace(&mut self.places[place as usize], Place::Answered(answer)) {
            Place::Expected(thread) => {
                self.leave_the_parked(place, thread.is_some());
                Given::ToAnother(thread)
            }
            Place::Forgotten | Place::Free | Place::Answered(_) => {
                self.release(place);
                Given::ToAnother(None)
            }
        }
    }

    /// The answer of a place, if it has come; then the place is free.
    pub fn collect(&mut self, place: u32) -> Option<R> {
        match std::mem::replace(&mut self.places[place as usize], Place::Free) {
            Place::Answered(answer) => {
                self.free.push(place);
                Some(answer)
            }
            other => {
                self.places[place as usize] = other;
                None
            }
        }
    }

    /// The same; if there is none yet, the thread is about to be parked until there is, or until it is
    /// [`next`](Self::next).
    pub fn collect_or_park(&mut self, place: u32, thread: Thread) -> Option<R> {
        let answer = self.collect(place);
        if answer.is_none() {
            self.stay(place);
            self.places[place as usize] = Place::Expected(Some(thread));
            self.parked.push_back(place);
        }
        answer
    }

    /// The thread of that place is not parked any more.
    pub fn stay(&mut self, place: u32) {
        if let Place::Expected(thread) = &mut self.places[place as usize] {
            let was_parked = thread.take().is_some();
            self.leave_the_parked(place, was_parked);
        }
    }

    /// The thread that has been parked longest, which then is not any more.
    pub fn next(&mut self) -> Option<Thread> {
        while let Some(place) = self.parked.pop_front() {
            if let Place::Expected(thread @ Some(_)) = &mut self.places[place as usize] {
                return thread.take();
            }
        }
        None
    }

    /// Nobody wants that answer any more.
    pub fn forget(&mut self, place: u32) {
        if self.collect(place).is_none() {
            self.stay(place);
            self.places[place as usize] = Place::Forgotten;
        }
    }

    /// Takes a place from those whose threads are parked, if it is one.
    fn leave_the_parked(&mut self, place: u32, was_parked: bool) {
        if was_parked && let Some(at) = self.parked.iter().position(|parked| *parked == place) {
            self.parked.remove(at);
        }
    }

    fn release(&mut self, place: u32) {
        self.places[place as usize] = Place::Free;
        self.free.push(place);
    }
}

#[cfg(test)]
mod tests {
    use super::{Desk, Given};
    use crate::sync::current;

    /// Whose the answer is: the caller's own, or a thread's that is parked.
    fn own(given: Given<u32>) -> Option<u32> {
        match given {
            Given::Own(answer) => Some(answer),
            Given::ToAnother(_) => None,
        }
    }

    #[test]
    fn answers_go_by_the_order_of_the_requests() {
        let mut desk = Desk::new(3);
        let places: Vec<u32> = std::iter::from_fn(|| desk.take()).collect();
        assert_eq!((places.len(), desk.take()), (3, None));
        assert_eq!(own(desk.give(10, Some(places[1]))), None);
        assert_eq!(own(desk.give(11, Some(places[1]))), Some(11));
        assert_eq!(own(desk.give(12, None)), None);
        assert_eq!([0, 1, 2].map(|k| desk.collect(places[k])), [Some(10), None, Some(12)]);
        assert_eq!(std::iter::from_fn(|| desk.take()).count(), 3);
    }

    #[test]
    fn what_was_not_sent_or_is_forgotten_leaves_its_place() {
        let mut desk = Desk::new(2);
        let sent = desk.take().unwrap();
        desk.take().unwrap();
        desk.give_back_last();
        desk.forget(sent);
        // Its answer comes still, and is nobody's.
        let next = desk.take().unwrap();
        assert_eq!(desk.take(), None);
        assert_eq!(own(desk.give(1, Some(next))), None);
        assert_eq!(own(desk.give(2, Some(next))), Some(2));
        let answered = desk.take().unwrap();
        assert_eq!(own(desk.give(3, None)), None);
        desk.forget(answered);
        assert_eq!((desk.take().is_some(), desk.take().is_some(), desk.take()), (true, true, None));
    }

    /// Whoever was noted to be parked and received instead is passed over.
    #[test]
    fn the_next_is_one_that_still_waits() {
        let mut desk = Desk::new(2);
        let places: Vec<u32> = std::iter::from_fn(|| desk.take()).collect();
        for place in &places {
            assert_eq!(desk.collect_or_park(*place, current()), None);
        }
        assert_eq!(own(desk.give(1, Some(places[0]))), Some(1));
        assert!(desk.next().is_some());
        assert!(desk.next().is_none());
    }

    #[test]
    fn who_is_parked_is_woken_once_and_in_order() {
        let mut desk = Desk::<u32>::new(4);
        let places: Vec<u32> = std::iter::from_fn(|| desk.take()).collect();
        for place in &places {
            assert_eq!(desk.collect_or_park(*place, current()), None);
            assert_eq!(desk.collect_or_park(*place, current()), None, "parked again");
        }
        desk.stay(places[1]);
        // Who gets an answer need not receive.
        assert!(matches!(desk.give(7, None), Given::ToAnother(Some(_))));
        assert_eq!(desk.parked, [places[2], places[3]]);
        assert!(desk.next().is_some());
        assert!(matches!(desk.give(8, None), Given::ToAnother(None)));
        desk.forget(places[3]);
        assert!(desk.next().is_none());
    }
}
