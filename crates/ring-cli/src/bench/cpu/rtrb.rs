//! rtrb: message by message, and by chunks.

use super::partner::{Queue, Words, answer};
use crate::bench::ring::BATCH;
use rtrb::{Consumer, Producer, RingBuffer};

/// Message by message.
pub struct Single;

impl Queue for Single {
    const ID: &'static str = "rtrb";
    const NAME: &'static str = "rtrb";
    const BATCH: usize = 1;
    type Push = Producer<Words>;
    type Pop = Consumer<Words>;

    fn new(capacity: usize) -> (Producer<Words>, Consumer<Words>) {
        RingBuffer::new(capacity)
    }

    #[inline]
    fn push(to: &mut Producer<Words>, most: usize, message: impl Fn(usize) -> Words) -> usize {
        let mut n = 0;
        while n < most && to.push(message(n)).is_ok() {
            n += 1;
        }
        n
    }

    #[inline]
    fn pop(from: &mut Consumer<Words>, most: usize, mut take: impl FnMut(Words)) -> usize {
        let mut n = 0;
        while n < most
            && let Ok(words) = from.pop()
        {
            take(words);
            n += 1;
        }
        n
    }

    #[inline]
    fn echo(from: &mut Consumer<Words>, to: &mut Producer<Words>) -> usize {
        let mut n = 0;
        while let Ok(words) = from.pop()
            && to.push(answer(words)).is_ok()
        {
            n += 1;
        }
        n
    }
}

/// By chunks: straight into and out of the slots.
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
    }
}
