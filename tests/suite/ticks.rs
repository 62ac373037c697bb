//! Ticks of a state: they come by time alone, while the channel is active, and no more of them than time has passed.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{Ticked, Ticker};
use ring_host::{DeviceFault, KernelHandle, LaunchConfig, Mode, Runtime, TryRecvError};
use ring_tests::kernels::{bears_panics, of_examples};
use ring_tests::{LONG, WAYS, cpu, gpu, until};
use std::time::{Duration, Instant};

fn ticker(runtime: &Runtime, launch: &LaunchConfig) -> KernelHandle<Ticker> {
    let launch = launch.clone().kernels(of_examples::<Ticker>());
    let mut kernel = runtime.launch::<Ticker>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn state(kernel: &KernelHandle<Ticker>) -> Ticked {
    kernel.share().read_state(0, LONG).unwrap()
}

#[test]
fn they_come_between_messages_in_every_way() {
    on_each_device_alone(here!("they_come_between_messages_in_every_way"), |runtime| {
        for (mode, memory) in WAYS {
            let begun = Instant::now();
            let launch = LaunchConfig::default().mode(mode).memory(memory);
            let mut kernel = ticker(runtime, &launch);
            let mut sent = 0;
            let ticks = until("ten ticks beside messages", || {
                kernel.send(0, LONG).unwrap();
                sent += 1;
                let told = kernel.recv(LONG).unwrap();
                assert_eq!(told.messages, sent, "{mode} in {memory}");
                (told.ticks >= 10).then_some(told.ticks)
            });
            // Each is at least as long behind the one before as it is said.
            let most = begun.elapsed().as_nanos() / Ticker::EVERY.as_nanos() + 1;
            assert!(u128::from(ticks) <= most, "{ticks} of {most}, {mode} in {memory}");
            kernel.deactivate(LONG).unwrap();
            let resting = state(&kernel);
            std::thread::sleep(Duration::from_millis(3));
            assert_eq!(state(&kernel), resting, "{mode} in {memory}");
            kernel.activate(LONG).unwrap();
            if mode == Mode::Persistent {
                until("a tick without a message", || {
                    (state(&kernel).ticks > resting.ticks).then_some(())
                });
            }
            kernel.terminate(LONG).unwrap();
        }
    });
}

/// A stream of batches leaves time for them, and so does a ring that is full of answers nobody reads.
#[test]
fn they_come_amid_batches_and_while_there_is_no_room() {
    on_each_device_alone(here!("they_come_amid_batches_and_while_there_is_no_room"), |runtime| {
        let mut kernel = ticker(runtime, &LaunchConfig::default().capacity(64));
        let (mut received, mut ticks) = (0, 0);
        until("ten ticks amid batches", || {
            kernel.try_send_batch(&[0; 64]).unwrap();
            received += kernel.try_recv_each(64, |told| ticks = told.ticks).unwrap() as u64;
            (ticks >= 10).then_some(())
        });
        until("a full ring", || {
            kernel.try_send_batch(&[0; 64]).unwrap();
            let told = kernel.summary();
            // As last reported: that may be less than was received.
            let unread = told.processed.checked_sub(received);
            (unread == Some(64) && told.unhandled == 64).then_some(())
        });
        let full = state(&kernel).ticks;
        until("a tick while there is no room", || (state(&kernel).ticks > full).then_some(()));
        kernel.terminate(LONG).unwrap();
    });
}

#[test]
fn a_panic_in_one_is_a_fault() {
    let here = here!("a_panic_in_one_is_a_fault");
    let test = |runtime: &Runtime| {
        for mode in [Mode::Persistent, Mode::EventDriven] {
            let mut kernel = ticker(runtime, &LaunchConfig::default().mode(mode));
            let fault = until("a fault", || {
                let _ = kernel.try_send(1); // a launch of its own, if the kernel rests between messages
                match kernel.try_recv() {
                    Err(TryRecvError::Fault(fault)) => Some(fault),
                    _ => None,
                }
            });
            assert!(matches!(fault, DeviceFault::HandlerPanicked { .. }), "{fault}");
        }
    };
    match gpu().is_none() || bears_panics::<Ticker>(here) {
        true => on_each_device_alone(here, test),
        false => test(&cpu()),
    }
}
