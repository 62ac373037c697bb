//! The payload arena: where it lies, and that its contents are those that were written. And a write whose wait ended
//! early: it lands before anything that is sent after it, and over no result.

use crate::faults::names;
use futures_util::SinkExt;
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::error::{ArenaKind, DriverReason};
use ring_host::kernels::{VectorAdd, VectorAddRequest, status};
use ring_host::{
    Channel, Kernel, KernelHandle, LaunchConfig, LaunchError, Memory, Mode, Obstacle, PayloadError,
    PayloadMemory, Runtime, RuntimeConfig, SendTimeoutError, State, TrySendError,
};
use ring_tests::{
    CallError, LONG, WAYS, cpu, cpu_with, on_each_device, opened as opened_with, over, until,
};
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
    // In mapped memory no write times out.
    let launch = launch.payload_memory(PayloadMemory::Device);
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

fn way((mode, memory): (Mode, Memory)) -> LaunchConfig {
    LaunchConfig::default().mode(mode).memory(memory).capacity(16)
}

/// Writes a whole arena, adds two vectors in the middle of it, and reads all of it again.
fn keeps_its_words(kernel: &mut KernelHandle<VectorAdd>, seed: u32) {
    let n = kernel.payload_bytes() / 4;
    let mut words: Vec<f32> = (0..n as u32)
        .map(|k| (k.wrapping_mul(0x9e37_79b9).wrapping_add(seed) >> 12) as f32)
        .collect();
    kernel.write_payload(0, &words, LONG).unwrap();
    let (first, len) = (n / 2, (n / 8).max(1));
    kernel.send(VectorAddRequest::in_payload(len as u32, 4 * first as u64), LONG).unwrap();
    assert_eq!(kernel.recv(LONG).unwrap().status, status::PAYLOAD);
    for k in first..first + len {
        words[2 * len + k] = words[k] + words[len + k];
    }
    let mut back = vec![0f32; n];
    kernel.read_payload(0, &mut back, LONG).unwrap();
    assert!(back == words, "{seed}: an arena of {} bytes", 4 * n);
    // And a part of it that was never written as one.
    let mut last = [0f32; 3];
    kernel.read_payload(4 * (n as u64 - 3), &mut last, LONG).unwrap();
    assert_eq!(last, words[n - 3..]);
}

/// In every way, around the size at which it is chosen where the arena lies.
#[test]
fn arenas_keep_their_words_wherever_they_lie() {
    use PayloadMemory::{Auto, Device, Mapped};
    const LIMIT: usize = PayloadMemory::AUTO_MAPPED;
    on_each_device(|host| {
        for both in WAYS {
            let small = if both.1 == Memory::Mapped { Mapped } else { Device };
            let mut cases = vec![
                (Auto, 64, small),
                (Auto, LIMIT, small),
                (Auto, LIMIT + 4, Device),
                (Device, LIMIT, Device),
            ];
            if both.1 == Memory::Mapped {
                cases.extend([(Mapped, LIMIT, Mapped), (Mapped, 4 * LIMIT, Mapped)]);
            }
            for (asked, bytes, found) in cases {
                let launch = way(both).payload_bytes(bytes).payload_memory(asked);
                let mut kernel = host.launch::<VectorAdd>(launch).unwrap();
                assert_eq!(kernel.payload_memory(), found, "{asked}, {bytes} bytes, {both:?}");
                kernel.activate(LONG).unwrap();
                for seed in 0..3 {
                    keeps_its_words(&mut kernel, seed);
                    if both.0 != Mode::Persistent {
                        kernel.rest(LONG).unwrap(); // the next message launches it again
                    }
                }
                // It stays when the kernel is at rest, and when it has left.
                let mut last = [0f32; 1];
                kernel.deactivate(LONG).unwrap();
                kernel.write_payload(0, &[7.5f32], LONG).unwrap();
                kernel.activate(LONG).unwrap();
                keeps_its_words(&mut kernel, 9);
                kernel.write_payload(0, &[7.5f32], LONG).unwrap();
                kernel.terminate(LONG).unwrap();
                kernel.read_payload(0, &mut last, LONG).unwrap();
                assert_eq!(last, [7.5]);
            }
        }
    });
}

/// Where copies fail, vectors are added through an arena in mapped memory, and only there.
#[test]
fn a_small_payload_needs_no_copy() {
    let device = Quirks::of(Cpu::open()).failing_copies(1);
    let host = opened_with(&device, RuntimeConfig::default());
    for both in WAYS.into_iter().filter(|(_, memory)| *memory == Memory::Mapped) {
        let mut kernel = host.launch::<VectorAdd>(way(both)).unwrap();
        kernel.activate(LONG).unwrap();
        let (a, mut sum) = ([1.25f32; 100], [0f32; 100]);
        kernel.add(&a, &a, &mut sum, LONG).unwrap();
        assert_eq!(sum, [2.5; 100], "{both:?}");

        let launch = way(both).payload_memory(PayloadMemory::Device);
        let mut kernel = host.launch::<VectorAdd>(launch).unwrap();
        let error = kernel.write_payload(0, &a, LONG).unwrap_err();
        let PayloadError::Driver(error) = error else { panic!("{error}") };
        assert!(matches!(error.reason, DriverReason::Emulated(_)), "{error}");
    }
}

