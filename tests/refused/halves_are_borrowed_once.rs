//! Two pairs of halves of one lane.

use ring_host::{Lane, kernels::Echo};

fn twice(lane: &mut Lane<Echo>) {
    let (sender, _) = lane.split();
    let (other, _) = lane.split();
    drop((sender, other));
}

fn main() {}
