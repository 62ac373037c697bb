//! What a lane whose handler panics leaves for the other lanes of its launch: they end as if it had
//! nothing to do, and need not wait for it.

use crate::faults::until;
use ring_host::driver::{Quirks, cpu::Cpu};
use ring_host::{Budgets, DeviceFault, Launch, Memory, Mode, Options, RecvError, Runtime};
use ring_tests::{LONG, Unlucky};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

/// A time that no launch of the test takes: no launch follows another.
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_lane_that_panics_keeps_no_other_lane() {
    for lane in [0, 1] {
        let device = Quirks::of(Cpu::open());
        let tap = device.tap();
        let host = Runtime::over(device, Options::default()).unwrap();
        let budgets = Budgets { time: HOUR, idle: Duration::from_millis(5), ..Budgets::default() };
        let launch = Launch::default().mode(Mode::EventDriven).memory(Memory::Mapped);
        let launch = launch.lanes(2).capacity(16).budgets(budgets);
        let mut kernel = host.launch::<Unlucky>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        kernel.rest(LONG).unwrap();
        // Two at once go through slots, so that the lane says that it is busy before it handles them.
        assert_eq!(kernel.lane(lane).unwrap().try_send_batch(&[13, 13]), Ok(2));
        let end = kernel.lane(lane).unwrap().recv(LONG).unwrap_err();
        let RecvError::Fault(DeviceFault::HandlerPanicked { lane: found, .. }) = end else {
            panic!("{end}")
        };
        assert_eq!(found, lane);
        let launches = kernel.launches();
        let left = || {
            tap.look(|kernels| {
                let status = kernels[0][lane as usize].status;
                (status.left.load(Acquire) == launches)
                    .then(|| (status.busy.load(Relaxed), status.leave.load(Relaxed)))
            })
        };
        let (busy, leave) = until("the lane's leaving", left);
        assert_eq!(busy, 0, "lane {lane} says that it has nothing to do");
        // Lane 0 has called the others to leave that launch with it.
        assert_eq!(leave, if lane == 0 { launches } else { 0 });
    }
}
