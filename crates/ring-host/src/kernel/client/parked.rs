//! The calls whose threads are parked, in the order in which they were.

use crate::sync::{AtomicU32, Mutex, MutexGuard, fence, unpoisoned};
use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// The places of calls whose threads are parked, or were and have not left yet. What it has room for is allocated when it is made.
#[derive(Debug)]
pub(super) struct Parked {
    places: Mutex<VecDeque<u32>>,
    /// How many they are. So long as nobody is parked, this is only read.
    count: AtomicU32,
}

impl Parked {
    /// For so many calls.
    pub fn new(calls: u32) -> Parked {
        let places = Mutex::new(VecDeque::with_capacity(calls as usize));
        Parked { places, count: AtomicU32::new(0) }
    }

    /// A call's thread is about to be parked. It is in here no more than once. Whoever lets go of something before it calls
    /// [`next`](Self::next) finds this call there, or the caller of this finds that let go of behind it.
    pub fn join(&self, place: u32) {
        let mut places = self.lock();
        places.push_back(place);
        self.counted(&places);
        drop(places);
        // SYNC: one of this and of the fence in `next` is before the other; the later one's thread sees what was before the first.
        fence(SeqCst);
    }

    /// It is not parked any more.
    pub fn leave(&self, place: u32) {
        let mut places = self.lock();
        if let Some(at) = places.iter().position(|parked| *parked == place) {
            places.remove(at);
            self.counted(&places);
        }
    }

    /// The call that has been in here longest, which then is not any more.
    #[inline]
    pub fn next(&self) -> Option<u32> {
        // SYNC: see `join`.
        fence(SeqCst);
        if self.count.load(Relaxed) == 0 { None } else { self.take_next() }
    }

    #[cold]
    fn take_next(&self) -> Option<u32> {
        let mut places = self.lock();
        let next = places.pop_front();
        self.counted(&places);
        next
    }

    fn counted(&self, places: &VecDeque<u32>) {
        self.count.store(places.len() as u32, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u32>> {
        unpoisoned(self.places.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::Parked;

    #[test]
    fn the_longest_parked_is_next() {
        let parked = Parked::new(3);
        assert_eq!(parked.next(), None);
        (4..7).for_each(|place| parked.join(place));
        parked.leave(5);
        parked.leave(5);
        assert_eq!([parked.next(), parked.next(), parked.next()], [Some(4), Some(6), None]);
    }
}
