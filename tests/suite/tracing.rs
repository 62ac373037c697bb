//! Traces: when each message was sent, handled and received, by one clock; what is overwritten is counted, and nobody waits for a reader.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{Line, Traced, TracedBlock, TracedInOrder, TracedWarp};
use ring_host::kernels::Echo;
use ring_host::{
    Kernel, KernelHandle, LaunchConfig, LaunchError, Memory, MessageTimes, Mode, Obstacle, Runtime,
    Trace, TraceLosses,
};
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, WAYS, until};

/// Checks what a trace tells of messages from `next` on, of one channel: all of it is there, and in order, as far as the error allows that is
/// told of the device's times. That is wide where a device's thread was kept from noting a message that it had handled.
#[derive(Debug, Default)]
struct Checked {
    next: u64,
    last_received: i64,
}

impl Checked {
    fn take(&mut self, message: MessageTimes) {
        assert_eq!(message.index, self.next, "{message:?}");
        let (accepted, device) = (message.accepted.unwrap(), message.device.unwrap());
        assert!(device.error > 0 && device.together > 0, "{message:?}");
        assert!(accepted <= device.began + device.error, "{message:?}");
        assert!([device.unseen, device.began, device.ended].is_sorted(), "{message:?}");
        assert!(device.ended - device.error <= message.received, "{message:?}");
        assert!(accepted <= message.received, "{message:?}");
        assert!(message.received >= self.last_received, "{message:?}");
        (self.next, self.last_received) = (message.index + 1, message.received);
    }
}

/// Reads until message `end` was told.
fn read_to(trace: &mut Trace, checked: &mut Checked, end: u64) {
    until("the trace tells of all", || {
        trace.read(|message| checked.take(message));
        (checked.next >= end).then_some(())
    });
    assert_eq!((checked.next, trace.losses()), (end, TraceLosses::default()));
}

/// A launch of a kernel of the examples with a trace, whose code is on the device.
fn traced<K: Kernel>(host: &Runtime, records: u32) -> LaunchConfig {
    let launch = LaunchConfig::default().memory(Memory::Mapped).trace(records);
    let launch = launch.kernels(of_examples::<K>());
    host.prepare::<K>(&launch).unwrap();
    launch
}

