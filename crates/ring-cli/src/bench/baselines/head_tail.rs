//! Rings with a head and a tail each, in mapped memory: a block a pair on the GPU, a thread a pair on
//! the host, which writes its messages straight into the slots.

use super::Gpu;
use super::gpu::Entry;
use crate::bench::bed::{Bed, wrong};
use crate::bench::drive::{Load, Pipe, together};
use crate::bench::ours::BATCH;
use crate::bench::report::{Found, Shape, Throughput, Whose};
use crate::bench::stats::Rates;
use ring_bench::baselines::{HeadTail, Pair};
use std::sync::atomic::Ordering;

/// Slots of a ring.
const CAPACITY: usize = 8192;

/// Threads of a block, and most messages that the device takes at once. Of each pair count the best
/// counts.
const WAYS: [(u32, u64); 4] = [(512, 512), (512, 4096), (1024, 512), (1024, 4096)];

/// A way by its name.
fn name(most: u64) -> &'static str {
    if most == 512 { "head/tail 512" } else { "head/tail 4096" }
}

/// Pairs that there is room for.
const PAIRS: usize = 8;

/// The host's end of a pair.
struct Host<'a> {
    pair: &'a Pair,
    requests: *mut [u64; 8],
    responses: *const [u64; 8],
    sent: u64,
    got: u64,
}

// SAFETY: the slots are this pair's alone, and outlive every thread.
unsafe impl Send for Host<'_> {}

impl Pipe for Host<'_> {
    #[inline]
    fn send(&mut self, most: usize) -> Result<usize, String> {
        // SYNC: acquires the device's release: it has read those slots.
        let taken = self.pair.request_head.0.load(Ordering::Acquire);
        let end = (self.sent + most as u64).min(taken + CAPACITY as u64);
        let first = self.sent;
        while self.sent < end {
            let slot = self.sent as usize & (CAPACITY - 1);
            // SAFETY: the slot is free, so only this thread touches it until the tail below moves.
            unsafe { self.requests.add(slot).write([self.sent; 8]) };
            self.sent += 1;
        }
        if self.sent != first {
            // SYNC: released to the device's acquire.
            self.pair.request_tail.0.store(self.sent, Ordering::Release);
        }
        Ok((self.sent - first) as usize)
    }

    #[inline]
    fn receive(&mut self, most: usize) -> Result<usize, String> {
        // SYNC: acquires the device's release of the responses.
        let there = self.pair.response_tail.0.load(Ordering::Acquire);
        let end = there.min(self.got + most as u64);
        let (first, mut wrong) = (self.got, 0);
        while self.got < end {
            let slot = self.got as usize & (CAPACITY - 1);
            // SAFETY: the device has written it and leaves it alone until the head below moves.
            let words = unsafe { self.responses.add(slot).read() };
            wrong |= words.iter().fold(0, |x, word| x | (word ^ (self.got + 1)));
            self.got += 1;
        }
        if wrong != 0 {
            return Err(format!("an answer from message {first} on is wrong"));
        }
        if self.got != first {
            // SYNC: released to the device's acquire.
            self.pair.response_head.0.store(self.got, Ordering::Release);
        }
        Ok((self.got - first) as usize)
    }
}

/// Messages a second, once, by a kernel launched for that.
fn rate(
    bed: &Bed<'_>,
    gpu: &mut Gpu,
    pairs: u32,
    (threads, most): (u32, u64),
    load: &Load,
) -> Found<f64> {
    const RINGS: usize = 64 << 10;
    const BYTES: usize = PAIRS * CAPACITY * 64;
    gpu.bind()?;
    gpu.clear(RINGS + 2 * BYTES);
    let (requests, requests_at) = gpu.pinned(RINGS, BYTES);
    let (responses, responses_at) = gpu.pinned(RINGS + BYTES, BYTES);
    let (head, head_at) = gpu.pinned(0, size_of::<HeadTail>());
    let (_, pairs_at) = gpu.pinned(4096, PAIRS * size_of::<Pair>());
    // SAFETY: cleared pinned memory, aligned, which nobody else uses now.
    let of = unsafe { &mut *head.cast::<HeadTail>() };
    (of.pairs, of.requests, of.responses) = (pairs_at, requests_at, responses_at);
    (of.capacity, of.most) = (CAPACITY as u64, most);
    of.limit = bed.settings.leash().as_nanos() as u64;
    let (of, gpu) = (&*of, &*gpu);
    let mut hosts = Vec::new();
    for k in 0..pairs as usize {
        // SAFETY: zeros are a pair; the device writes atomics.
        let (pair, _) = unsafe { gpu.shared::<Pair>(4096 + k * size_of::<Pair>()) };
        let first = k * CAPACITY;
        let (requests, responses) = (requests.cast::<[u64; 8]>(), responses.cast::<[u64; 8]>());
        let (requests, responses) = (requests.wrapping_add(first), responses.wrapping_add(first));
        hosts.push(Host { pair, requests, responses, sent: 0, got: 0 });
    }
    // SAFETY: the struct, its pairs and its slots are set, and stay.
    unsafe { gpu.launch(Entry::HeadTail, pairs, threads, head_at) }?;
    gpu.nudge();
    let warm = Load { time: load.time / 10, ..*load };
    let driven = together(&mut hosts, &warm, bed.cores)
        .and_then(|_| together(&mut hosts, load, bed.cores))
        .map_err(wrong);
    of.stop.0.store(1, Ordering::Release);
    gpu.finish(bed.settings.leash())?;
    driven
}

/// Rates of each way while they are being measured.
#[derive(Debug)]
pub struct HeadTails {
    pairs: u32,
    ways: Vec<Found<Rates>>,
}

impl HeadTails {
    /// Nothing measured yet.
    pub fn new(pairs: u32) -> HeadTails {
        HeadTails { pairs, ways: vec![Ok(Rates::default()); WAYS.len()] }
    }

    /// Measures each once.
    pub fn round(&mut self, bed: &Bed<'_>, gpu: &mut Gpu) {
        for (rates, way) in self.ways.iter_mut().zip(WAYS) {
            let Ok(known) = rates else { continue };
            match rate(bed, gpu, self.pairs, way, &bed.load()) {
                Ok(rate) => known.add(rate),
                Err(stop) => *rates = Err(stop),
            }
        }
    }

    /// What was found.
    pub fn rows(self) -> Vec<Throughput> {
        let row = |(rate, (threads, most)): (_, (u32, u64))| Throughput {
            sweep: "head_tail",
            name: name(most),
            device: "cuda",
            whose: Whose::Baseline,
            shape: Shape {
                lanes: self.pairs,
                bytes: 64,
                answer_bytes: 64,
                threads,
                batch: BATCH,
                depth: 2 * CAPACITY as u64,
                capacity: CAPACITY as u32,
            },
            rate,
        };
        self.ways.into_iter().zip(WAYS).map(row).collect()
    }
}
