//! What handlers do on the CPU device, where the compiler lets them do anything that is safe: drop the
//! kernel that runs them, race with the host for the payload, answer in odd sizes.

use ring_device::ring_kernel;
use ring_host::{
    KernelHandle, LaunchConfig, Output, PayloadMemory, Runtime, SendTimeoutError, TryRecvError,
};
use ring_tests::{LONG, WAYS, cpu, cpu_with};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

ring_kernel! {
    /// Drops the kernel that runs it, and goes on beside one that is given the memory that is free.
    struct Sawing { name: "sawing", uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &u32) -> u32 {
        BEGUN.store(true, SeqCst);
        let (kernel, host) = loop {
            match ON.lock().unwrap().take() {
                Some(on) => break on,
                None => std::thread::yield_now(),
            }
        };
        // Gives up waiting for this very handler. Nobody else has a part of it.
        drop(kernel);
        let launch = LaunchConfig::default().capacity(16).payload_bytes(4096);
        let mut beside = host.launch::<Peeking>(launch).expect("there is room for two");
        beside.write_payload(0, &[0u32; 1024], LONG).unwrap();
        let words = ctx.payload().words::<u32>(0, 1024).expect("it is still there");
        assert!((0..1024).all(|i| words.set(i, *request)) && !words.set(1024, 1));
        let mut others = [1u32; 1024];
        beside.read_payload(0, &mut others, LONG).unwrap();
        *WAS_ALONE.lock().unwrap() = Some(others == [0; 1024]);
        words.get(1023).expect("there are 1024")
    }
}

static ON: Mutex<Option<(KernelHandle<Sawing>, Runtime)>> = Mutex::new(None);
static BEGUN: AtomicBool = AtomicBool::new(false);
static WAS_ALONE: Mutex<Option<bool>> = Mutex::new(None);

#[test]
fn a_handler_that_drops_its_kernel_keeps_its_memory() {
    for (mode, memory) in WAYS {
        let host = cpu_with(64 << 10, 64 << 10);
        let launch =
            LaunchConfig::default().mode(mode).memory(memory).capacity(16).payload_bytes(4096);
        let mut kernel = host.launch::<Sawing>(launch).unwrap();
        kernel.activate(LONG).unwrap();
        BEGUN.store(false, SeqCst);
        kernel.send(7, LONG).unwrap();
        let begun = Instant::now();
        while !BEGUN.load(SeqCst) {
            assert_eq!(kernel.try_recv(), Err(TryRecvError::Empty)); // drives it
            assert!(begun.elapsed() < LONG, "{mode} in {memory}: no handler");
        }
        *ON.lock().unwrap() = Some((kernel, host));
        let was_alone = loop {
            if let Some(alone) = WAS_ALONE.lock().unwrap().take() {
                break alone;
            }
            assert!(begun.elapsed() < LONG, "{mode} in {memory}: the handler does not end");
            std::thread::yield_now();
        };
        assert!(was_alone, "{mode} in {memory}: another kernel was lent its memory");
    }
}

ring_kernel! {
    /// Answers with what it finds in the arena.
    struct Peeking { name: "peeking", uses_payload: true, }

    fn handle(ctx: &ThreadContext, place: &u64) -> [u32; 8] {
        let words = ctx.payload().words::<u32>(*place, 8);
        if let Some(words) = words {
            assert!(words.len() == 8 && !words.is_empty() && words.iter().count() == 8);
            assert!(words.get(8).is_none() && words.get(usize::MAX).is_none());
        }
        std::array::from_fn(|i| words.and_then(|words| words.get(i)).unwrap_or(0))
    }
}

/// Host and handler at the same words at the same time: each word is an old one or a new one.
#[test]
fn words_are_never_torn() {
    words_are_never_torn_in(PayloadMemory::Mapped);
    words_are_never_torn_in(PayloadMemory::Device);
}

fn words_are_never_torn_in(memory: PayloadMemory) {
    let host = cpu();
    let launch = LaunchConfig::default().payload_bytes(4096).payload_memory(memory);
    let mut kernel = host.launch::<Peeking>(launch).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.write_payload(0, &[0u32; 1024], LONG).unwrap();
    let mut channel = kernel.take_channel(0).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for round in 0..200u32 {
                let words = [if round % 2 == 0 { u32::MAX } else { 0 }; 1024];
                kernel.write_payload(0, &words, LONG).unwrap();
            }
            stop.store(true, SeqCst);
        });
        while !stop.load(SeqCst) {
            channel.send(4 * 100, LONG).unwrap();
            let seen = channel.recv(LONG).unwrap();
            assert!(seen.iter().all(|word| [0, u32::MAX].contains(word)), "{seen:x?}");
        }
    });
}

