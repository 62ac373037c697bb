//! What the host's end of a ring and the kernel at the other one noted, put together: it bounds the clock of the kernel's device.

use super::events::RingMessages;
use crate::kernel::trace::clock::Handled;
use std::collections::VecDeque;

/// Records of either side that are kept until the other's are there, at most.
const MOST_KEPT: usize = 4096;

/// What both ends have noted of a ring.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    /// Which messages the host has sent or received, in order, and when.
    host: VecDeque<(RingMessages, i64)>,
    /// A message that was handled or emitted, and when.
    handled: VecDeque<(u64, Handled)>,
}

impl Bounds {
    /// The host has sent or received messages.
    pub fn host(&mut self, messages: RingMessages, at: i64) {
        push(&mut self.host, (messages, at));
    }

    /// The kernel has handled or emitted a message.
    pub fn handled(&mut self, index: u64, when: Handled) {
        push(&mut self.handled, (index, when));
    }

    /// Shows `learn` what is known of the same message by both ends: when the kernel handled or emitted it, and when the host sent or received
    /// it. What waits for the other end's record is kept, as far as there is room.
    pub fn pair(&mut self, mut learn: impl FnMut(Handled, i64)) {
        let Bounds { host, handled } = self;
        handled.retain(|(index, when)| {
            let behind = host.partition_point(|(messages, _)| messages.first <= *index);
            let Some((messages, at)) = behind.checked_sub(1).and_then(|k| host.get(k)) else {
                // Those of the host come in order: if there is any, that of this message is gone.
                return host.is_empty();
            };
            if index - messages.first < u64::from(messages.n) {
                learn(*when, *at);
                return false;
            }
            behind == host.len() // it may come
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

    fn handled(time: i64) -> Handled {
        Handled { unseen: (0, 0), began: (time, 0), ended: (time, 0) }
    }

    fn sent(bounds: &mut Bounds, first: u64, n: u32, at: i64) {
        bounds.host(RingMessages { ring: 0, first, n }, at);
    }

    /// The device's times and the host's.
    fn learnt(bounds: &mut Bounds) -> Vec<(i64, i64)> {
        let mut learnt = Vec::new();
        bounds.pair(|when, at| learnt.push((when.began.0, at)));
        learnt
    }

    #[test]
    fn each_message_is_found_whichever_end_comes_first() {
        let mut bounds = Bounds::default();
        bounds.handled(5, handled(50));
        assert_eq!(learnt(&mut bounds), []);
        sent(&mut bounds, 0, 4, 1);
        assert_eq!(learnt(&mut bounds), []);
        sent(&mut bounds, 4, 2, 2);
        assert_eq!(learnt(&mut bounds), [(50, 2)]);
        bounds.handled(3, handled(30));
        bounds.handled(6, handled(60));
        bounds.handled(4, handled(40));
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
            bounds.handled(index, handled(7));
        }
        assert_eq!(learnt(&mut bounds), []);
        assert_eq!(bounds.handled.len(), 1, "only one that is still to come waits");
    }

    #[test]
    fn no_more_is_kept_than_that_whatever_comes() {
        let mut bounds = Bounds::default();
        for index in 0..2 * MOST_KEPT as u64 {
            bounds.handled(u64::MAX - index, handled(0));
            sent(&mut bounds, index, 1, 0);
        }
        assert_eq!((bounds.host.len(), bounds.handled.len()), (MOST_KEPT, MOST_KEPT));
    }
}
