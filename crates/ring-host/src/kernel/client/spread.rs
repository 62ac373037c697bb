//! How threads are spread over the channels of a client.
//!
//! A thread has a number, and with it a channel. A thread whose short waits give its processor to others, and that calls, goes by its
//! processor instead: threads that take turns on one processor meet no lock of each other's, and find what they share in its cache. It
//! may do so as long as each of its requests was answered before the next was sent, which keeps them in order whatever channels
//! they go by.

use super::crowd;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The number of the thread that first asks next.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// How a thread is told apart.
#[derive(Clone, Copy)]
enum Number {
    /// By the order in which threads first asked, as long as no request of it is under way.
    Free(usize),
    /// By that number whatever happens: requests of it may be under way.
    Kept(usize),
}

thread_local! {
    static OWN: Cell<Option<Number>> = const { Cell::new(None) };
}

/// The number by which the calling thread goes from now on, since it does not wait for the answer of what it sends.
#[inline]
pub(super) fn number_to_keep() -> usize {
    let (Number::Free(number) | Number::Kept(number)) = own();
    keep(number);
    number
}

/// The number for a call that waits for its answer. If it ends without one, the thread has to [`keep`] that number.
#[inline]
pub(super) fn number_for_call() -> usize {
    match own() {
        Number::Free(number) if crowd::is_crowded() => by_processor(number),
        Number::Free(number) | Number::Kept(number) => number,
    }
}

/// The calling thread goes by that number from now on.
pub(super) fn keep(number: usize) {
    OWN.set(Some(Number::Kept(number)));
}

#[inline]
fn own() -> Number {
    OWN.get().unwrap_or_else(|| {
        let number = Number::Free(NEXT.fetch_add(1, Relaxed));
        OWN.set(Some(number));
        number
    })
}

/// Of the processor that the thread runs on, where that can be told: threads of one processor have the same modulo the count of processors,
/// and differ beyond as their own numbers do.
fn by_processor(thread: usize) -> usize {
    match processor() {
        Some((processor, processors)) => processor.wrapping_add(processors.wrapping_mul(thread)),
        None => thread,
    }
}

/// The number of the processor that the thread runs on now, and how many the system has.
#[cfg(all(target_os = "linux", feature = "cuda", not(miri)))]
fn processor() -> Option<(usize, usize)> {
    static PROCESSORS: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let processors = PROCESSORS.get_or_init(|| {
        // All of them: a thread is often kept to some processors or to one, and may be the first that asks.
        // SAFETY: it takes a number that the library knows, and changes nothing.
        usize::try_from(unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }).ok()
    });
    // SAFETY: it takes nothing and changes nothing.
    let processor = usize::try_from(unsafe { libc::sched_getcpu() }).ok()?;
    processors.map(|count| (processor, count))
}

/// The same where it is not known.
#[cfg(not(all(target_os = "linux", feature = "cuda", not(miri))))]
fn processor() -> Option<(usize, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_number_of_its_own() {
        let here = number_for_call();
        let there = std::thread::spawn(|| [number_for_call(), number_to_keep()]).join().unwrap();
        assert_eq!((there[0], number_for_call()), (there[1], here));
        assert_ne!(there[0], here);
    }

    #[test]
    fn a_thread_in_a_crowd_goes_by_its_processor_until_a_request_is_under_way() {
        std::thread::spawn(|| {
            let own = number_for_call();
            crowd::appear();
            let of_call = number_for_call();
            match processor() {
                // It may have moved to another one since.
                Some((_, processors)) => assert_eq!(of_call / processors, own),
                None => assert_eq!(of_call, own),
            }
            // A call that was not answered.
            keep(of_call);
            assert_eq!([number_for_call(), number_to_keep()], [of_call; 2]);
        })
        .join()
        .unwrap();
        std::thread::spawn(|| {
            crowd::appear();
            let kept = number_to_keep();
            assert_eq!([number_for_call(), number_to_keep()], [kept; 2]);
        })
        .join()
        .unwrap();
    }
}
