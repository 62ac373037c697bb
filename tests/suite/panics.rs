//! What a channel whose handler panics leaves for the other channels of its launch: they end as if it had
//! nothing to do, and need not wait for it.

use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::{
    Budgets, DeviceFault, LaunchConfig, Memory, Mode, RecvTimeoutError, Runtime, RuntimeConfig,
};
use ring_tests::{LONG, Unlucky, until};
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

/// A time that no launch of the test takes: no launch follows another.
const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn a_channel_that_panics_keeps_no_other_channel() {
    for channel in [0, 1] {
        let device = Quirks::of(Cpu::open());
        let memory_probe = device.memory_probe();
        let host = Runtime::over(device, RuntimeConfig::default()).unwrap();
        let budgets = Budgets { time: HOUR, idle: Duration::from_millis(5), ..Budgets::default() };
        let launch = LaunchConfig::default().mode(Mode::EventDriven).memory(Memory::Mapped);
        let launch = launch.channels(2).capacity(16).budgets(budgets);
        let mut kernel = host.launch::<Unlucky>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        kernel.rest(LONG).unwrap();
        // Two at once go through slots, so that the channel says that it is busy before it handles them.
        assert_eq!(kernel.channel(channel).unwrap().try_send_batch(&[13, 13]), Ok(2));
        let end = kernel.channel(channel).unwrap().recv(LONG).unwrap_err();
        let RecvTimeoutError::Fault(DeviceFault::HandlerPanicked { channel: found, .. }) = end
        else {
            panic!("{end}")
        };
        assert_eq!(found, channel);
        let launches = kernel.launches();
        let left = || {
            memory_probe.look(|kernels| {
                let status = kernels[0][channel as usize].status;
                (status.launches_left.load(Acquire) == launches)
                    .then(|| (status.busy.load(Relaxed), status.call.load(Relaxed)))
            })
        };
        let (busy, leave) = until("the channel's leaving", left);
        assert_eq!(busy, 0, "channel {channel} says that it has nothing to do");
        // Channel 0 has called the others to leave that launch with it.
        assert_eq!(leave, if channel == 0 { launches } else { 0 });
    }
}
