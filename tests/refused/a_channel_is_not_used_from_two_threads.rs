//! A channel that two threads send on.

use ring_host::{Channel, kernels::{Echo, EchoMessage}};

fn send(channel: &mut Channel<Echo>) {
    std::thread::scope(|threads| {
        threads.spawn(|| channel.try_send(EchoMessage::from_seed(1)).is_ok());
        let _ = channel.try_send(EchoMessage::from_seed(2));
    });
}

fn main() {}