#[test]
fn a_mapped_payload_is_refused_where_the_rings_are_not() {
    let launch = |both| way(both).payload_memory(PayloadMemory::Mapped);
    on_each_device(|host| {
        for both in WAYS.into_iter().filter(|(_, memory)| *memory != Memory::Mapped) {
            for error in [
                host.launch::<VectorAdd>(launch(both)).map(drop).unwrap_err(),
                host.prepare::<VectorAdd>(&launch(both)).unwrap_err(),
            ] {
                names(
                    &error,
                    &["kernel vector_add", "LaunchConfig::payload_memory", "PayloadMemory::Auto"],
                );
                let LaunchError::Unfit { refused, .. } = error else { panic!("{error}") };
                assert!(refused.iter().all(|one| one.why == Obstacle::PayloadNotMapped));
            }
            // It asks for nothing where there is no arena.
            drop(host.launch::<VectorAdd>(launch(both).payload_bytes(0)).unwrap());
        }
    });
    // Nobody chose the memory of the rings, and mapped memory is not to be had.
    let unpinned = cpu_with(0, 1 << 20);
    let launch = LaunchConfig::default().payload_memory(PayloadMemory::Mapped);
    let error = unpinned.launch::<VectorAdd>(launch).map(drop).unwrap_err();
    names(&error, &["there is no pinned memory", "PayloadMemory::Auto"]);
    let mut kernel = unpinned.launch::<VectorAdd>(LaunchConfig::default()).unwrap();
    assert_eq!(kernel.payload_memory(), PayloadMemory::Device);
    kernel.activate(LONG).unwrap();
    keeps_its_words(&mut kernel, 1);
}

ring_device::ring_kernel! {
    /// Swaps a word of the arena for one of a large state. For the CPU device only.
    struct Swap { name: "swap", uses_payload: true, }

    fn handle(ctx: &ThreadContext, state: &mut [u32; 1024], request: &u32) -> u32 {
        let (words, i) = (ctx.payload().words::<u32>(0, 1024), *request as usize % 1024);
        let found = words.and_then(|words| words.get(i)).unwrap_or(u32::MAX);
        if let Some(words) = words {
            words.set(i, state[i]);
        }
        state[i] = found;
        found
    }
}

/// A state needs staging beside a payload in mapped memory. Where pinned memory has no room for both, the payload lies in
/// device memory, unless it was asked for elsewhere.
#[test]
fn a_payload_goes_to_device_memory_where_pinned_memory_is_short() {
    const BYTES: usize = 4096;
    let launch = |memory| {
        let launch = way(WAYS[0]).window(4).payload_bytes(BYTES);
        launch.payload_memory(memory)
    };
    let pinned =
        |memory| cpu().launch::<Swap>(launch(memory)).unwrap().pinned_bytes().next_multiple_of(256);
    let (less, more) = (pinned(PayloadMemory::Device), pinned(PayloadMemory::Mapped));
    assert_eq!(more - less, BYTES);
    for (room, found) in [
        (less, PayloadMemory::Device),
        (more - 256, PayloadMemory::Device),
        (more, PayloadMemory::Mapped),
    ] {
        let host = cpu_with(room, 1 << 16);
        let mut kernel = host.launch::<Swap>(launch(PayloadMemory::Auto)).unwrap();
        assert_eq!(kernel.payload_memory(), found, "{room} bytes of pinned memory");
        kernel.write_payload(0, &[5u32; 1024], LONG).unwrap();
        kernel.write_state(0, &[6; 1024], LONG).unwrap();
        kernel.activate(LONG).unwrap();
        kernel.send(1000, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(5));
        kernel.terminate(LONG).unwrap();
        let mut words = [0u32; 2];
        kernel.read_payload(4 * 999, &mut words, LONG).unwrap();
        assert_eq!(
            (words, kernel.read_state(0, LONG).unwrap()[999..1001].to_vec()),
            ([5, 6], vec![6, 5])
        );
        drop(kernel);
        let asked = host.launch::<Swap>(launch(PayloadMemory::Mapped)).map(drop);
        match asked {
            Ok(()) => assert_eq!(found, PayloadMemory::Mapped),
            Err(error) => {
                let LaunchError::Arena { kernel, which, .. } = error else { panic!("{error}") };
                assert_eq!((kernel, which), (Swap::NAME, ArenaKind::Pinned));
                assert_eq!(found, PayloadMemory::Device, "{error}");
            }
        }
    }
}