fn active<K: Kernel>(host: &Runtime, launch: LaunchConfig) -> KernelHandle<K> {
    let mut kernel = host.launch::<K>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn line(i: u64) -> Line {
    std::array::from_fn(|k| i as u32 + k as u32)
}

/// Sends a message, and receives its answer.
fn exchange<K: Kernel<Request = Line, Response = Line>>(kernel: &mut KernelHandle<K>, i: u64) {
    kernel.send(line(i), LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(line(i)));
}

#[test]
fn each_message_is_told_in_order_whatever_way_it_went() {
    const NAME: &str = here!("each_message_is_told_in_order_whatever_way_it_went");
    on_each_device_alone(NAME, |host| {
        let launch = traced::<Traced>(host, 1 << 12).capacity(256);
        for mode in [Mode::Persistent, Mode::EventDriven, Mode::Graph] {
            let mut kernel = active::<Traced>(host, launch.clone().mode(mode));
            let (mut trace, mut checked) = (kernel.trace().unwrap(), Checked::default());
            (0..100).for_each(|i| exchange(&mut kernel, i));
            read_to(&mut trace, &mut checked, 100);
            let mut sent = 100;
            for at_once in [2u64, 5, 32, 128, 200, 256] {
                let lines: Vec<_> = (0..at_once).map(line).collect();
                let half = lines.len() / 2;
                assert_eq!(kernel.try_send_batch(&lines[..half]), Ok(half));
                lines[half..].iter().for_each(|line| kernel.send(*line, LONG).unwrap());
                lines.iter().for_each(|line| assert_eq!(kernel.recv(LONG), Ok(*line)));
                sent += at_once;
                read_to(&mut trace, &mut checked, sent);
            }
            assert_eq!(trace.clock_resets(), 0);
            // Another reader reads all of it, and a kernel that has ended is told of to its end.
            exchange(&mut kernel, 7);
            kernel.terminate(LONG).unwrap();
            let mut other = Checked::default();
            read_to(&mut kernel.trace().unwrap(), &mut other, sent + 1);
            read_to(&mut trace, &mut checked, sent + 1);
        }
    });
}

/// Sends `n` requests, one at a time, and then all of them at once.
fn trace_some<K: Kernel<Request = Line, Response = Line>>(host: &Runtime, launch: LaunchConfig) {
    const N: u64 = 60;
    let mut kernel = active::<K>(host, launch.capacity(64));
    let (mut trace, mut checked) = (kernel.trace().unwrap(), Checked::default());
    (0..N).for_each(|i| exchange(&mut kernel, i));
    read_to(&mut trace, &mut checked, N);
    (0..N).for_each(|i| kernel.send(line(i), LONG).unwrap());
    (0..N).for_each(|i| assert_eq!(kernel.recv(LONG), Ok(line(i))));
    read_to(&mut trace, &mut checked, 2 * N);
    kernel.terminate(LONG).unwrap();
}

#[test]
fn kernels_of_each_scope_have_traces() {
    on_each_device_alone(here!("kernels_of_each_scope_have_traces"), |host| {
        let (warp, block) = (traced::<TracedWarp>(host, 256), traced::<TracedBlock>(host, 256));
        let in_order = traced::<TracedInOrder>(host, 256);
        trace_some::<TracedWarp>(host, warp);
        trace_some::<TracedBlock>(host, block);
        trace_some::<TracedInOrder>(host, in_order);
    });
}

#[test]
fn what_nobody_reads_is_overwritten_and_counted() {
    const N: u64 = 1000;
    on_each_device_alone(here!("what_nobody_reads_is_overwritten_and_counted"), |host| {
        let mut kernel = active::<Traced>(host, traced::<Traced>(host, 16));
        let mut trace = kernel.trace().unwrap();
        (0..N).for_each(|i| exchange(&mut kernel, i));
        kernel.terminate(LONG).unwrap();
        let mut told = Vec::new();
        trace.read(|message| told.push(message.index));
        let losses = trace.losses();
        assert_eq!(losses.received + told.len() as u64, N, "{losses:?}");
        assert_eq!(told, Vec::from_iter(N - told.len() as u64..N), "{losses:?}");
        assert!(told.len() >= 8 && losses.sent >= N - 16 && losses.handled >= N - 16, "{losses:?}");
    });
}

#[test]
fn channels_and_threads_are_told_apart() {
    on_each_device_alone(here!("channels_and_threads_are_told_apart"), |host| {
        let mut kernel = active::<Traced>(host, traced::<Traced>(host, 512).channels(3));
        let mut trace = kernel.trace().unwrap();
        let channels = [0, 1, 2].map(|channel| kernel.take_channel(channel).unwrap());
        std::thread::scope(|scope| {
            for (channel, n) in channels.into_iter().zip(100u64..) {
                scope.spawn(move || {
                    let (sender, mut receiver) = channel.into_split();
                    let sender = sender.into_shared();
                    for i in 0..n {
                        sender.send(line(i), LONG).unwrap();
                        receiver.recv(LONG).unwrap();
                    }
                });
            }
        });
        let mut checked = [(); 3].map(|()| Checked::default());
        until("the trace tells of all", || {
            trace.read(|message| checked[message.channel as usize].take(message));
            (checked.each_ref().map(|one| one.next) == [100, 101, 102]).then_some(())
        });
        assert_eq!(trace.losses(), TraceLosses::default());
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn a_trace_is_there_only_where_it_was_asked_for_and_can_be() {
    const NAME: &str = here!("a_trace_is_there_only_where_it_was_asked_for_and_can_be");
    on_each_device_alone(NAME, |host| {
        let launch = traced::<Traced>(host, 64);
        let none = LaunchConfig::default().kernels(of_examples::<Traced>());
        assert!(active::<Traced>(host, none).trace().is_none());
        for (mode, memory) in WAYS {
            match (memory, host.launch::<Traced>(launch.clone().mode(mode).memory(memory))) {
                (Memory::Mapped, kernel) => assert!(kernel.unwrap().trace().is_some()),
                (_, Err(LaunchError::Unfit { refused, .. })) => {
                    assert!(refused.iter().any(|one| one.why == Obstacle::TraceNotMapped));
                }
                (_, other) => panic!("{other:?}"),
            }
        }
        for records in [0, 3, 1 << 21] {
            let refused = host.launch::<Traced>(launch.clone().trace(records)).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!(
                    "a trace ring of {records} records: their number must be a power of two, up to 1048576 (LaunchConfig::trace)"
                )
            );
        }
        let refused = host.launch::<Echo>(LaunchConfig::default().trace(64)).unwrap_err();
        assert!(refused.to_string().contains("declare it with `traced: true`"), "{refused}");
    });
}
