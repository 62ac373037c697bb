//! Queues that others made: rtrb, message by message and by chunks, and crossbeam's `ArrayQueue`, into and
//! out of which several threads may go; here one does each.

use super::partner::{Queue, Words, answer};
use crate::bench::ring::BATCH;
use crossbeam_queue::ArrayQueue;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;

/// rtrb, message by message.
pub struct Single;

impl Queue for Single {
    const ID: &'static str = "rtrb";
    const NAME: &'static str = "rtrb";
    type Push = Producer<Words>;
    type Pop = Consumer<Words>;

    fn new(capacity: usize) -> (Producer<Words>, Consumer<Words>) {
        RingBuffer::new(capacity)
    }

    #[inline]
    fn put(to: &mut Producer<Words>, words: Words) -> bool {
        to.push(words).is_ok()
    }

    #[inline]
    fn take(from: &mut Consumer<Words>) -> Option<Words> {
        from.pop().ok()
    }
}

/// crossbeam's, message by message: it has no other way.
pub struct Array;

impl Queue for Array {
    const ID: &'static str = "array_queue";
    const NAME: &'static str = "ArrayQueue";
    type Push = Arc<ArrayQueue<Words>>;
    type Pop = Arc<ArrayQueue<Words>>;

    fn new(capacity: usize) -> (Arc<ArrayQueue<Words>>, Arc<ArrayQueue<Words>>) {
        let queue = Arc::new(ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    }

    #[inline]
    fn put(to: &mut Arc<ArrayQueue<Words>>, words: Words) -> bool {
        to.push(words).is_ok()
    }

    #[inline]
    fn take(from: &mut Arc<ArrayQueue<Words>>) -> Option<Words> {
        from.pop()
    }
}

/// rtrb by chunks: straight into and out of the slots.
pub struct Chunks;

impl Queue for Chunks {
    const ID: &'static str = "rtrb_chunks";
    const NAME: &'static str = "rtrb (chunks)";
    const BATCH: usize = BATCH;
    type Push = Producer<Words>;
    type Pop = Consumer<Words>;

    fn new(capacity: usize) -> (Producer<Words>, Consumer<Words>) {
        RingBuffer::new(capacity)
    }

    #[inline]
    fn put(to: &mut Producer<Words>, words: Words) -> bool {
        Single::put(to, words)
    }

    #[inline]
    fn take(from: &mut Consumer<Words>) -> Option<Words> {
        Single::take(from)
    }

    #[inline]
    fn push(to: &mut Producer<Words>, most: usize, message: impl Fn(usize) -> Words) -> usize {
        let n = most.min(to.slots());
        match to.write_chunk_uninit(n) {
            Ok(chunk) => chunk.fill_from_iter((0..n).map(message)),
            Err(_) => 0,
        }
    }

    #[inline]
    fn pop(from: &mut Consumer<Words>, most: usize, take: impl FnMut(Words)) -> usize {
        let n = most.min(from.slots());
        match from.read_chunk(n) {
            Ok(chunk) => {
                chunk.into_iter().for_each(take);
                n
            }
            Err(_) => 0,
        }
    }

    #[inline]
    fn echo(from: &mut Consumer<Words>, to: &mut Producer<Words>) -> usize {
        let n = from.slots().min(to.slots()).min(BATCH);
        match (from.read_chunk(n), to.write_chunk_uninit(n)) {
            (Ok(read), Ok(write)) if n > 0 => write.fill_from_iter(read.into_iter().map(answer)),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cpu::partner::tests::carries;

    #[test]
    fn all_messages_come_back() {
        carries::<Single>();
        carries::<Chunks>();
        carries::<Array>();
    }
}
