//! Stages: the parts of a block's scratch memory through which workers pass messages, and how much block-shared memory a
//! kernel is launched with for them.

use crate::kernel::{Group, Kernel, Scope};
use crate::memory::BlockMemory;
use crate::memory::flow::Areas;
use crate::memory::scratch::{HEAD_BYTES, OWN_BYTES, SCRATCH_BYTES};
use crate::ports::WithPorts;
use core::mem::offset_of;
use ring_shared::Message;

/// Most bytes of scratch memory: two blocks find room in a multiprocessor of compute capability 9.0, which has 228 KiB.
const MOST_SCRATCH_BYTES: usize = 108 * 1024;
const _: () = assert!(2 * (HEAD_BYTES + MOST_SCRATCH_BYTES + 1024) <= 228 * 1024);

/// The same of a kernel with ports and so many threads or fewer; one with more has a multiprocessor for itself, by its registers,
/// and so all of its block-shared memory but for 4 KiB: what handlers emit more at a time costs less.
const MOST_THREADS_OF_TWO: u32 = 256;
const MOST_SCRATCH_OF_ONE: usize = 220 * 1024;
const _: () = assert!(HEAD_BYTES + MOST_SCRATCH_OF_ONE <= 227 * 1024);

const _: () = assert!(offset_of!(BlockMemory, scratch) <= HEAD_BYTES);
const _: () = assert!(OWN_BYTES <= 48 * 1024);

/// Bytes of requests, and of responses, that a worker of a GPU handles at a time, unless one is larger: four atoms for each
/// of its threads, as many as it has registers to read at once.
const CHUNK_BYTES: usize = 2048;

/// Most messages that it handles at a time.
const CHUNK: usize = 128;

/// The same of a CPU's thread: it is all the block, and what it looks at besides its messages costs as much as some of
/// them.
const CHUNK_ON_CPU: usize = 256;

/// Bytes from one message of `K` to the next in the scratch memory of a warp.
pub(crate) const fn stride<K: Kernel>() -> usize {
    16 * <K::Scope as Scope<K>>::STAGE.0
}

/// Most messages of `K` that a worker handles at a time, a power of two.
pub(crate) const fn chunk<K: Kernel>(on_gpu: bool) -> usize {
    let (a, b) = (K::Request::SLOT_ATOMS, K::Response::SLOT_ATOMS);
    let larger = 16 * if a > b { a } else { b };
    let (fit, most) = match on_gpu {
        true => (CHUNK_BYTES / larger, CHUNK),
        false => (SCRATCH_BYTES / 2 / stride::<K>(), CHUNK_ON_CPU),
    };
    let fit = if fit < most { fit } else { most };
    if fit == 0 { 1 } else { 1 << fit.ilog2() }
}

/// Of a block of so many warps the first that is a worker in a stream, and how many workers `room` bytes of scratch memory
/// have a stage for: the first two warps have other things to do, if there are more.
pub(crate) const fn workers(warps: u32, room: usize, stage: usize) -> (u32, u32) {
    let first = if warps < 3 { warps } else { 3 } - 1;
    let (warps, stages) = (warps - first, (room / stage) as u32);
    (first, if warps < stages { warps } else { stages })
}

/// Bytes of dynamic block-shared memory that a block of so many threads of kernel `K` is launched with on a GPU, if it
/// may have so many; with less, down to the 48 KiB that every GPU has, fewer warps answer messages.
#[doc(hidden)]
pub const fn shared_bytes<K: Kernel>(threads: u32) -> u32 {
    (HEAD_BYTES + scratch_bytes::<K>(threads) + K::SHARED_BYTES) as u32
}

/// The least of them that a block can have; more than every GPU gives a block only where the kernel declares memory for its handlers.
#[doc(hidden)]
pub const fn least_shared_bytes<K: Kernel>() -> u32 {
    (OWN_BYTES + K::SHARED_BYTES) as u32
}

/// Those of them that are scratch memory.
pub(crate) const fn scratch_bytes<K: Kernel>(threads: u32) -> usize {
    if K::SHARED_BYTES > 0 {
        return SCRATCH_BYTES;
    }
    let stage = chunk::<K>(true) * stride::<K>();
    let stages = match <K::Scope as Scope<K>>::GROUP {
        Group::Warp => workers(threads.div_ceil(32), MOST_SCRATCH_BYTES, stage).1 as usize * stage,
        // What is emitted passes through it too.
        Group::Block if <K::Scope as Scope<K>>::PORTS.is_some() => match threads {
            ..=MOST_THREADS_OF_TWO => MOST_SCRATCH_BYTES,
            _ => MOST_SCRATCH_OF_ONE,
        },
        Group::Block | Group::One => 0,
    };
    if stages > SCRATCH_BYTES { stages } else { SCRATCH_BYTES }
}

/// Most messages that a warp of a channel of kernel `K` with so many rings handles at a time, in a block of so many threads on a GPU
/// that gives a block so many bytes of block-shared memory at most, or on a CPU thread; 0 if there is no room for so many rings.
#[doc(hidden)]
pub fn messages_a_chunk<K: WithPorts>(rings: [usize; 2], block: Option<(u32, u32)>) -> u32 {
    let (warps, room) = match block {
        Some((threads, most)) => {
            let shared = shared_bytes::<K>(threads).min(most) as usize;
            (threads.div_ceil(32) as usize, shared.saturating_sub(HEAD_BYTES + K::SHARED_BYTES))
        }
        None => (1, SCRATCH_BYTES),
    };
    let warps = <K::Scope as Scope<K>>::EMITTERS.warps(warps);
    Areas::new((K::Request::SLOT_ATOMS, K::PORTS), rings.into(), warps, room).chunk
}
