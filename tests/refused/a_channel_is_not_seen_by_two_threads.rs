//! A channel that another thread looks at meanwhile.

use ring_host::{Channel, kernels::Echo};

fn look(channel: &Channel<Echo>) {
    std::thread::scope(|threads| {
        threads.spawn(|| channel.unanswered());
    });
}

fn main() {}
