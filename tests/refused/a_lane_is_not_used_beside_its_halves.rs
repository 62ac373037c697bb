//! A lane whose halves are lent.

use ring_host::{Lane, kernels::{Echo, EchoMessage}};

fn beside(lane: &mut Lane<Echo>) {
    let (sender, receiver) = lane.split();
    let _ = lane.try_send(&EchoMessage::from_seed(1));
    drop((sender, receiver));
}

fn main() {}
