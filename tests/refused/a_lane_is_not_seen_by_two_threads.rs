//! A lane that another thread looks at meanwhile.

use ring_host::{Lane, kernels::Echo};

fn look(lane: &Lane<Echo>) {
    std::thread::scope(|threads| {
        threads.spawn(|| lane.unanswered());
    });
}

fn main() {}
