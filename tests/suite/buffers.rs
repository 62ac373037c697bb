//! Buffers: what is written there is read there, by host and handlers, while kernels run; references that name no buffer are
//! refused; and no memory is used for something else while a handler may use it.

use proptest::prelude::*;
use ring_device::ring_kernel;
use ring_example_kernels::{Saxpy, SaxpyAnswer, SaxpyRequest};
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::{
    Buffer, BufferError, BufferRef, Device, GraphBuilder, KernelHandle, LaunchConfig, Memory, Mode,
    Runtime, RuntimeConfig,
};
use ring_tests::kernels::of_examples;
use ring_tests::{LONG, WAYS, cpu, cpu_with, gpu, on_each_device, opened, until};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

fn saxpy_in(host: &Runtime, (mode, memory): (Mode, Memory)) -> KernelHandle<Saxpy> {
    let launch = LaunchConfig::default().kernels(of_examples::<Saxpy>()).capacity(16);
    let mut kernel = host.launch::<Saxpy>(launch.mode(mode).memory(memory)).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn saxpy(host: &Runtime) -> KernelHandle<Saxpy> {
    saxpy_in(host, (Mode::Auto, Memory::Auto))
}

fn filled(host: &Runtime, values: &[f32]) -> Buffer<f32> {
    let buffer = host.buffer(values.len()).unwrap();
    buffer.upload(0, values, LONG).unwrap();
    buffer
}

fn all(buffer: &Buffer<f32>) -> Vec<f32> {
    let mut values = vec![0.0; buffer.len()];
    buffer.download(0, &mut values, LONG).unwrap();
    values
}

/// Whether the vectors were added.
fn add(kernel: &mut KernelHandle<Saxpy>, a: f32, x: BufferRef<f32>, y: BufferRef<f32>) -> bool {
    kernel.send(SaxpyRequest { a, x, y }, LONG).unwrap();
    let answer = kernel.recv(LONG).unwrap();
    let count = if answer.done == 1 { x.len() as u32 } else { 0 };
    assert_eq!(answer, SaxpyAnswer { done: answer.done, count });
    answer.done == 1
}

#[test]
fn a_new_buffer_is_zero_and_keeps_what_is_written_while_a_kernel_runs() {
    on_each_device(|host| {
        let mut kernel = saxpy(host);
        let one = filled(host, &[1.0; 8]);
        // One element, around the length of staging, and two arenas more.
        for length in [1, 1000, (1 << 18) + 3, 20 << 20] {
            let buffer = host.buffer::<u32>(length).unwrap();
            let mut words = vec![7; length];
            buffer.download(0, &mut words, LONG).unwrap();
            assert!(words.iter().all(|word| *word == 0), "{length}");
            let wanted: Vec<u32> =
                (0..length as u32).map(|k| k.wrapping_mul(0x9e37_79b9)).collect();
            buffer.upload(0, &wanted, LONG).unwrap();
            assert!(add(&mut kernel, 0.0, one.reference(), one.reference()));
            buffer.download(0, &mut words, LONG).unwrap();
            assert!(words == wanted, "{length}");
            let at = length - 1;
            buffer.upload(at, &[5], LONG).unwrap();
            let mut last = [0];
            buffer.download(at, &mut last, LONG).unwrap();
            assert_eq!(last, [5]);
        }
        let doubles = host.buffer::<f64>(3).unwrap();
        doubles.upload(1, &[1e300, -0.5], LONG).unwrap();
        let mut found = [1.0; 3];
        doubles.download(0, &mut found, LONG).unwrap();
        assert_eq!(found, [0.0, 1e300, -0.5]);
    });
}

#[test]
fn a_handler_reads_one_buffer_and_writes_another() {
    on_each_device(|host| {
        for way in WAYS {
            let mut kernel = saxpy_in(host, way);
            for length in [1, 4, 7, 1000, 5000] {
                let of = |f: fn(usize) -> f32| (0..length).map(f).collect::<Vec<f32>>();
                let x = filled(host, &of(|k| k as f32));
                let y = filled(host, &of(|k| 1000.0 + k as f32));
                assert!(add(&mut kernel, 2.0, x.reference(), y.reference()));
                assert!(all(&y).iter().eq(&of(|k| 1000.0 + 3.0 * k as f32)), "{way:?}, {length}");
                // What the host writes between two messages is seen, and so is what the one before wrote.
                x.upload(0, &vec![0.5; length], LONG).unwrap();
                assert!(add(&mut kernel, 2.0, x.reference(), y.reference()));
                assert!(all(&y).iter().eq(&of(|k| 1001.0 + 3.0 * k as f32)), "{way:?}, {length}");
            }
            // Parts that do not begin at 16 bytes.
            let (x, y) = (filled(host, &[1.0; 100]), filled(host, &[0.0; 100]));
            let part = |of: &Buffer<f32>, at| of.reference().slice(at..at + 50).unwrap();
            assert!(add(&mut kernel, 3.0, part(&x, 1), part(&y, 2)));
            assert!((0..100).all(|k| all(&y)[k] == if (2..52).contains(&k) { 3.0 } else { 0.0 }));
            kernel.terminate(LONG).unwrap();
        }
    });
}

#[test]
fn a_slice_of_cudarc_is_lent_and_given_back() {
    let Some(host) = gpu() else { return };
    let context = cudarc::driver::CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    let slice = Arc::new(stream.clone_htod(&[1.5f32; 1000]).unwrap());
    stream.synchronize().unwrap();
    let lent = host.lend(Arc::clone(&slice)).unwrap();
    assert_eq!((lent.len(), all(&lent)), (1000, vec![1.5; 1000]));
    let mut kernel = saxpy(&host);
    let y = filled(&host, &[1.0; 1000]);
    // Read, and written, by a handler; and a part of it.
    assert!(add(&mut kernel, 2.0, lent.reference(), y.reference()));
    assert_eq!(all(&y), [4.0; 1000]);
    let part = |of: &Buffer<f32>| of.reference().slice(999..1000).unwrap();
    assert!(add(&mut kernel, 1.0, part(&y), part(&lent)));
    kernel.terminate(LONG).unwrap();
    let old = lent.reference();
    drop(lent);
    assert_eq!((host.reclaim_buffers(LONG), Arc::strong_count(&slice)), (Ok(0), 1));
    let found = stream.clone_dtoh(&*slice).unwrap();
    assert!(found.iter().enumerate().all(|(k, x)| *x == if k == 999 { 5.5 } else { 1.5 }));
    let mut kernel = saxpy(&host);
    assert!(!add(&mut kernel, 1.0, old, y.reference()), "it was given back");
    kernel.terminate(LONG).unwrap();
}

#[test]
fn references_that_name_no_buffer_are_refused() {
    on_each_device(|host| {
        let mut kernel = saxpy(host);
        let (x, y) = (filled(host, &[1.0; 16]), filled(host, &[2.0; 16]));
        let whole = x.reference();
        let other = Runtime::open(Device::Cpu).unwrap();
        let foreign = filled(&other, &[3.0; 16]);
        let gone = filled(host, &[4.0; 16]);
        let stale = gone.reference();
        drop(gone);
        assert_eq!(host.reclaim_buffers(LONG), Ok(0));
        let again = filled(host, &[5.0; 16]); // in the same entry
        let long = whole.slice(0..16).unwrap();
        let bytes = bytemuck::cast::<BufferRef<f32>, [u32; 4]>(long);
        let with = |k: usize, n: u32| {
            let mut bytes = bytes;
            bytes[k] = n;
            bytemuck::cast::<[u32; 4], BufferRef<f32>>(bytes)
        };
        for bad in [
            stale,
            foreign.reference(),
            bytemuck::Zeroable::zeroed(),
            with(0, bytes[0] + 77),
            with(0, u32::MAX),
            with(1, 0),
            with(1, bytes[1].wrapping_add(1 << 20)),
            with(2, 1),
            with(2, u32::MAX),
            with(3, 17),
            with(3, u32::MAX),
        ] {
            assert!(!add(&mut kernel, 1.0, bad, y.reference()), "{bad:?}");
            assert!(!add(&mut kernel, 1.0, whole, bad), "{bad:?}");
        }
        assert!(whole.slice(1..16).unwrap().cast::<f64>().is_none(), "not aligned");
        assert!(add(&mut kernel, 1.0, again.reference(), y.reference()));
        assert_eq!((all(&x), all(&y)), (vec![1.0; 16], vec![7.0; 16]));
        kernel.terminate(LONG).unwrap();
        assert_eq!(kernel.telemetry().refused, 22);
    });
}

ring_kernel! {
    /// The first word of a buffer; all ones if it is refused. For the CPU device only.
    struct Peek { name: "peek", uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u32>) -> u32 {
        ctx.view(request).and_then(|view| view.get(0)).unwrap_or(u32::MAX)
    }
}

ring_kernel! {
    /// The same, but it does not say that it uses memory outside its messages.
    struct Undeclared { name: "undeclared", }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u32>) -> u32 {
        ctx.view(request).and_then(|view| view.get(0)).unwrap_or(u32::MAX)
    }
}

