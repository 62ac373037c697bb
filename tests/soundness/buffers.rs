//! What handlers and references can do to buffers: any bytes may stand for a reference, any index be asked for, and memory be
//! given back while a handler views it.

use crate::memory::{self, fill, small_device};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use ring_device::{BufferRef, ThreadContext, View, ring_kernel};
use ring_host::{Buffer, Element, Kernel, KernelHandle, LaunchConfig, Memory, Runtime};
use ring_tests::{LONG, WAYS, cpu};
use std::mem;
use std::sync::Mutex;

fn launched<K: Kernel>(host: &Runtime, launch: LaunchConfig) -> KernelHandle<K> {
    memory::launched(host, launch.payload_bytes(64))
}

/// The bytes of a reference.
type Bits = [u32; 4];

/// What is found behind a reference: whether there is a view, its elements, and a digest of their bytes.
type Found = [u32; 3];

const NOTHING: Found = [0; 3];

fn found_in<T: Element>(elements: impl ExactSizeIterator<Item = T>) -> Found {
    let count = elements.len() as u32;
    let digest = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    let digest = elements.fold(0, |hash, one| bytemuck::bytes_of(&one).iter().fold(hash, digest));
    [1, count, digest]
}

/// Indices behind the end of `n` elements, also such as overflow once they are counted in bytes.
fn behind(n: usize) -> impl Iterator<Item = usize> {
    let far = [1 << 30, 1 << 32, 1 << 60, 1 << 61, usize::MAX / 4, usize::MAX / 8];
    let far = far.into_iter().flat_map(|i| [i - 1, i, i + 1]);
    let last = (0..5).map(|k| usize::MAX - k);
    (n..n + 5).chain(far.filter(move |i| *i > n)).chain(last)
}

/// Reads a view, and tries to reach what is behind it.
fn explore<T: Element>(view: &View<'_, T>) -> Found {
    let n = view.len();
    assert_eq!((view.is_empty(), view.iter().count()), (n == 0, n));
    for i in behind(n) {
        assert!(view.get(i).is_none() && !view.set(i, bytemuck::Zeroable::zeroed()), "{i} of {n}");
    }
    let found = found_in((0..n).map(|i| view.get(i).expect("an element")));
    for i in 0..n {
        assert!(view.set(i, view.get(i).expect("an element")));
    }
    found
}

/// The same of what is read and written without a branch.
fn explore_elements(view: &View<'_, u32>) {
    let n = view.len();
    let Some(elements) = view.elements() else { return assert!(n == 0) };
    assert_eq!(elements.len() as usize, n);
    let last = view.get(n - 1);
    for k in [n - 1, n, n + 1, 1 << 30, u32::MAX as usize] {
        assert_eq!(Some(elements.nearest(k as u32)), last, "{k} of {n}");
        assert_eq!(elements.set(k as u32, elements.nearest(k as u32)), k < n, "{k} of {n}");
    }
    for k in 0..n {
        assert_eq!(Some(elements.nearest(k as u32)), view.get(k), "{k} of {n}");
    }
}

/// The same of what is read and written by fours.
fn explore_fours(view: &View<'_, u32>, [.., offset, _]: &Bits) {
    let (n, is_aligned) = (view.len(), offset.is_multiple_of(4)); // buffers begin at a multiple of 16
    for i in (n.saturating_sub(3)..n).chain(behind(n)) {
        assert!(view.get4(i).is_none() && !view.set4(i, [7; 4]), "{i} of {n}");
    }
    for i in 0..n.saturating_sub(3) {
        let four = view.get4(i);
        assert_eq!(four.is_some(), is_aligned && i % 4 == 0, "{i} of {n}");
        if let Some(four) = four {
            assert!(view.set4(i, four));
            assert!((0..4).all(|k| view.get(i + k) == Some(four[k])));
        }
    }
    let Some(fours) = view.fours() else { return assert!(n < 4 || !is_aligned) };
    let last = view.get4(n / 4 * 4 - 4);
    for k in [n / 4 - 1, n / 4, n / 4 + 1, 1 << 28, u32::MAX as usize] {
        let k = k as u32;
        assert_eq!(Some(fours.nearest(k)), last, "{k} of {n}");
        assert_eq!(fours.set(k, fours.nearest(k)), k < n as u32 / 4, "{k} of {n}");
    }
}

