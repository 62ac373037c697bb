//! Two pairs of owned halves of one lane.

use ring_host::{Lane, Sender, kernels::Echo};

fn twice(lane: Lane<Echo>) -> [Sender<Echo>; 2] {
    let (first, _) = lane.into_split();
    let (second, _) = lane.into_split();
    [first, second]
}

fn main() {}