/// Which buffer [`Front`] reads, or which word of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
struct Turn {
    to: BufferRef<u64>,
    at: u64,
}

ring_kernel! {
    /// Reads words of the buffer that was named last. For the CPU device only.
    struct Front { name: "front", uses_payload: true, }

    fn handle(ctx: &ThreadContext, front: &mut BufferRef<u64>, turn: &Turn) -> u64 {
        if !turn.to.is_empty() {
            *front = turn.to;
        }
        ctx.view(front).and_then(|view| view.get(turn.at as usize)).unwrap_or(u64::MAX)
    }
}

fn active<K: ring_host::Kernel>(host: &Runtime) -> KernelHandle<K> {
    let mut kernel = host.launch::<K>(LaunchConfig::default().capacity(64)).unwrap();
    kernel.activate(LONG).unwrap();
    kernel
}

fn peek<K: ring_host::Kernel<Request = BufferRef<u32>, Response = u32>>(
    kernel: &mut KernelHandle<K>,
    reference: BufferRef<u32>,
) -> Option<u32> {
    kernel.send(reference, LONG).unwrap();
    Some(kernel.recv(LONG).unwrap()).filter(|word| *word != u32::MAX)
}

fn numbered(host: &Runtime, number: u32) -> Buffer<u32> {
    let buffer = host.buffer(64).unwrap();
    buffer.upload(0, &[number; 64], LONG).unwrap();
    buffer
}

