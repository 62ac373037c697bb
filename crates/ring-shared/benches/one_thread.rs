//! Messages of 64 bytes in and out again, in one thread: what the code costs while all memory is
//! in the nearest cache.
//!
//!     cargo bench -p ring-shared --bench one_thread

mod contenders;

use contenders::{BATCH, Crossbeam, Message, Queue, Ring, Rtrb};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

/// One in, one out. In the ring of this crate the message travels inline.
#[divan::bench(types = [Ring, Rtrb, Crossbeam])]
fn single<Q: Queue>(bencher: Bencher) {
    let (mut sender, mut receiver) = Q::new();
    let message: Message = [7; 8];
    bencher.counter(ItemsCount::new(1u32)).bench_local(|| {
        assert!(Q::push(&mut sender, black_box(&message)));
        let message = Q::pop(&mut receiver);
        Q::note_answered(&mut sender);
        message
    });
}

/// Many in, one by one, then all out, one by one: these go through slots.
#[divan::bench(types = [Ring, Rtrb, Crossbeam])]
fn single_queued<Q: Queue>(bencher: Bencher) {
    let (mut sender, mut receiver) = Q::new();
    let message: Message = [7; 8];
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            assert!(Q::push(&mut sender, black_box(&message)));
        }
        while let Some(message) = Q::pop(&mut receiver) {
            black_box(&message);
        }
    });
}

/// A batch in, a batch out.
#[divan::bench(types = [Ring, Rtrb, Crossbeam])]
fn batch<Q: Queue>(bencher: Bencher) {
    let (mut sender, mut receiver) = Q::new();
    let (messages, mut out): (_, [Message; BATCH]) = ([[7; 8]; BATCH], [[0; 8]; BATCH]);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        assert_eq!(Q::push_batch(&mut sender, black_box(&messages)), BATCH);
        assert_eq!(Q::pop_batch(&mut receiver, black_box(&mut out)), BATCH);
    });
}

/// As `batch`, but made in its place and looked at there.
#[divan::bench]
fn batch_by_closures(bencher: Bencher) {
    let (mut producer, mut consumer) = Ring::new();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        let first = black_box(7u64);
        assert_eq!(producer.push_each(BATCH, 0, |k| [first + k as u64; 8]), Ok(BATCH));
        let mut sum = [0u64; 8];
        let add = |message: &Message| {
            sum.iter_mut().zip(message).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        };
        assert_eq!(consumer.pop_each(BATCH, add), Ok(BATCH));
        sum
    });
}
