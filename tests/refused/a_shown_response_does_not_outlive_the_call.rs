//! A response that is kept after it was shown: the next one takes its place.

use ring_host::{Receiver, kernels::{Echo, EchoMessage}};

fn keep<'a>(receiver: &'a mut Receiver<Echo>) -> Option<&'a EchoMessage> {
    let mut kept = None;
    let _ = receiver.try_recv_each(1, |response| kept = Some(response));
    kept
}

fn main() {}
