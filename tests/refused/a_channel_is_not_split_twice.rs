//! Two pairs of owned halves of one channel.

use ring_host::{Channel, Sender, kernels::Echo};

fn twice(channel: Channel<Echo>) -> [Sender<Echo>; 2] {
    let (first, _) = channel.into_split();
    let (second, _) = channel.into_split();
    [first, second]
}

fn main() {}