/// What a handler finds that takes the bytes for references to elements of each size; digests are of the same bytes.
fn explored(ctx: &ThreadContext<'_>, bits: &Bits) -> [Found; 2] {
    let words = ctx.view::<u32>(&bytemuck::cast(*bits));
    words.iter().for_each(|words| explore_fours(words, bits));
    words.iter().for_each(explore_elements);
    let longs = ctx.view::<u64>(&bytemuck::cast(*bits));
    let adder = ctx.adder(&bytemuck::cast(*bits));
    assert_eq!(adder.map(|adder| adder.len()), longs.map(|longs| longs.len()));
    if let (Some(longs), Some(adder)) = (longs, adder) {
        for i in behind(longs.len()) {
            assert!(!longs.add(i, 1) && !adder.add(i, 1), "{i} of {}", longs.len());
        }
        assert!((0..longs.len()).all(|i| longs.add(i, 1) && adder.add(i, u64::MAX)));
    }
    let halves = ctx.view::<f64>(&bytemuck::cast(*bits));
    assert_eq!(halves.map(|halves| halves.len()), longs.map(|longs| longs.len()));
    [words.map_or(NOTHING, |words| explore(&words)), longs.map_or(NOTHING, |longs| explore(&longs))]
}

ring_kernel! {
    /// Answers what it finds by a thread.
    struct Exploring { name: "exploring", uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &Bits) -> [Found; 2] {
        explored(ctx, request)
    }
}

ring_kernel! {
    /// The same by all blocks of a grid, each of which reads and writes all of it.
    struct ExploringGrid { name: "exploring_grid", uses_payload: true, }

    fn handle(ctx: &GridContext, request: &Bits, response: &Output<[Found; 2]>) {
        let words = ctx.view::<u32>(&bytemuck::cast(*request));
        let longs = ctx.view::<u64>(&bytemuck::cast(*request));
        words.iter().for_each(|words| explore_fours(words, request));
        let found = [
            words.map_or(NOTHING, |words| explore(&words)),
            longs.map_or(NOTHING, |longs| explore(&longs)),
        ];
        let word = |k: usize| found.as_flattened()[k];
        for k in 0..6 {
            assert_eq!(ctx.sum(word(k)), word(k).wrapping_mul(ctx.blocks() as u32), "in all blocks");
            response.set(0, k, word(k));
        }
    }
}

/// Lengths of the buffers that are there, in words.
const LENGTHS: [usize; 6] = [1, 3, 4, 7, 64, 513];

/// Word `i` of buffer `k`.
fn word(k: usize, i: usize) -> u32 {
    (k as u32 + 1) << 24 | i as u32
}

/// A change of a word of a reference.
#[derive(Clone, Copy, Debug)]
enum Change {
    Near(i8),
    Bit(u8),
    To(u32),
}

impl Change {
    fn apply(self, word: u32) -> u32 {
        match self {
            Change::Near(by) => word.wrapping_add_signed(by.into()),
            Change::Bit(bit) => word ^ 1 << (bit % 32),
            Change::To(other) => other,
        }
    }
}

/// One of the references that were given out, and changes of its words; or any bytes.
fn forged() -> impl Strategy<Value = (usize, Vec<(usize, Change)>, Option<Bits>)> {
    let change = prop_oneof![
        4 => (-9i8..9).prop_map(Change::Near),
        2 => any::<u8>().prop_map(Change::Bit),
        1 => any::<u32>().prop_map(Change::To),
        // A part of a long buffer, or none of it.
        2 => (0..600u32).prop_map(Change::To),
        1 => (0..9u32).prop_map(|below| Change::To(u32::MAX - below)),
    ];
    let changes = prop::collection::vec((0..8usize, change), 0..4);
    let any_bits = prop::option::weighted(0.1, any::<Bits>());
    (0..2 * LENGTHS.len(), changes, any_bits)
}