/// Requests that name what is not in the arena, or not at a word, show a handler nothing.
#[test]
fn a_request_cannot_name_memory_outside_the_arena() {
    let mut kernel = cpu().launch::<Peeking>(LaunchConfig::default().payload_bytes(64)).unwrap();
    kernel.activate(LONG).unwrap();
    kernel.write_payload(0, &[u32::MAX; 16], LONG).unwrap();
    let outside = [33, 36, 60, 64, 68, 1 << 31, 1 << 40, u64::MAX - 31, u64::MAX - 28, u64::MAX];
    for place in outside {
        kernel.send(place, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok([0; 8]), "at {place}");
    }
    kernel.send(32, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok([u32::MAX; 8]));
}

/// Sets everything in and around the response, whatever its size.
fn smear<R: ring_host::Message>(response: &Output<R>) {
    for offset in [0, 1, 2, 3, 4, size_of::<R>(), usize::MAX, usize::MAX - 3, usize::MAX / 4 * 4] {
        for i in [0, 1, 2, 3, size_of::<R>() / 4, usize::MAX, usize::MAX / 4, usize::MAX / 4 + 1] {
            let at = i.checked_mul(4).and_then(|words| words.checked_add(offset));
            let whole = at.is_some_and(|at| at.is_multiple_of(4) && at < size_of::<R>() / 4 * 4);
            assert_eq!(response.set(offset, i, u32::MAX), whole, "{offset} {i}");
        }
    }
}

/// Kernels of odd sizes: each handled by a thread, a warp and a block; the answer is all that is written.
macro_rules! odd {
    ($($test:ident: $request:literal to $response:literal;)+) => {$(
        mod $test {
            use super::*;

            ring_kernel! {
                struct OfThread { name: "of_thread", }
                fn handle(request: &[u8; $request]) -> [u8; $response] {
                    std::array::from_fn(|i| request[i % request.len()].wrapping_add(1))
                }
            }
            ring_kernel! {
                struct OfWarp { name: "of_warp", }
                fn handle(_ctx: &WarpContext, _request: &[u8; $request], response: &Output<[u8; $response]>) {
                    smear(response);
                }
            }
            ring_kernel! {
                struct OfBlock { name: "of_block", }
                fn handle(_ctx: &BlockContext, _request: &[u8; $request], response: &Output<[u8; $response]>) {
                    smear(response);
                }
            }
            ring_kernel! {
                struct InOrder { name: "in_order", }
                fn handle(before: &mut [u8; $response], request: &[u8; $request]) -> [u8; $response] {
                    *before = std::array::from_fn(|i| before[i].wrapping_add(request[i % request.len()]));
                    *before
                }
            }

            #[test]
            fn stays_in_its_slot() {
                let host = cpu();
                let request = |n: u8| [n; $request];
                let added = |n: u8| [n.wrapping_add(1); $response];
                goes_round::<OfThread>(&host, request, |n, answer| assert_eq!(answer, added(n)));
                let whole = |_: u8, answer: [u8; $response]| {
                    let zeros = answer.iter().rev().take_while(|byte| **byte == 0).count();
                    // Only whole words are written, and of a message of less than one none.
                    assert!(zeros >= $response % 4, "{answer:?}");
                };
                goes_round::<OfWarp>(&host, request, whole);
                goes_round::<OfBlock>(&host, request, whole);
                let mut sum = 0u8;
                goes_round::<InOrder>(&host, request, |n, answer| {
                    sum = sum.wrapping_add(n);
                    assert_eq!(answer, [sum; $response]);
                });
            }
        }
    )+};
}

odd! {
    one_byte: 1 to 1;
    three_bytes: 3 to 7;
    a_line_and_a_byte: 84 to 85;
    beyond_the_line: 85 to 13;
    across_atoms: 17 to 100;
    the_largest: 8192 to 8191;
}

/// Messages one by one, which travel in the line if they fit, and many at once through slots.
fn goes_round<K: ring_host::Kernel>(
    host: &Runtime,
    request: impl Fn(u8) -> K::Request,
    mut check: impl FnMut(u8, K::Response),
) {
    let mut kernel = host.launch::<K>(LaunchConfig::default().capacity(8)).unwrap();
    kernel.activate(LONG).unwrap();
    for n in 0..3 {
        kernel.send(request(n), LONG).map_err(SendTimeoutError::without_message).unwrap();
        check(n, kernel.recv(LONG).unwrap());
    }
    let requests: Vec<_> = (3..11).map(&request).collect();
    assert_eq!(kernel.try_send_batch(&requests), Ok(8));
    for n in 3..11 {
        check(n, kernel.recv(LONG).unwrap());
    }
    kernel.terminate(LONG).unwrap();
}