#[test]
fn a_kernel_that_does_not_declare_it_views_no_buffer() {
    let host = cpu();
    let buffer = numbered(&host, 5);
    assert_eq!(peek(&mut active::<Undeclared>(&host), buffer.reference()), None);
    assert_eq!(peek(&mut active::<Peek>(&host), buffer.reference()), Some(5));
}

ring_kernel! {
    /// The sum of a frozen buffer; all ones if it is refused. For the CPU device only.
    struct SumFrozen { name: "sum frozen", uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u32>) -> u32 {
        ctx.frozen(request).map_or(u32::MAX, |words| words.iter().sum())
    }
}

#[test]
fn a_frozen_buffer_is_a_slice_and_nothing_else() {
    let host = cpu();
    let (mut sum, mut view) = (active::<SumFrozen>(&host), active::<Peek>(&host));
    let frozen = host.frozen_buffer(&[1, 20, 300, 4000], LONG).unwrap();
    assert_eq!(frozen.len(), 4);
    let all = frozen.reference();
    assert_eq!(peek(&mut sum, all), Some(4321));
    assert_eq!(peek(&mut sum, all.slice(1..3).unwrap()), Some(320));
    assert_eq!(peek(&mut sum, all.slice(4..4).unwrap()), Some(0));
    assert_eq!(peek(&mut view, all), None, "who views it could write");
    assert_eq!(peek(&mut sum, numbered(&host, 5).reference()), None, "others may write it");
    let longer = BufferRef::from_parts(all.entry(), all.generation(), 0, 5);
    assert_eq!(peek(&mut sum, longer), None);
    let mut back = [0; 2];
    frozen.download(1, &mut back, LONG).unwrap();
    assert_eq!(back, [20, 300]);
    drop(frozen);
    assert_eq!(host.reclaim_buffers(LONG), Ok(0), "all was answered");
    assert_eq!(peek(&mut sum, all), None);
    assert_eq!(host.frozen_buffer::<u64>(&[], LONG).unwrap_err(), BufferError::Empty);
}

