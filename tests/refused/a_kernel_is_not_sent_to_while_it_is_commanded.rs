//! A kernel that is terminated while another thread uses a channel that was not taken out.

use ring_host::{KernelHandle, kernels::Echo};
use std::time::Duration;

fn both(kernel: &mut KernelHandle<Echo>) {
    let channel = kernel.channel(0).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| channel.try_recv().is_ok());
        let _ = kernel.terminate(Duration::ZERO);
    });
}

fn main() {}