/// The elements that a reference names in the buffers that are there.
fn named<T: Element>(there: &[Buffer<u32>], bits: Bits) -> Found {
    let [entry, generation, offset, length] = bits;
    let of = |k: usize| (0..LENGTHS[k]).map(move |i| word(k, i)).collect::<Vec<u32>>();
    let names = |buffer: &Buffer<u32>| {
        bytemuck::cast::<_, Bits>(buffer.reference())[..2] == [entry, generation]
    };
    let Some(k) = there.iter().position(names) else { return NOTHING };
    let (words, each) = (of(k), size_of::<T>() / 4);
    let (first, end) = (offset as usize * each, (offset as usize + length as usize) * each);
    let Some(words) = words.get(first..end) else { return NOTHING };
    found_in(
        words.chunks(each).map(|one| bytemuck::pod_read_unaligned::<T>(bytemuck::cast_slice(one))),
    )
}

/// Buffers that are there, references that were given out, of which as many name a buffer that was given back.
fn buffers(host: &Runtime) -> (Vec<Buffer<u32>>, Vec<Bits>) {
    let all = || LENGTHS.map(|length| host.buffer::<u32>(length).unwrap());
    let gone = all();
    let mut given: Vec<Bits> = gone.iter().map(|one| bytemuck::cast(one.reference())).collect();
    drop(gone);
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    let there = Vec::from(all());
    for (k, buffer) in there.iter().enumerate() {
        buffer.upload(0, &(0..buffer.len()).map(|i| word(k, i)).collect::<Vec<_>>(), LONG).unwrap();
        given.push(bytemuck::cast(buffer.reference()));
    }
    (there, given)
}

fn any_bits_find_what_they_name<K: Kernel<Request = Bits, Response = [Found; 2]>>(
    launch: LaunchConfig,
) {
    let host = cpu();
    let (there, given) = buffers(&host);
    let kernel = std::cell::RefCell::new(launched::<K>(&host, launch));
    let found = |bits: Bits| {
        let mut kernel = kernel.borrow_mut();
        kernel.send(bits, LONG).unwrap();
        kernel.recv(LONG).unwrap_or_else(|error| panic!("{bits:x?}: {error}"))
    };
    let check = |bits: Bits| {
        let wanted = [named::<u32>(&there, bits), named::<u64>(&there, bits)];
        prop_assert_eq!(found(bits), wanted, "{:x?}", bits);
        Ok::<_, TestCaseError>(())
    };
    for (k, length) in LENGTHS.into_iter().enumerate() {
        let [stale, whole] = [given[k], given[k + LENGTHS.len()]];
        assert_eq!(found(stale), [NOTHING; 2]);
        assert_eq!(found(whole)[0][..2], [1, length as u32]);
        check(whole).unwrap();
    }
    let config = Config { failure_persistence: None, ..Config::with_cases(2000) };
    let run = TestRunner::new(config).run(&forged(), |(of, changes, any_bits)| {
        let mut bits = given[of];
        for (word, change) in changes {
            // Mostly the offset and the length.
            let word = [0, 1, 2, 2, 2, 3, 3, 3][word];
            bits[word] = change.apply(bits[word]);
        }
        check(any_bits.unwrap_or(bits))
    });
    run.unwrap_or_else(|error| panic!("{error}"));
    for (k, buffer) in there.iter().enumerate() {
        let mut words = vec![0; buffer.len()];
        buffer.download(0, &mut words, LONG).unwrap();
        assert!((0..words.len()).all(|i| words[i] == word(k, i)), "{words:x?}");
    }
}

#[test]
fn any_bits_that_a_thread_takes_for_a_reference_find_what_they_name() {
    any_bits_find_what_they_name::<Exploring>(LaunchConfig::default());
}

