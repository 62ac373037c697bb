//! What the exhaustive models of this folder have in common: going through all states that can be reached.

extern crate std;

use core::fmt::Debug;
use core::hash::Hash;
use std::collections::{HashMap, VecDeque};
use std::vec::Vec;

/// Goes through all states that can be reached from `begin` by the steps that `after` gives, and checks that from each of them one
/// that `is_end` can be reached. How many there are; `None` if `after` finds that one is not as it should be.
pub(super) fn explore<S: Clone + Eq + Hash + Debug>(
    begin: S,
    after: impl Fn(&S) -> Option<Vec<S>>,
    is_end: impl Fn(&S) -> bool,
) -> Option<usize> {
    let mut numbers = HashMap::from([(begin.clone(), 0_u32)]);
    let (mut queue, mut before) = (VecDeque::from([begin]), std::vec![Vec::new()]);
    let mut ends = Vec::new();
    while let Some(state) = queue.pop_front() {
        let number = numbers[&state];
        if is_end(&state) {
            ends.push(number);
        }
        for next in after(&state)? {
            let new = numbers.len() as u32;
            let to = *numbers.entry(next.clone()).or_insert(new);
            if to == new {
                before.push(Vec::new());
                queue.push_back(next);
            }
            before[to as usize].push(number);
        }
    }
    let (mut reached, mut stack) = (std::vec![false; before.len()], ends);
    while let Some(number) = stack.pop() {
        if !core::mem::replace(&mut reached[number as usize], true) {
            stack.extend(&before[number as usize]);
        }
    }
    let stuck = numbers.iter().find(|(_, number)| !reached[**number as usize]);
    assert!(stuck.is_none(), "no end follows from {:?}", stuck.unwrap().0);
    Some(before.len())
}
