//! A kernel that is dropped while a channel of it is borrowed, and halves that leave with it.

use ring_host::{KernelHandle, Sender, kernels::Echo};

fn after(mut kernel: KernelHandle<Echo>) {
    let channel = kernel.channel(0).unwrap();
    drop(kernel);
    let _ = channel.try_recv();
}

fn out_of(mut kernel: KernelHandle<Echo>) -> &'static mut Sender<Echo> {
    kernel.channel(0).unwrap().split().0
}

fn main() {}