#[test]
fn any_bits_that_a_grid_takes_for_a_reference_find_what_they_name() {
    any_bits_find_what_they_name::<ExploringGrid>(LaunchConfig::default().blocks(2));
}

/// What a handler of [`Giving`] gives back.
static ON: Mutex<Option<(Buffer<u64>, Runtime)>> = Mutex::new(None);

ring_kernel! {
    /// Gives back the buffer that it views, takes the memory that is free, and goes on with the view. Answers the sum of what it
    /// finds; where there is no view, all ones.
    struct Giving { name: "giving", uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u64>) -> u64 {
        let Some(view) = ctx.view(request) else { return u64::MAX };
        if let Some((buffer, host)) = ON.lock().unwrap().take() {
            drop(buffer);
            assert_eq!(host.reclaim_buffers(LONG), Ok(1), "it is viewed");
            let others: Vec<_> = (0..20).map(|n| filled(&host, n)).collect();
            assert_eq!(ctx.view(request).map(|view| view.len()), Some(view.len()));
            assert!((0..view.len()).all(|i| view.add(i, 1)));
            assert!((0..).zip(&others).all(|(n, other)| contents(other) == [n; 512]));
            assert_eq!(host.reclaim_buffers(LONG), Ok(1), "it is viewed");
        }
        view.iter().sum()
    }
}

fn filled(host: &Runtime, number: u64) -> Buffer<u64> {
    let buffer = host.buffer(512).unwrap();
    buffer.upload(0, &[number; 512], LONG).unwrap();
    buffer
}

fn contents(buffer: &Buffer<u64>) -> [u64; 512] {
    let mut found = [0; 512];
    buffer.download(0, &mut found, LONG).unwrap();
    found
}

#[test]
fn a_view_of_a_buffer_that_its_handler_gives_back_keeps_its_memory() {
    // Where nothing is copied beside a launch, no buffer is made while the handler runs.
    for (mode, memory) in WAYS.into_iter().filter(|(_, memory)| *memory != Memory::StagedSync) {
        let host = small_device();
        let launch = LaunchConfig::default().mode(mode).memory(memory);
        let mut kernel = launched::<Giving>(&host, launch);
        let buffer = filled(&host, 100);
        let reference = buffer.reference();
        *ON.lock().unwrap() = Some((buffer, host.clone()));
        kernel.send(reference, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(512 * 101), "{mode} in {memory}");
        assert_eq!(host.reclaim_buffers(LONG), Ok(0));
        let again: Vec<_> = (0..20).map(|n| filled(&host, n)).collect();
        kernel.send(reference, LONG).unwrap();
        assert_eq!(kernel.recv(LONG), Ok(u64::MAX), "{mode} in {memory}: it is given back");
        drop(again);
    }
}

ring_kernel! {
    /// The sum of what a buffer holds; where there is no view, all ones.
    struct Summing { name: "summing", uses_payload: true, }

    fn handle(ctx: &ThreadContext, request: &BufferRef<u64>) -> u64 {
        ctx.view(request).map_or(u64::MAX, |view| view.iter().sum())
    }
}

#[test]
fn a_forgotten_buffer_keeps_its_memory() {
    let host = small_device();
    let mut kernel = launched::<Summing>(&host, LaunchConfig::default());
    let buffer = filled(&host, 5);
    let reference = buffer.reference();
    mem::forget(buffer); // nobody can give it back now
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    let others: Vec<_> = (0..20).map(|n| filled(&host, n)).collect();
    let kernels = fill(&host);
    kernel.send(reference, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(512 * 5));
    drop((others, kernels));
    kernel.send(reference, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(512 * 5));
}

