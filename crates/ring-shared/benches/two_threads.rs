//! Messages of 64 bytes from one thread to another, each pinned to a core of its own: what the
//! traffic between the cores costs.
//!
//!     cargo bench -p ring-shared --bench two_threads

mod contenders;

use contenders::{BATCH, Crossbeam, Message, Queue, Ring, Rtrb};
use core_affinity::CoreId;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use std::hint::spin_loop;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Messages a sample: many more than a queue holds, so that the slower end is measured.
const MESSAGES: usize = 256 * BATCH;

/// All cores, seen before any thread is pinned: the pinned see only their own.
static CORES: LazyLock<Vec<CoreId>> =
    LazyLock::new(|| core_affinity::get_core_ids().unwrap_or_default());

fn main() {
    if CORES.len() < 2 {
        eprintln!("fewer than two cores: these figures say nothing");
    }
    divan::main();
}

/// Runs `here` on one core while `there` runs on another until it is told to stop.
fn beside(there: impl FnMut() + Send, here: impl FnOnce()) {
    /// Tells it also when `here` panics.
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }
    let mut there = there;
    let stopped = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let stop = Stop(&stopped);
        threads.spawn(|| {
            pin(1);
            while !stopped.load(Relaxed) {
                there();
            }
        });
        pin(0);
        here();
        drop(stop);
    });
}

fn pin(core: usize) {
    if let Some(core) = CORES.get(core) {
        core_affinity::set_for_current(*core);
    }
}

/// One by one, as fast as they are taken.
#[divan::bench(types = [Ring, Rtrb, Crossbeam], sample_size = 1, sample_count = 100)]
fn single<Q: Queue>(bencher: Bencher) {
    let (mut sender, mut receiver) = Q::new();
    let message: Message = [7; 8];
    let take = || match Q::pop(&mut receiver) {
        Some(message) => _ = black_box(message),
        None => spin_loop(),
    };
    beside(take, || {
        bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
            for _ in 0..MESSAGES {
                while !Q::push(&mut sender, black_box(&message)) {
                    spin_loop();
                }
            }
        });
    });
}

/// In batches, as fast as they are taken.
#[divan::bench(types = [Ring, Rtrb, Crossbeam], sample_size = 1, sample_count = 100)]
fn batch<Q: Queue>(bencher: Bencher) {
    let (mut sender, mut receiver) = Q::new();
    let (messages, mut out): (_, [Message; BATCH]) = ([[7; 8]; BATCH], [[0; 8]; BATCH]);
    let take = || {
        if Q::pop_batch(&mut receiver, black_box(&mut out)) == 0 {
            spin_loop();
        }
    };
    beside(take, || {
        bencher.counter(ItemsCount::new(MESSAGES)).bench_local(|| {
            let mut left = MESSAGES;
            while left > 0 {
                let sent = Q::push_batch(&mut sender, black_box(&messages[..left.min(BATCH)]));
                left -= sent;
                if sent == 0 {
                    spin_loop();
                }
            }
        });
    });
}

/// There and back, one at a time.
#[divan::bench(types = [Ring, Rtrb, Crossbeam], sample_size = 100, sample_count = 1000)]
fn round_trip<Q: Queue>(bencher: Bencher) {
    let ((mut ask, mut take), (mut answer, mut hear)) = (Q::new(), Q::new());
    let message: Message = [7; 8];
    let echo = || {
        if let Some(request) = Q::pop(&mut take) {
            // The next request is sent only when the last answer was received.
            Q::note_answered(&mut answer);
            assert!(Q::push(&mut answer, &request));
        }
    };
    beside(echo, || {
        bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
            assert!(Q::push(&mut ask, black_box(&message)));
            let response = loop {
                if let Some(response) = Q::pop(&mut hear) {
                    break response;
                }
            };
            Q::note_answered(&mut ask);
            response
        });
    });
}
