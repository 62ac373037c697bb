//! What both ends of a ring have noted, put together: of each message that was taken, when it was written. That bounds the clocks of the
//! devices at which that was.

use super::events::RingMessages;
use crate::kernel::trace::clock::{DeviceClock, Handled};
use std::collections::VecDeque;

/// Records of either side that are kept until the other's are there, at most.
const MOST_KEPT: usize = 4096;

/// What is proved by the messages of a ring, of which clocks: these are counted.
#[derive(Debug)]
pub(super) enum Proof {
    /// The host sends to a device of that clock.
    Sent(usize, Bounds<i64, Handled>),
    /// It receives from one.
    Received(usize, Bounds<i64, Handled>),
    /// A device of the first clock sends to one of the second.
    Between([usize; 2], Bounds<Handled, Handled>),
}

impl Proof {
    /// The host has sent or received messages.
    pub fn host(&mut self, messages: RingMessages, at: i64) {
        match self {
            Proof::Sent(_, bounds) | Proof::Received(_, bounds) => bounds.many(messages, at),
            Proof::Between(..) => {}
        }
    }

    /// A kernel has handled messages, of which the last one came last.
    pub fn taken(&mut self, messages: RingMessages, when: Handled) {
        let last = messages.first.wrapping_add(messages.n.saturating_sub(1).into());
        match self {
            Proof::Sent(_, bounds) => bounds.each(last, when),
            Proof::Between(_, bounds) => bounds.each(last, when),
            Proof::Received(..) => {}
        }
    }

    /// A kernel has emitted messages, of which the first one goes first.
    pub fn emitted(&mut self, messages: RingMessages, when: Handled) {
        match self {
            Proof::Received(_, bounds) => bounds.each(messages.first, when),
            Proof::Between(_, bounds) => bounds.many(messages, when),
            Proof::Sent(..) => {}
        }
    }

    /// What was noted by both ends bounds the clocks.
    pub fn teach(&mut self, clocks: &mut [DeviceClock]) {
        match self {
            Proof::Sent(clock, bounds) => {
                bounds.pair(|sent, taken| clocks[*clock].learn_sent(taken, sent));
            }
            Proof::Received(clock, bounds) => {
                bounds.pair(|received, emitted| clocks[*clock].learn_received(emitted, received));
            }
            Proof::Between(both, bounds) => {
                let Ok([from, to]) = clocks.get_disjoint_mut(*both) else { return };
                bounds.pair(|emitted, taken| DeviceClock::learn_link(from, emitted, to, taken));
            }
        }
    }
}

/// What the ends of a ring have noted: one of them messages side by side, in order, and when; the other one a message, and when.
#[derive(Debug)]
pub(super) struct Bounds<A, B> {
    many: VecDeque<(RingMessages, A)>,
    each: VecDeque<(u64, B)>,
}

impl<A, B> Default for Bounds<A, B> {
    fn default() -> Self {
        Bounds { many: VecDeque::new(), each: VecDeque::new() }
    }
}

impl<A: Copy, B: Copy> Bounds<A, B> {
    /// One end has noted messages.
    pub fn many(&mut self, messages: RingMessages, when: A) {
        push(&mut self.many, (messages, when));
    }

    /// The other one has noted a message.
    pub fn each(&mut self, index: u64, when: B) {
        push(&mut self.each, (index, when));
    }

    /// Shows `learn` what is known of the same message by both ends. What waits for the other end's record is kept, as far as there is room.
    pub fn pair(&mut self, mut learn: impl FnMut(A, B)) {
        let Bounds { many, each } = self;
        each.retain(|(index, when)| {
            let behind = many.partition_point(|(messages, _)| messages.first <= *index);
            let Some((messages, other)) = behind.checked_sub(1).and_then(|k| many.get(k)) else {
                // They come in order: if there is any, that of this message is gone.
                return many.is_empty();
            };
            if index - messages.first < u64::from(messages.n) {
                learn(*other, *when);
                return false;
            }
            behind == many.len() // it may come
        });
    }
}

fn push<T>(queue: &mut VecDeque<T>, one: T) {
    if queue.len() >= MOST_KEPT {
        queue.pop_front();
    }
    queue.push_back(one);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bounds: &mut Bounds<i64, i64>, first: u64, n: u32, at: i64) {
        bounds.many(RingMessages { ring: 0, first, n }, at);
    }

    /// What was noted of the same message.
    fn learnt(bounds: &mut Bounds<i64, i64>) -> Vec<(i64, i64)> {
        let mut learnt = Vec::new();
        bounds.pair(|sent, handled| learnt.push((handled, sent)));
        learnt
    }

    #[test]
    fn each_message_is_found_whichever_end_comes_first() {
        let mut bounds = Bounds::default();
        bounds.each(5, 50);
        assert_eq!(learnt(&mut bounds), []);
        sent(&mut bounds, 0, 4, 1);
        assert_eq!(learnt(&mut bounds), []);
        sent(&mut bounds, 4, 2, 2);
        assert_eq!(learnt(&mut bounds), [(50, 2)]);
        bounds.each(3, 30);
        bounds.each(6, 60);
        bounds.each(4, 40);
        assert_eq!(learnt(&mut bounds), [(30, 1), (40, 2)]);
        sent(&mut bounds, 6, 1, 3);
        assert_eq!(learnt(&mut bounds), [(60, 3)]);
        assert_eq!(learnt(&mut bounds), []);
    }

    #[test]
    fn what_cannot_come_any_more_is_not_waited_for() {
        let mut bounds = Bounds::default();
        sent(&mut bounds, 10, 1, 1);
        sent(&mut bounds, 20, 1, 2); // those between were overwritten
        for index in [9, 15, u64::MAX, 0] {
            bounds.each(index, 7);
        }
        assert_eq!(learnt(&mut bounds), []);
        assert_eq!(bounds.each.len(), 1, "only one that is still to come waits");
    }

    #[test]
    fn no_more_is_kept_than_that_whatever_comes() {
        let mut bounds = Bounds::default();
        for index in 0..2 * MOST_KEPT as u64 {
            bounds.each(u64::MAX - index, 0);
            sent(&mut bounds, index, 1, 0);
        }
        assert_eq!((bounds.many.len(), bounds.each.len()), (MOST_KEPT, MOST_KEPT));
    }
}