ring_kernel! {
    /// All blocks write and read all words of a buffer at the same time, by elements of each size, and one by one and four at
    /// once. Answers how many words were neither of those that somebody writes, and how often each block has added.
    struct Crowding { name: "crowding", uses_payload: true, }

    fn handle(ctx: &GridContext, request: &[BufferRef<u32>; 2], response: &Output<[u32; 2]>) {
        let [words, counts] = request;
        let (Some(words), Some(wide), Some(counts)) = (
            ctx.view(words),
            words.cast::<u64>().and_then(|words| ctx.view(&words)),
            counts.cast::<u64>().and_then(|counts| ctx.view(&counts)),
        ) else { return };
        let fours = words.fours().expect("they begin at a multiple of 16");
        let (own, mut torn, mut added) = (ctx.block() as u32, 0u32, 0u32);
        let is_whole = |word: u32| word == 0 || word == u32::MAX;
        for round in 0..20u32 {
            let value = if (round + own) % 2 == 0 { u32::MAX } else { 0 };
            for i in 0..words.len() {
                let k = i / 4 * 4;
                match (round + own) % 4 {
                    0 => _ = words.set(i, value),
                    1 => _ = wide.set(i / 2, u64::from(value) << 32 | u64::from(value)),
                    2 => _ = words.set4(k, [value; 4]),
                    _ => _ = fours.set(k as u32 / 4, [value; 4]),
                }
                let four = words.get4(k).expect("four");
                let near = fours.nearest(k as u32 / 4);
                let [low, high]: [u32; 2] = bytemuck::cast(wide.get(i / 2).expect("an element"));
                let one = words.get(i).expect("an element");
                let found = [low, high, one].into_iter().chain(four).chain(near);
                torn += found.filter(|word| !is_whole(*word)).count() as u32;
                added += u32::from(counts.add(i % counts.len(), 1 << 31));
            }
        }
        response.set(0, 0, ctx.sum(torn));
        response.set(0, 1, added);
    }
}

/// Blocks and the host at the same elements at the same time: each word is an old one or a new one, and no addition is lost.
#[test]
fn words_of_a_buffer_are_never_torn() {
    let host = cpu();
    let mut kernel = launched::<Crowding>(&host, LaunchConfig::default().blocks(2));
    let (words, counts) = (host.buffer::<u32>(256).unwrap(), host.buffer::<u32>(8).unwrap());
    let mut added = 0;
    std::thread::scope(|threads| {
        let host = threads.spawn(|| {
            for round in 0..100 {
                words.upload(0, &[if round % 2 == 0 { u32::MAX } else { 0 }; 256], LONG).unwrap();
                let mut found = [1; 256];
                words.download(0, &mut found, LONG).unwrap();
                assert!(found.iter().all(|word| [0, u32::MAX].contains(word)), "{found:x?}");
            }
        });
        while added == 0 || !host.is_finished() {
            kernel.send([words.reference(), counts.reference()], LONG).unwrap();
            let [torn, by_each] = kernel.recv(LONG).unwrap();
            assert_eq!((torn, by_each), (0, 20 * 256));
            added += 2 * u64::from(by_each);
        }
    });
    let mut found = [0; 8];
    counts.download(0, &mut found, LONG).unwrap();
    let found: [u64; 4] = bytemuck::cast(found);
    assert_eq!(found, [(added / 4) << 31; 4]);
}

/// Kernels that have ended use no buffer, and those that are there need none of them.
#[test]
fn buffers_outlive_kernels_and_kernels_outlive_buffers() {
    let host = small_device();
    let buffer = filled(&host, 3);
    let mut ended = launched::<Summing>(&host, LaunchConfig::default());
    ended.terminate(LONG).unwrap();
    assert!(ended.send(buffer.reference(), LONG).is_err());
    buffer.upload(0, &[4; 512], LONG).unwrap();
    let mut kernel = launched::<Summing>(&host, LaunchConfig::default());
    kernel.send(buffer.reference(), LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(512 * 4));
    let reference = buffer.reference();
    drop((buffer, ended));
    assert_eq!(host.reclaim_buffers(LONG), Ok(0));
    drop(host);
    kernel.send(reference, LONG).unwrap();
    assert_eq!(kernel.recv(LONG), Ok(u64::MAX));
}
