//! The calling thread's number, by which threads are spread over channels.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// No number yet.
const NONE: usize = usize::MAX;

/// The number of the thread that first asks next.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static OWN: Cell<usize> = const { Cell::new(NONE) };
}

/// Threads are numbered from 0 in the order in which they first ask.
#[inline]
pub(super) fn thread_number() -> usize {
    OWN.with(|own| match own.get() {
        NONE => {
            let number = NEXT.fetch_add(1, Relaxed);
            own.set(number);
            number
        }
        number => number,
    })
}

#[cfg(test)]
mod tests {
    use super::thread_number;

    #[test]
    fn each_thread_keeps_a_number_of_its_own() {
        let here = thread_number();
        let there = std::thread::spawn(|| [thread_number(), thread_number()]).join().unwrap();
        assert_eq!((there[0], thread_number()), (there[1], here));
        assert_ne!(there[0], here);
    }
}
