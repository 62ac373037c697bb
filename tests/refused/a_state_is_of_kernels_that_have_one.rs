//! The state of a kernel that has none.

use ring_host::{KernelHandle, kernels::Echo};
use std::time::Duration;

fn look(kernel: &mut KernelHandle<Echo>) {
    let _ = kernel.read_state(0, Duration::ZERO);
}

fn main() {}
