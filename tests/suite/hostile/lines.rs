//! What cannot be, in any line of a window: whoever comes to that line finds it, reports it, and has answered
//! all before it.

use super::{WINDOWS, comes_from_lines, on_each_probed_device};
use ring_host::device::quirks::Lines;
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    ControlError, DeviceFault, Exit, KernelHandle, LaunchConfig, Memory, Mode, RecvTimeoutError,
    Runtime, TryRecvError,
};
use ring_shared::layout::Doorbell;
use ring_shared::ring::{CONTROL, Control};
use ring_tests::{LONG, until};
use std::time::Duration;

const CAPACITY: u32 = 64;

/// A kernel that has answered `n` messages, and has none to answer.
fn after(host: &Runtime, lines: u32, n: u64) -> KernelHandle<Echo> {
    let launch = LaunchConfig::default().mode(Mode::Persistent).memory(Memory::Mapped);
    let launch = launch.capacity(CAPACITY).window(lines);
    let mut kernel = host.launch::<Echo>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    for i in 0..n {
        let request = EchoMessage::from_seed(i);
        kernel.send(request, LONG).unwrap();
        assert_eq!(kernel.recv(LONG).unwrap(), request.answer(), "message {i}");
    }
    kernel
}

/// Controls that cannot be where the next message is `next`.
fn lies(next: u32) -> [Control; 3] {
    let slots = |first, tail| Control { credit: next, early: 0, first, tail };
    [
        slots(next, next + CAPACITY + 1),
        slots(next, next + (1 << 30)),
        slots(next.wrapping_sub(CAPACITY), next + 1),
    ]
}

fn write(lines: &[Doorbell], index: u32, control: Control) {
    let at = index as usize & (lines.len() - 1);
    lines[at].atoms[CONTROL].publish(control.to_words());
}

/// The lines of the kernel that was launched last: the device may still be leaving the one before it.
fn of_newest<'a>(kernels: &[Vec<Lines<'a>>]) -> Lines<'a> {
    kernels.last().expect("a kernel")[0]
}

/// How far into a window of so many lines, and beyond it.
fn places(lines: u32) -> impl Iterator<Item = u32> {
    (0..lines).step_by(7).chain([lines - 1, lines, lines + 1])
}

#[test]
fn a_device_reports_a_request_that_cannot_be_in_any_line() {
    on_each_probed_device(|memory_probe, host| {
        for lines in WINDOWS {
            for (next, kind) in places(lines).zip((0..3).cycle()) {
                let mut kernel = after(host, lines, next.into());
                memory_probe.look(|kernels| {
                    let request_lines = of_newest(kernels).request_lines;
                    assert_eq!(request_lines.len(), lines as usize);
                    write(request_lines, next, lies(next)[kind]);
                });
                let fault = until("the report", || match kernel.recv(Duration::from_millis(1)) {
                    Err(RecvTimeoutError::Timeout { .. }) => None,
                    Err(RecvTimeoutError::Fault(fault)) => Some(fault),
                    found => panic!("{found:?} from line {next} of {lines}"),
                });
                let corrupt = matches!(fault, DeviceFault::Left { exit: Exit::CorruptRing, .. });
                assert!(corrupt, "line {next} of {lines}: {fault}");
                let Err(ControlError::Fault(again)) = kernel.terminate(LONG) else {
                    panic!("it was lost")
                };
                assert_eq!(again, fault);
            }
        }
    });
}

#[test]
fn a_host_reports_an_answer_that_cannot_be_in_any_line() {
    on_each_probed_device(|memory_probe, host| {
        for lines in WINDOWS {
            for (next, kind) in places(lines).zip((0..3).cycle()) {
                let mut kernel = after(host, lines, next.into());
                assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
                let lie = lies(next)[kind];
                memory_probe.look(|kernels| write(of_newest(kernels).response_lines, next, lie));
                let Err(TryRecvError::Fault(fault)) = kernel.try_recv() else {
                    panic!("line {next} of {lines} is not looked at")
                };
                comes_from_lines(&fault);
                let DeviceFault::Corrupt { kernel: "echo", channel: 0, corrupt } = fault else {
                    panic!("line {next} of {lines}: {fault}")
                };
                let found = if kind == 2 { lie.first } else { lie.tail };
                assert_eq!(corrupt.found, found.into(), "line {next} of {lines}");
                let told = kernel.channel(0).unwrap().split().1.len();
                assert_eq!(told, 0, "nothing follows the end");
                assert!(kernel.summary().unhandled <= CAPACITY.into());
            }
        }
    });
}
