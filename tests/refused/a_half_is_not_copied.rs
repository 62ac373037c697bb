//! A ring has one producer: a second would write over what the first wrote.

use ring_host::{Sender, kernels::Echo};

fn twice(sender: Sender<Echo>) -> (Sender<Echo>, Sender<Echo>) {
    (sender.clone(), sender)
}

fn main() {}
