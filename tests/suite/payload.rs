//! A write of the payload whose wait ended early: it lands before anything that is sent after it, and over
//! no result.

use crate::faults::until;
use futures_util::SinkExt;
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::kernels::{VectorAdd, VectorAddRequest, status};
use ring_host::{
    Channel, KernelHandle, LaunchConfig, PayloadError, Runtime, RuntimeConfig, SendTimeoutError,
    State, TrySendError,
};
use ring_tests::{CallError, LONG, WAYS, over};
use std::time::Duration;

/// Elements of A, of B and of C, which lie side by side in the arena.
const N: usize = 64;

/// A CPU device whose copies land late, each kernel's by a course of its own.
fn late() -> Quirks {
    Quirks::of(Cpu::open()).late_copies(1)
}

/// The same, opened, for kernels in whichever way is chosen.
fn opened() -> Runtime {
    Runtime::over(late(), RuntimeConfig::default()).unwrap()
}

fn launched(host: &Runtime, launch: LaunchConfig) -> KernelHandle<VectorAdd> {
    host.launch::<VectorAdd>(launch.payload_bytes(12 * N).capacity(16)).unwrap()
}

/// Writes all three vectors with no time to wait for it; whether it timed out.
fn write(kernel: &mut KernelHandle<VectorAdd>, element: f32) -> bool {
    match kernel.write_payload(0, &[element; 3 * N], Duration::ZERO) {
        Ok(()) => false,
        Err(PayloadError::Timeout { .. }) => true,
        Err(error) => panic!("{error}"),
    }
}

/// Receives the answer to a request for C = A + B, after which all of C is the sum of what is there.
fn is_added(kernel: &mut KernelHandle<VectorAdd>, what: &str) {
    let response = kernel.recv(LONG).unwrap();
    assert_eq!((response.status, response.len), (status::PAYLOAD, N as u32), "{what}");
    let mut words = [0f32; 3 * N];
    kernel.read_payload(0, &mut words, LONG).unwrap();
    let [a, b, c] = [0, 1, 2].map(|k| &words[k * N..][..N]);
    assert!(a.iter().chain(b).all(|element| *element == a[0]), "{what}: a write by halves");
    for sum in c {
        assert_eq!(*sum, 2.0 * a[0], "{what}: A and B are {}", a[0]);
    }
}

#[test]
fn a_write_that_timed_out_lands_over_no_result() {
    let request = VectorAddRequest::in_payload(N as u32, 0);
    let mut timed_out = 0;
    let (_, host) = over(late, RuntimeConfig::default());
    for round in 0..12 {
        for (mode, memory) in WAYS {
            let what = format!("{mode} in {memory}, round {round}");
            let mut kernel = launched(&host, LaunchConfig::default().mode(mode).memory(memory));
            kernel.write_payload(0, &[1f32; 3 * N], LONG).unwrap();
            // Before the kernel takes messages at all.
            timed_out += u32::from(write(&mut kernel, 2.0));
            kernel.activate(LONG).unwrap();
            kernel.send(request, LONG).unwrap();
            is_added(&mut kernel, &what);
            // And while it does.
            for element in [3.0, 5.0, 7.0, 11.0] {
                timed_out += u32::from(write(&mut kernel, element));
                kernel.send(request, LONG).unwrap();
                is_added(&mut kernel, &what);
            }
            kernel.terminate(LONG).unwrap();
        }
    }
    assert!(timed_out > 0, "no write timed out: the test shows nothing");
}

/// A message by one of the ways of sending; how many were taken.
fn send(channel: &mut Channel<VectorAdd>, way: usize) -> Result<usize, CallError> {
    let request = VectorAddRequest::in_payload(N as u32, 0);
    Ok(match way {
        0 => channel.try_send(request).map(|()| 1).map_err(TrySendError::without_message)?,
        1 => channel.try_send_batch(&[request])?,
        2 => channel.try_send_each(1, |_| request)?,
        _ => {
            let sent = channel.send(request, Duration::ZERO).map(|()| 1);
            sent.map_err(SendTimeoutError::without_message)?
        }
    })
}

/// Each way of sending is refused while such a write is under way, and goes on when it has landed.
#[test]
fn messages_wait_for_a_write_that_timed_out() {
    let host = opened();
    let mut kernel = launched(&host, LaunchConfig::default());
    kernel.activate(LONG).unwrap();
    let mut channel = kernel.take_channel(0).unwrap();
    let mut element = 1.0;
    for way in 0..4 {
        until("it was refused, and then taken", || {
            element = (element + 1.0) % 1000.0;
            if !write(&mut kernel, element) {
                return None;
            }
            assert_eq!(kernel.status().state, State::Active, "for the device it is");
            let mut refused = 0;
            let taken = until("a message is taken", || match send(&mut channel, way) {
                Ok(taken) => Some(taken),
                Err(error) => {
                    assert_eq!(error, CallError::Writing);
                    refused += 1;
                    None
                }
            });
            assert_eq!(taken, 1, "the ring is empty");
            channel.recv(LONG).unwrap();
            let mut words = [0f32; 3 * N];
            kernel.read_payload(0, &mut words, LONG).unwrap();
            assert!(words[..2 * N].iter().all(|word| *word == element));
            assert!(words[2 * N..].iter().all(|sum| *sum == 2.0 * element), "way {way}");
            (refused > 0).then_some(())
        });
    }
    // On another thread, which waits for it.
    until("it timed out", || write(&mut kernel, 0.5).then_some(()));
    let request = VectorAddRequest::in_payload(N as u32, 0);
    let sending = std::thread::spawn(move || {
        channel.send(request, LONG).map_err(SendTimeoutError::without_message)
    });
    sending.join().unwrap().unwrap();
    kernel.terminate(LONG).unwrap();
}

/// A sink is not ready meanwhile, and is woken.
#[test]
fn a_sink_waits_for_a_write_that_timed_out() {
    let request = VectorAddRequest::in_payload(N as u32, 0);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut kernel = launched(&opened(), LaunchConfig::default());
    kernel.activate(LONG).unwrap();
    let (sender, mut receiver) = kernel.take_channel(0).unwrap().into_split();
    let mut sink = sender.into_sink();
    let (mut timed_out, mut element) = (0, 1.0);
    until("five writes timed out", || {
        element = (element + 1.0) % 1000.0;
        timed_out += u32::from(write(&mut kernel, element));
        runtime.block_on(sink.send(request)).unwrap();
        assert_eq!(receiver.recv(LONG).unwrap().status, status::PAYLOAD);
        let mut words = [0f32; 3 * N];
        kernel.read_payload(0, &mut words, LONG).unwrap();
        assert!(words[2 * N..].iter().all(|sum| *sum == 2.0 * element));
        (timed_out == 5).then_some(())
    });
    kernel.terminate(LONG).unwrap();
}
