//! A half that was made a stream of.

use ring_host::{Receiver, ResponseStream, kernels::Echo};

fn beside(mut receiver: Receiver<Echo>) -> ResponseStream<Echo> {
    let stream = receiver.into_stream();
    let _ = receiver.try_recv();
    stream
}

fn main() {}
