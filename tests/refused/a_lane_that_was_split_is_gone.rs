//! A lane that was taken apart.

use ring_host::{Lane, kernels::Echo};

fn after(lane: Lane<Echo>) -> u64 {
    let _halves = lane.into_split();
    lane.unanswered()
}

fn main() {}
