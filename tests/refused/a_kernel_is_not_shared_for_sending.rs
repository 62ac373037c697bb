//! Two threads that send on one kernel.

use ring_host::{KernelHandle, kernels::{Echo, EchoMessage}};

fn both(kernel: &mut KernelHandle<Echo>) {
    std::thread::scope(|threads| {
        threads.spawn(|| kernel.try_send(EchoMessage::from_seed(1)).is_ok());
        threads.spawn(|| kernel.try_send(EchoMessage::from_seed(2)).is_ok());
    });
}

fn main() {}
