//! A device that nothing runs on, whose lines the test writes, between two calls of the host.

use super::{LITTLE, WINDOWS};
use crate::sequences::seed::count;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use ring_host::device::quirks::{Lines, MemoryProbe};
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    DeviceFault, Exit, KernelHandle, LaunchConfig, Memory, Mode, RecvTimeoutError, State,
    TryRecvError,
};
use ring_shared::layout::Command;
use ring_shared::ring::{CONTROL, Control};
use ring_tests::hostile::Bed;
use ring_tests::{LONG, WAYS, over, until};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

#[test]
fn whatever_a_device_writes_between_calls_the_host_stays_sound() {
    let bed = Bed::new();
    let cases = count(4000);
    let config =
        Config { cases, failure_persistence: None, max_shrink_time: 20_000, ..Config::default() };
    let script = prop::collection::vec(any::<u8>(), 8..400);
    let outcome = TestRunner::new(config).run(&script, |script| {
        bed.play(&script);
        Ok(())
    });
    match outcome {
        Err(TestError::Fail(why, script)) => panic!("{why}, by {script:?}"),
        done => done.unwrap_or_else(|error| panic!("{error}")),
    }
}

/// Acts on channel 0 of the only kernel, if it has lines yet.
fn on_channel(memory_probe: &MemoryProbe, act: impl FnOnce(Lines<'_>)) {
    memory_probe.look(|kernels| kernels.first().map(|channels| act(channels[0])));
}

/// An active kernel on an idle device, with rings of 16 slots and so one line or 16.
fn idle((mode, memory): (Mode, Memory)) -> (MemoryProbe, KernelHandle<Echo>) {
    idle_by(LaunchConfig::default().mode(mode).memory(memory).capacity(16))
}

/// An active kernel on an idle device, whose acknowledgement comes before the command.
pub(crate) fn idle_by(launch: LaunchConfig) -> (MemoryProbe, KernelHandle<Echo>) {
    let (device, host) = over(|| Quirks::of(Cpu::open()).idle_device(), LITTLE);
    let memory_probe = device.memory_probe();
    let mut kernel = host.launch::<Echo>(launch).unwrap();
    let stays = kernel.runs_as().0 == Mode::Persistent;
    let begun = Instant::now();
    while let Err(error) = kernel.activate(Duration::from_millis(1)) {
        assert!(begun.elapsed() < LONG, "{error}");
        on_channel(&memory_probe, |lines| {
            let Command { epoch, .. } = Command::from_word(lines.command.load(Relaxed));
            let obeyed = Command { epoch: epoch.wrapping_add(1), state: State::Active as u32 };
            lines.status.acknowledged.store(obeyed.to_word(), Release);
            if !stays {
                lines.status.launches_left.store(kernel.launches(), Release);
            }
        });
        if !stays {
            memory_probe.end(); // what it says in staged-sync memory comes back when it has left
        }
    }
    (memory_probe, kernel)
}

/// A device that says of each launch that it has left, while the driver says that it runs: a queue
/// of launches without end would at last be full, and the driver's call would block.
#[test]
fn launches_are_not_piled_up_behind_one_that_only_says_that_it_has_left() {
    const MANY: u64 = 5000;
    for (mode, memory) in WAYS.into_iter().filter(|(mode, _)| *mode != Mode::Persistent) {
        let (memory_probe, mut kernel) = idle((mode, memory));
        kernel.send(EchoMessage::from_seed(0), LONG).unwrap();
        for _ in 0..MANY {
            on_channel(&memory_probe, |lines| {
                lines.status.launches_left.store(kernel.launches(), Release)
            });
            assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
        }
        let launches = kernel.launches();
        assert!(launches < 1024, "{mode} in {memory}: {launches} launches");
        // Once it has left indeed, it is launched again.
        memory_probe.end();
        on_channel(&memory_probe, |lines| lines.status.launches_left.store(launches, Release));
        until("another launch", || {
            assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
            (kernel.launches() > launches).then_some(())
        });
        memory_probe.end();
    }
}

/// A device that has left more often than it was launched.
#[test]
fn launches_that_never_were_are_an_error() {
    for (mode, memory) in WAYS.into_iter().filter(|(mode, _)| *mode != Mode::Persistent) {
        let (memory_probe, mut kernel) = idle((mode, memory));
        kernel.send(EchoMessage::from_seed(0), LONG).unwrap();
        let left = kernel.launches() + 10;
        on_channel(&memory_probe, |lines| lines.status.launches_left.store(left, Release));
        memory_probe.end();
        let RecvTimeoutError::Fault(fault) = kernel.recv(LONG).unwrap_err() else {
            panic!("no fault")
        };
        let DeviceFault::Corrupt { kernel: "echo", channel: 0, corrupt } = fault else {
            panic!("{mode} in {memory}: {fault}")
        };
        assert_eq!((corrupt.found, corrupt.low, corrupt.high), (left, 0, kernel.launches()));
    }
}

/// On a GPU, what other warps had answered before a panic may be published after its acknowledgement. A
/// receiver that has returned the end returns nothing after it.
#[test]
fn nothing_follows_the_end_that_was_returned() {
    let (memory_probe, mut kernel) = idle((Mode::EventDriven, Memory::Mapped));
    assert_eq!(kernel.try_send_batch(&[EchoMessage::from_seed(0); 3]), Ok(3));
    let answered = |tail| {
        on_channel(&memory_probe, |lines| {
            let control = Control { credit: 3, early: 0, first: 0, tail };
            lines.response_lines[0].atoms[CONTROL].publish(control.to_words());
        });
    };
    answered(1);
    on_channel(&memory_probe, |lines| {
        lines.status.exit.store(Exit::HandlerPanicked as u64, Relaxed);
        let word = Command { epoch: 1, state: State::Faulted as u32 }.to_word();
        lines.status.acknowledged.store(word, Release);
    });
    assert!(kernel.recv(LONG).is_ok(), "what was there comes first");
    let end = kernel.recv(LONG).unwrap_err();
    let RecvTimeoutError::Fault(fault @ DeviceFault::HandlerPanicked { .. }) = &end else {
        panic!("{end}")
    };
    let at_once = TryRecvError::Fault(fault.clone());
    answered(3);
    let mut answers = [EchoMessage::from_seed(0); 2];
    assert_eq!(kernel.try_recv(), Err(at_once.clone()));
    assert_eq!(kernel.try_recv_batch(&mut answers), Err(at_once.clone()));
    assert_eq!(kernel.try_recv_each(2, |_| panic!("an answer")), Err(at_once));
    assert_eq!(kernel.recv(LONG), Err(end));
    memory_probe.end();
}

/// The lines that a device writes are its own: whatever the host does, it changes none of them.
#[test]
fn a_host_writes_its_own_lines_only() {
    let way = |mode| LaunchConfig::default().mode(mode).memory(Memory::Mapped).capacity(64);
    writes_its_own_lines_only(way(Mode::EventDriven), 1);
    for lines in WINDOWS {
        writes_its_own_lines_only(way(Mode::Persistent).window(lines), lines as usize);
    }
}

fn writes_its_own_lines_only(launch: LaunchConfig, line_count: usize) {
    let (memory_probe, mut kernel) = idle_by(launch);
    let words = || {
        let mut words = Vec::new();
        on_channel(&memory_probe, |lines| {
            let status = lines.status;
            let counters =
                [&status.acknowledged, &status.processed, &status.refused, &status.errors];
            let marks = [
                &status.depth,
                &status.heartbeat,
                &status.ticks,
                &status.launches_left,
                &status.busy,
            ];
            let kept = [&status.call, &status.run_start, &status.scrubbed, &status.exit];
            let times = lines.times.handler.iter().chain(&lines.times.queueing);
            let all = counters.into_iter().chain(marks).chain(kept).chain(times);
            words
                .extend(all.chain([&lines.request_credit.consumed]).map(|word| word.load(Relaxed)));
            assert_eq!(lines.response_lines.len(), line_count);
            let of_lines = lines.response_lines.iter().flat_map(|line| &line.atoms);
            words.extend(of_lines.chain(lines.responses).flat_map(|atom| atom.load()));
        });
        assert!(words.len() > 100);
        words
    };
    let before = words();
    let short = Duration::from_millis(2);
    for seed in 0..40 {
        let _ = kernel.try_send(EchoMessage::from_seed(seed));
        let _ = kernel.try_send_batch(&[EchoMessage::from_seed(seed); 3]);
        assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty));
        assert_eq!(kernel.try_recv_batch(&mut [EchoMessage::from_seed(0); 3]), Ok(0));
        let _ = (kernel.status(), kernel.summary(), kernel.telemetry());
    }
    let _ = (kernel.recv(short), kernel.deactivate(short), kernel.terminate(short));
    assert_eq!(words(), before);
    memory_probe.end();
}