/// A message that names what was dropped before reads all of it, or is refused; it never reads what came there later.
#[test]
fn a_frozen_buffer_stays_until_what_was_sent_is_answered() {
    let host = cpu();
    let mut kernel = active::<SumFrozen>(&host);
    for round in 0..2000_u32 {
        let frozen = host.frozen_buffer(&[round; 64], LONG).unwrap();
        let reference = frozen.reference();
        kernel.send(reference, LONG).unwrap();
        drop(frozen);
        kernel.send(reference, LONG).unwrap();
        let next = host.frozen_buffer(&[u32::MAX / 64; 64], LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(64 * round));
        host.reclaim_buffers(LONG).unwrap();
        let stale = kernel.recv(LONG).unwrap();
        assert!([64 * round, u32::MAX].contains(&stale), "{round}: {stale}");
        drop(next);
    }
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
}

/// A message between two requests swaps the buffer that they read.
#[test]
fn a_message_swaps_buffers() {
    let host = cpu();
    let mut kernel = active::<Front>(&host);
    let none = bytemuck::Zeroable::zeroed();
    let buffers = [1u64, 2].map(|n| {
        let buffer = host.buffer::<u64>(10).unwrap();
        buffer.upload(0, &[n << 40; 10], LONG).unwrap();
        buffer
    });
    for round in 0..10 {
        let front = &buffers[round % 2];
        let number = (round as u64 % 2 + 1) << 40;
        kernel.send(Turn { to: front.reference(), at: 0 }, LONG).unwrap();
        for at in 1..11 {
            kernel.send(Turn { to: none, at }, LONG).unwrap();
        }
        for at in 0..11 {
            assert_eq!(kernel.recv(LONG), Ok(if at < 10 { number } else { u64::MAX }));
        }
    }
    // The one that it keeps a reference to was given back.
    drop(buffers);
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    kernel.send(Turn { to: none, at: 0 }, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(u64::MAX));
}

#[test]
fn memory_is_kept_until_the_answers_to_what_was_sent_are_received() {
    let host = cpu();
    let (mut kernel, mut idle) = (active::<Peek>(&host), active::<Peek>(&host));
    let buffer = numbered(&host, 1);
    let reference = buffer.reference();
    for _ in 0..3 {
        kernel.send(reference, LONG).unwrap();
    }
    drop(buffer);
    kernel.send(reference, LONG).unwrap();
    assert_eq!(host.reclaim_buffers(LONG), Ok(1));
    let others: Vec<_> = (2..10).map(|n| numbered(&host, n)).collect();
    for _ in 0..2 {
        assert_eq!(kernel.recv(LONG), Ok(1));
        assert_eq!(host.reclaim_buffers(LONG), Ok(1));
    }
    // With the third answer it is refused; what was sent since may have found it.
    assert_eq!(kernel.recv(LONG), Ok(1));
    assert_eq!(host.reclaim_buffers(LONG), Ok(1));
    assert_eq!(peek(&mut idle, reference), None);
    assert!([1, u32::MAX].contains(&kernel.recv(LONG).unwrap()));
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    for (other, n) in others.iter().zip(2..) {
        assert_eq!(peek(&mut kernel, other.reference()), Some(n));
    }
}

