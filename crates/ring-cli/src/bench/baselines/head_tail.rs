//! Rings with a head and a tail each, in mapped memory: a block a pair on the GPU, a thread a pair on
//! the host, which writes its messages straight into the slots. How many slots, how many messages on
//! their way and in what batches is what ours has, taken from its [`Shape`].

use super::gpu::Entry;
use crate::bench::context::Context;
use crate::bench::drive::{Load, Pipe, together};
use crate::bench::report::{Found, Shape, Throughput, Whose};
use crate::bench::turns::{Rate, Rated};
use ring_bench::baselines::{HeadTail, Pair};
use std::sync::atomic::Ordering;

/// Ways to run them, by the most messages that the device takes at once. The best counts.
const WAYS: [(&str, Rate); 2] = [("head/tail 512", rate::<512>), ("head/tail 4096", rate::<4096>)];

/// Threads of a block that are tried beside as many as ours has. The best counts.
const OTHER_THREADS: u32 = 1024;

/// Bytes of a message: the kernel moves four atoms of 16.
const BYTES: usize = size_of::<[u64; 8]>();

/// Where the pairs of rings begin in the pinned memory, and where their slots do.
const PAIRS_AT: usize = 4 << 10;
const SLOTS_AT: usize = 64 << 10;

/// Bytes of all request slots of that shape, and of all response slots.
fn slot_bytes(shape: &Shape) -> usize {
    shape.channels as usize * shape.capacity as usize * BYTES
}

/// The host's end of a pair.
#[derive(Debug)]
pub struct Host<'a> {
    pair: &'a Pair,
    requests: *mut [u64; 8],
    responses: *const [u64; 8],
    /// Slots of each ring, a power of two.
    capacity: u64,
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
        let end = (self.sent + most as u64).min(taken + self.capacity);
        let first = self.sent;
        while self.sent < end {
            let slot = (self.sent & (self.capacity - 1)) as usize;
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
            let slot = (self.got & (self.capacity - 1)) as usize;
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

/// Lets `work` use the pairs of a kernel launched for that, which takes up to `most` messages at once.
pub fn with<T>(
    context: &Context<'_>,
    shape: &Shape,
    most: u64,
    work: impl FnOnce(Vec<Host<'_>>) -> Found<T>,
) -> Found<T> {
    let bytes = slot_bytes(shape);
    let mut gpu = context.gpu()?;
    gpu.bind()?;
    gpu.clear(SLOTS_AT + 2 * bytes);
    let (requests, requests_at) = gpu.pinned(SLOTS_AT, bytes);
    let (responses, responses_at) = gpu.pinned(SLOTS_AT + bytes, bytes);
    let (head, head_at) = gpu.pinned(0, size_of::<HeadTail>());
    let (_, pairs_at) = gpu.pinned(PAIRS_AT, shape.channels as usize * size_of::<Pair>());
    // SAFETY: cleared pinned memory, aligned, which nobody else uses now.
    let of = unsafe { &mut *head.cast::<HeadTail>() };
    (of.pairs, of.requests, of.responses) = (pairs_at, requests_at, responses_at);
    (of.capacity, of.most) = (shape.capacity.into(), most);
    of.limit = context.settings.kernel_limit().as_nanos() as u64;
    let (of, gpu) = (&*of, &*gpu);
    let mut hosts = Vec::new();
    for k in 0..shape.channels as usize {
        // SAFETY: zeros are a pair; the device writes atomics.
        let (pair, _) = unsafe { gpu.shared::<Pair>(PAIRS_AT + k * size_of::<Pair>()) };
        let first = k * shape.capacity as usize;
        let (requests, responses) = (requests.cast::<[u64; 8]>(), responses.cast::<[u64; 8]>());
        let (requests, responses) = (requests.wrapping_add(first), responses.wrapping_add(first));
        let capacity = of.capacity;
        hosts.push(Host { pair, requests, responses, capacity, sent: 0, got: 0 });
    }
    // SAFETY: the struct, its pairs and its slots are set, and stay.
    unsafe { gpu.launch(Entry::HeadTail, shape.channels, shape.threads, head_at) }?;
    gpu.nudge();
    let done = work(hosts);
    of.stop.0.store(1, Ordering::Release);
    gpu.finish(context.settings.kernel_limit())?;
    context.check_interrupt()?; // else it may have been cut short
    done
}

/// Messages a second, once, by a kernel launched for that.
fn rate<const MOST: u64>(context: &Context<'_>, shape: &Shape) -> Found<f64> {
    with(context, shape, MOST, |mut hosts| {
        let load = shape.load(&context.load());
        let warm = Load { time: load.time / 10, ..load };
        together(&mut hosts, &warm, context.cores)?;
        together(&mut hosts, &load, context.cores)
    })
}

/// Every way, with as many pairs, slots, messages on their way and messages a batch as `ours`.
///
/// # Panics
/// If messages of that shape are not those of the kernel.
pub fn beside(ours: &Shape) -> Vec<Rated> {
    assert_eq!((ours.bytes, ours.answer_bytes), (BYTES, BYTES), "messages of another size");
    let way = |threads: u32, (name, rate)| {
        let shape = Shape { threads, ..ours.clone() };
        let row = Throughput::new("head_tail", (name, Whose::Baseline), "cuda", shape);
        Rated { row, rate }
    };
    let threads = [ours.threads, OTHER_THREADS];
    threads.into_iter().flat_map(|n| WAYS.map(|kind| way(n, kind))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::baselines::gpu::HOST_BYTES;
    use ring_bench::baselines::Line;
    use ring_host::kernels::Echo;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn the_pinned_memory_has_room_for_all_pairs() {
        let shape = Shape::of::<Echo>().channels(8);
        assert!(SLOTS_AT + 2 * slot_bytes(&shape) <= HOST_BYTES);
        assert!(size_of::<HeadTail>() <= PAIRS_AT);
        assert!(PAIRS_AT + 8 * size_of::<Pair>() <= SLOTS_AT);
    }

    #[test]
    fn a_pair_takes_as_many_messages_as_it_has_slots() {
        const SLOTS: usize = 8;
        let line = || Line(AtomicU64::new(0));
        let pair = Pair {
            request_head: line(),
            request_tail: line(),
            response_head: line(),
            response_tail: line(),
        };
        let (mut requests, mut responses) = ([[0u64; 8]; SLOTS], [[0u64; 8]; SLOTS]);
        let (requests, responses) = (requests.as_mut_ptr(), responses.as_mut_ptr());
        let capacity = SLOTS as u64;
        let mut host = Host { pair: &pair, requests, responses, capacity, sent: 0, got: 0 };
        for round in 1..4 {
            let answered = |n: u64| {
                for i in n - capacity..n {
                    // SAFETY: inside both arrays, which live; nothing else uses them meanwhile.
                    unsafe {
                        responses
                            .add(i as usize % SLOTS)
                            .write(requests.add(i as usize % SLOTS).read().map(|word| word + 1))
                    };
                }
                pair.request_head.0.store(n, Ordering::Release);
                pair.response_tail.0.store(n, Ordering::Release);
            };
            assert_eq!((host.send(3), host.send(100), host.send(1)), (Ok(3), Ok(5), Ok(0)));
            assert_eq!(host.receive(100), Ok(0));
            answered(round * capacity);
            assert_eq!((host.receive(6), host.receive(100)), (Ok(6), Ok(2)));
        }
        assert_eq!((host.sent, host.got), (3 * capacity, 3 * capacity));
    }
}
