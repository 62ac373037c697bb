//! A lane that two threads send on.

use ring_host::{Lane, kernels::{Echo, EchoMessage}};

fn send(lane: &mut Lane<Echo>) {
    std::thread::scope(|threads| {
        threads.spawn(|| lane.try_send(&EchoMessage::from_seed(1)).is_ok());
        let _ = lane.try_send(&EchoMessage::from_seed(2));
    });
}

fn main() {}
