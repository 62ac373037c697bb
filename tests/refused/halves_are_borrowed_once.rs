//! Two pairs of halves of one channel.

use ring_host::{Channel, kernels::Echo};

fn twice(channel: &mut Channel<Echo>) {
    let (sender, _) = channel.split();
    let (other, _) = channel.split();
    drop((sender, other));
}

fn main() {}