/// A request for a buffer that was given back, while the buffer is refused: it finds the whole buffer or none.
#[test]
fn a_request_that_comes_while_a_buffer_is_refused_reads_it_or_nothing() {
    let host = cpu();
    let mut kernel = active::<Peek>(&host);
    for round in 0..20_000 {
        let buffer = host.buffer::<u32>(1).unwrap();
        let reference = buffer.reference();
        drop(buffer);
        kernel.send(reference, LONG).unwrap();
        // Now and then a moment later, to meet the copy that refuses it.
        for _ in 0..round % 64 {
            std::hint::spin_loop();
        }
        host.reclaim_buffers(LONG).unwrap();
        assert!([0, u32::MAX].contains(&kernel.recv(LONG).unwrap()));
    }
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
}

#[test]
fn a_kernel_that_has_ended_holds_nothing() {
    let host = cpu();
    let mut kernel = active::<Peek>(&host);
    let buffer = numbered(&host, 1);
    kernel.send(buffer.reference(), LONG).unwrap();
    drop(buffer);
    assert_eq!(host.reclaim_buffers(LONG), Ok(1));
    kernel.terminate(LONG).unwrap();
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    // Nor does one that was dropped, when it has left.
    let mut kernel = active::<Peek>(&host);
    let buffer = numbered(&host, 2);
    kernel.send(buffer.reference(), LONG).unwrap();
    drop((buffer, kernel));
    until("the dropped kernel has left", || {
        drop(host.launch::<Undeclared>(LaunchConfig::default()));
        (host.reclaim_buffers(LONG) == Ok(0)).then_some(())
    });
}

ring_kernel! {
    /// As [`Peek`], to a port. For the CPU device only.
    struct Relay { name: "relay", ports: { ON: [u32; 1] }, uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u32>, out: &mut Ports) {
        let found = ctx.view(request).and_then(|view| view.get(0));
        out.emit(Relay::ON, found.unwrap_or(u32::MAX));
    }
}

#[test]
fn a_kernel_with_ports_holds_buffers_until_it_has_ended() {
    let host = cpu();
    let mut graph = GraphBuilder::new();
    let node = graph.kernel::<Relay>(LaunchConfig::default());
    graph.feed(node);
    let on = graph.read(node, Relay::ON);
    let mut graph = host.launch_graph(&graph).unwrap();
    graph.activate(LONG).unwrap();
    let mut sender = graph.sender(node, 0).unwrap();
    let mut receiver = graph.receiver(on, 0).unwrap();
    let buffer = numbered(&host, 4);
    let reference = buffer.reference();
    drop(buffer);
    for _ in 0..3 {
        sender.send(reference, LONG).unwrap();
        assert_eq!(receiver.recv(LONG), Ok(4), "nobody knows whether it still uses it");
        assert_eq!(host.reclaim_buffers(LONG), Ok(1));
    }
    graph.terminate(LONG).unwrap();
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
}

/// The runtime may be dropped first, and its buffers too.
#[test]
fn a_kernel_outlives_runtime_and_buffers() {
    let host = cpu();
    let mut kernel = active::<Peek>(&host);
    let (kept, dropped) = (numbered(&host, 1), numbered(&host, 2));
    let reference = dropped.reference();
    drop((host, dropped));
    assert_eq!(peek(&mut kernel, kept.reference()), Some(1));
    assert_eq!(peek(&mut kernel, reference), Some(2), "nobody has reclaimed it");
    kept.upload(0, &[3], LONG).unwrap();
    assert_eq!(peek(&mut kernel, reference), None);
    assert_eq!(peek(&mut kernel, kept.reference()), Some(3));
}

