//! Messages of sizes that fill slots, but not the atoms of a doorbell line: each arrives whole, however many are in flight.

use crate::faults::on_each_device_alone;
use ring_example_kernels::{Ten, Two};
use ring_host::{Kernel, KernelHandle, LaunchConfig, Runtime};
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, WAYS, mixed};
use std::fmt::Debug;

fn words<const N: usize>(seed: u64) -> [u64; N] {
    std::array::from_fn(|k| mixed(seed * N as u64 + k as u64) | 1 << 63)
}

/// Batches of 1 to 9 messages, of which each answer is checked.
fn arrive<K: Kernel<Request: Debug, Response: PartialEq + Debug>>(
    runtime: &Runtime,
    request: impl Fn(u64) -> K::Request,
    answer: impl Fn(&K::Request) -> K::Response,
) {
    for (mode, memory) in WAYS {
        let launch = LaunchConfig::default().mode(mode).memory(memory).capacity(64);
        let mut kernel: KernelHandle<K> =
            runtime.launch(launch.kernels(of_examples::<K>())).unwrap();
        kernel.activate(LONG).unwrap();
        for round in 0..100 {
            let requests: Vec<_> = (0..1 + round % 9).map(|i| request(10 * round + i)).collect();
            if round % 2 == 0 {
                assert_eq!(kernel.try_send_batch(&requests), Ok(requests.len()));
            } else {
                requests.iter().for_each(|request| kernel.send(*request, LONG).unwrap());
            }
            for (i, request) in requests.iter().enumerate() {
                let of = (K::NAME, mode, memory, round, i);
                assert_eq!(kernel.recv(LONG), Ok(answer(request)), "{of:?}");
            }
        }
        kernel.terminate(LONG).unwrap();
    }
}

#[test]
fn all_bytes_of_messages_in_flight_arrive() {
    on_each_device_alone(here!("all_bytes_of_messages_in_flight_arrive"), |runtime| {
        arrive::<Two>(runtime, words, |request| request.map(|word| word.wrapping_add(1)));
        arrive::<Ten>(runtime, words, |request| request.map(|word| word.wrapping_add(1)));
    });
}
