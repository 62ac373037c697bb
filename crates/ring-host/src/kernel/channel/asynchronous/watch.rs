//! The threads that wake who waits: the device cannot.

use crate::sync::{lock, unless_locked};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// How long the watch of those who have not waited for long sleeps before it wakes them. Linux adds
/// 50 us of its own.
pub const PERIOD: Duration = Duration::from_micros(10);

/// The same for those who have waited for [`LONG`](super::LONG).
pub const LONG_PERIOD: Duration = Duration::from_millis(1);

/// Halves of channels that a watch wakes. Further ones wake themselves, again and again.
pub const MOST: usize = 256;

/// The watch of those who have not waited for long.
pub(super) static OFTEN: Watch = Watch::new(PERIOD);

/// The watch of those who have.
pub(super) static RARELY: Watch = Watch::new(LONG_PERIOD);

/// Wakers, and the thread that wakes them: started when it is first needed, asleep while there are none.
pub(super) struct Watch {
    period: Duration,
    table: Mutex<Table>,
    /// The table is no longer empty.
    filled: Condvar,
}

/// Who is to be woken next.
struct Table {
    wakers: heapless::Vec<Waker, MOST>,
    /// Counts tables: places in an earlier one are no places in this one.
    round: u64,
    is_watched: bool,
}

/// Where a half's waker is in the table, if it is there.
#[derive(Debug, Default)]
pub(super) struct Place {
    round: u64,
    index: usize,
}

impl Watch {
    pub const fn new(period: Duration) -> Watch {
        let table = Table { wakers: heapless::Vec::new(), round: 1, is_watched: false };
        Watch { period, table: Mutex::new(table), filled: Condvar::new() }
    }

    /// Wakes `waker`, in place of one that was given for `place` before and not woken yet, once and
    /// soon. Never waits; false if it cannot be done now.
    pub fn wake_soon(&'static self, place: &mut Place, waker: &Waker) -> bool {
        let waker = waker.clone();
        let Some(mut table) = unless_locked(self.table.try_lock()) else { return false };
        if !table.is_watched {
            let watch = thread::Builder::new().name("ring-watch".to_owned());
            table.is_watched = watch.spawn(|| self.watch()).is_ok();
            if !table.is_watched {
                return false;
            }
        }
        if place.round == table.round {
            let before = mem::replace(&mut table.wakers[place.index], waker);
            drop(table);
            drop(before); // it is the executor's: not under our lock
            return true;
        }
        *place = Place { round: table.round, index: table.wakers.len() };
        let pushed = table.wakers.push(waker);
        if pushed.is_err() {
            place.round = 0; // no table's
        }
        drop(table);
        if place.index == 0 {
            self.filled.notify_one();
        }
        pushed.is_ok()
    }

    fn watch(&self) {
        loop {
            drop(self.filled.wait_while(lock(&self.table), |table| table.wakers.is_empty()));
            thread::sleep(self.period);
            let mut table = lock(&self.table);
            table.round += 1;
            let due = mem::take(&mut table.wakers);
            drop(table);
            for waker in due {
                // One executor's panic must not keep the others asleep, nor the panic's own drop.
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
                    mem::forget(panic);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    use std::task::Wake;
    use std::time::Instant;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker that panics"));
        }
    }

    /// Registers, however often the watch has the table at the moment.
    fn register(watch: &'static Watch, place: &mut Place, waker: &Waker) {
        until(|| watch.wake_soon(place, waker));
    }

    fn until(mut done: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < Duration::from_secs(20), "not within 20 s");
            thread::yield_now();
        }
    }

    /// A watch whose thread does not run: its table stays as it is filled.
    fn unwatched() -> &'static Watch {
        let watch = Box::leak(Box::new(Watch::new(PERIOD)));
        lock(&watch.table).is_watched = true;
        watch
    }

    #[test]
    fn each_registration_wakes_once_and_a_panic_harms_nobody() {
        static OWN: Watch = Watch::new(PERIOD);
        let counter = Arc::new(Counter::default());
        let (waker, panics) = (Waker::from(Arc::clone(&counter)), Waker::from(Arc::new(Panics)));
        let (mut place, mut other) = (Place::default(), Place::default());
        for n in 1..=100 {
            register(&OWN, &mut other, &panics);
            register(&OWN, &mut place, &waker);
            until(|| counter.0.load(SeqCst) == n);
        }
        until(|| lock(&OWN.table).wakers.is_empty());
        assert_eq!(counter.0.load(SeqCst), 100);
    }

    #[test]
    fn the_newest_waker_counts() {
        let watch = unwatched();
        let [first, second] = [(); 2].map(|()| Arc::new(Counter::default()));
        let mut place = Place::default();
        assert!(watch.wake_soon(&mut place, &Waker::from(Arc::clone(&first))));
        assert!(watch.wake_soon(&mut place, &Waker::from(Arc::clone(&second))));
        assert_eq!(Arc::strong_count(&first), 1, "its waker was dropped");
        assert_eq!(lock(&watch.table).wakers.len(), 1);
        assert_eq!(Arc::strong_count(&second), 2);
    }

    #[test]
    fn a_full_table_refuses_who_is_not_in_it() {
        let watch = unwatched();
        let mut places: Vec<Place> = (0..MOST).map(|_| Place::default()).collect();
        for place in &mut places {
            assert!(watch.wake_soon(place, Waker::noop()));
        }
        let mut late = Place::default();
        for _ in 0..3 {
            assert!(!watch.wake_soon(&mut late, Waker::noop()));
        }
        assert!(places.iter_mut().all(|place| watch.wake_soon(place, Waker::noop())));
        assert_eq!(lock(&watch.table).wakers.len(), MOST);
    }

    #[test]
    fn nobody_waits_for_the_table() {
        let watch = unwatched();
        let _table = lock(&watch.table);
        assert!(!watch.wake_soon(&mut Place::default(), Waker::noop()));
    }
}
