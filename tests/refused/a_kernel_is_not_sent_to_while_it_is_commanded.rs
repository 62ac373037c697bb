//! A kernel that is terminated while another thread uses a lane that was not taken out.

use ring_host::{Resident, kernels::Echo};
use std::time::Duration;

fn both(kernel: &mut Resident<Echo>) {
    let lane = kernel.lane(0).unwrap();
    std::thread::scope(|threads| {
        threads.spawn(|| lane.try_recv().is_ok());
        let _ = kernel.terminate(Duration::ZERO);
    });
}

fn main() {}
