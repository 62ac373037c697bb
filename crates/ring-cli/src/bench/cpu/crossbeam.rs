//! crossbeam's `ArrayQueue`: several may push and several may pop, here one does each.

use super::partner::{Queue, Words, answer};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// Message by message: it has no other way.
pub struct Array;

impl Queue for Array {
    const ID: &'static str = "array_queue";
    const NAME: &'static str = "ArrayQueue";
    const BATCH: usize = 1;
    type Push = Arc<ArrayQueue<Words>>;
    type Pop = Arc<ArrayQueue<Words>>;

    fn new(capacity: usize) -> (Arc<ArrayQueue<Words>>, Arc<ArrayQueue<Words>>) {
        let queue = Arc::new(ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    }

    #[inline]
    fn push(
        to: &mut Arc<ArrayQueue<Words>>,
        most: usize,
        message: impl Fn(usize) -> Words,
    ) -> usize {
        let mut n = 0;
        while n < most && to.push(message(n)).is_ok() {
            n += 1;
        }
        n
    }

    #[inline]
    fn pop(from: &mut Arc<ArrayQueue<Words>>, most: usize, mut take: impl FnMut(Words)) -> usize {
        let mut n = 0;
        while n < most
            && let Some(words) = from.pop()
        {
            take(words);
            n += 1;
        }
        n
    }

    #[inline]
    fn echo(from: &mut Arc<ArrayQueue<Words>>, to: &mut Arc<ArrayQueue<Words>>) -> usize {
        let mut n = 0;
        while let Some(words) = from.pop()
            && to.push(answer(words)).is_ok()
        {
            n += 1;
        }
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::cpu::partner::tests::carries;

    #[test]
    fn all_messages_come_back() {
        carries::<Array>();
    }
}
