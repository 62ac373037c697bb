//! A kernel that is dropped while a lane of it is lent, and halves that leave with it.

use ring_host::{Resident, Sender, kernels::Echo};

fn after(mut kernel: Resident<Echo>) {
    let lane = kernel.lane(0).unwrap();
    drop(kernel);
    let _ = lane.try_recv();
}

fn out_of(mut kernel: Resident<Echo>) -> &'static mut Sender<Echo> {
    kernel.lane(0).unwrap().split().0
}

fn main() {}
