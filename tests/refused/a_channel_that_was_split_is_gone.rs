//! A channel that was taken apart.

use ring_host::{Channel, kernels::Echo};

fn after(channel: Channel<Echo>) -> u64 {
    let _halves = channel.into_split();
    channel.unanswered()
}

fn main() {}