#[test]
fn what_cannot_be_is_refused_with_the_limit() {
    let host = cpu();
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    assert_eq!(host.buffer::<u32>(0).unwrap_err(), BufferError::Empty);
    let length = 1 << 32;
    assert_eq!(host.buffer::<u32>(length).unwrap_err(), BufferError::TooLong { length });
    let buffer = host.buffer::<u64>(4).unwrap();
    for (offset, count) in [(0, 5), (4, 1), (5, 0), (usize::MAX, 2)] {
        let error = BufferError::OutOfBounds { offset, count, length: 4 };
        assert_eq!(buffer.upload(offset, &vec![0; count], LONG).unwrap_err(), error);
        assert_eq!(buffer.download(offset, &mut vec![0; count], LONG).unwrap_err(), error);
    }
    buffer.upload(4, &[], LONG).unwrap();
    let all: Vec<_> = (1..4096).map(|_| host.buffer::<u32>(1).unwrap()).collect();
    assert_eq!(host.buffer::<u32>(1).unwrap_err(), BufferError::TooMany);
    drop(all);
    assert!(host.buffer::<u32>(1).is_ok());
}

/// Where memory is short, or there is no pinned memory, or calls block.
#[test]
fn buffers_are_had_on_devices_that_lack_much() {
    let wsl2 = || Quirks::wsl2(Cpu::open());
    let of = |quirks: Quirks| opened(&quirks, RuntimeConfig::default());
    let hosts = [
        cpu_with(0, 1 << 20),
        cpu_with(1 << 18, 1 << 16),
        of(wsl2()),
        of(Quirks::of(Cpu::open()).late_copies(3)),
        of(Quirks::of(Cpu::open()).invalid_handles(3)),
    ];
    for host in hosts {
        let mut kernel = saxpy(&host);
        for round in 0..3 {
            let (x, y) = (filled(&host, &[1.0; 3000]), filled(&host, &[round as f32; 3000]));
            assert!(add(&mut kernel, 2.0, x.reference(), y.reference()));
            assert_eq!(all(&y), [2.0 + round as f32; 3000], "{:?}", host.device());
        }
    }
}

/// A kernel runs where no copy can be made, but views nothing.
#[test]
fn without_copies_there_are_no_buffers() {
    let host = opened(&Quirks::of(Cpu::open()).failing_copies(1), RuntimeConfig::default());
    assert!(matches!(host.buffer::<f32>(1), Err(BufferError::Driver(_))));
    assert!(matches!(host.frozen_buffer(&[1.0_f32], LONG), Err(BufferError::Driver(_))));
    let mut kernel = saxpy_in(&host, (Mode::Persistent, Memory::Mapped));
    let foreign = filled(&cpu(), &[1.0; 4]);
    assert!(!add(&mut kernel, 1.0, foreign.reference(), foreign.reference()));
}

/// A copy that is late outlasts its deadline; the next one waits for it, and it lands on nothing else.
#[test]
fn a_copy_that_timed_out_lands_before_the_next() {
    let host = opened(&Quirks::of(Cpu::open()).late_copies(5), RuntimeConfig::default());
    let buffer = host.buffer::<u32>(64).unwrap();
    let (mut late, mut found) = (0, [0; 64]);
    for n in 1..200 {
        let done = buffer.upload(0, &[n; 64], Duration::ZERO);
        late += u32::from(matches!(done, Err(BufferError::Timeout { .. })));
        buffer.download(0, &mut found, LONG).unwrap();
        assert!(found == [n; 64] || found == [n - 1; 64], "{n}: {found:?}");
        buffer.upload(0, &[n; 64], LONG).unwrap();
    }
    assert!(late > 0);
}

