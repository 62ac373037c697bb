//! A channel whose halves are borrowed.

use ring_host::{Channel, kernels::{Echo, EchoMessage}};

fn beside(channel: &mut Channel<Echo>) {
    let (sender, receiver) = channel.split();
    let _ = channel.try_send(EchoMessage::from_seed(1));
    drop((sender, receiver));
}

fn main() {}
