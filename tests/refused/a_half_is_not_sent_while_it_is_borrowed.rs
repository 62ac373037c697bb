//! A half that goes to another thread while this one still receives on it.

use ring_host::{Receiver, kernels::Echo};

fn both(mut receiver: Receiver<Echo>) {
    let borrowed = &mut receiver;
    let other = std::thread::spawn(move || receiver.try_recv().is_ok());
    let _ = borrowed.try_recv();
    let _ = other.join();
}

fn main() {}