/// One whose copy did not end in time is none, and nothing is left of it.
#[test]
fn a_frozen_buffer_that_is_late_is_none() {
    let host = opened(&Quirks::of(Cpu::open()).late_copies(5), RuntimeConfig::default());
    let mut kernel = active::<SumFrozen>(&host);
    let (mut late, mut made) = (0, Vec::new());
    for n in 1..100_u32 {
        match host.frozen_buffer(&[n; 1000], Duration::from_micros(u64::from(n % 10))) {
            Ok(frozen) => made.push((frozen, n)),
            Err(error) => {
                assert!(matches!(error, BufferError::Timeout { .. }), "{error}");
                late += 1;
            }
        }
        made.push((host.frozen_buffer(&[n; 1000], LONG).unwrap(), n));
    }
    assert!(late > 0);
    for (frozen, n) in &made {
        assert_eq!(peek(&mut kernel, frozen.reference()), Some(1000 * n));
    }
    made.clear();
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
}

/// What happens in a course of [`no_buffer_is_used_for_another`].
#[derive(Clone, Copy, Debug)]
enum Act {
    New,
    /// Drops one of those that are there.
    Drop(usize),
    /// Sends a message that names one that is there.
    Send(usize),
    /// Sends one that names a buffer that was given back.
    SendStale(usize),
    Receive,
    Reclaim,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        3 => Just(Act::New),
        2 => (0usize..8).prop_map(Act::Drop),
        5 => (0usize..8).prop_map(Act::Send),
        2 => (0usize..8).prop_map(Act::SendStale),
        4 => Just(Act::Receive),
        2 => Just(Act::Reclaim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Each buffer holds a number of its own. A message that was sent before its buffer was dropped finds that number; one
    /// that was sent later finds it or is refused; none finds another's.
    #[test]
    fn no_buffer_is_used_for_another(acts in proptest::collection::vec(act(), 1..120)) {
        let host = cpu_with(1 << 20, 1 << 20);
        let mut kernel = active::<Peek>(&host);
        let (mut there, mut gone) = (Vec::new(), Vec::new());
        let (mut number, mut sent) = (0, VecDeque::new());
        let receive = |kernel: &mut KernelHandle<Peek>, (number, was_there): (u32, bool)| {
            let found = kernel.recv(LONG).unwrap();
            prop_assert!(found == number || !was_there && found == u32::MAX, "{found}, not {number}");
            Ok(())
        };
        for act in acts {
            match act {
                Act::New => {
                    number += 1;
                    there.push((number, numbered(&host, number)));
                }
                Act::Drop(k) if !there.is_empty() => {
                    let (number, buffer) = there.swap_remove(k % there.len());
                    gone.push((number, buffer.reference()));
                }
                Act::Send(k) if !there.is_empty() && sent.len() < 32 => {
                    let (number, buffer) = &there[k % there.len()];
                    kernel.send(buffer.reference(), LONG).unwrap();
                    sent.push_back((*number, true));
                }
                Act::SendStale(k) if !gone.is_empty() && sent.len() < 32 => {
                    let (number, reference) = gone[k % gone.len()];
                    kernel.send(reference, LONG).unwrap();
                    sent.push_back((number, false));
                }
                Act::Receive => {
                    if let Some(next) = sent.pop_front() {
                        receive(&mut kernel, next)?;
                    }
                }
                Act::Reclaim => {
                    let left = host.reclaim_buffers(LONG).unwrap();
                    prop_assert!(left <= gone.len());
                    if sent.is_empty() {
                        prop_assert_eq!(left, 0);
                    }
                }
                _ => {}
            }
        }
        while let Some(next) = sent.pop_front() {
            receive(&mut kernel, next)?;
        }
        prop_assert_eq!(host.reclaim_buffers(LONG), Ok(0));
        for (number, buffer) in &there {
            prop_assert_eq!(peek(&mut kernel, buffer.reference()), Some(*number));
        }
        for (_, reference) in gone {
            prop_assert_eq!(peek(&mut kernel, reference), None);
        }
    }
}
