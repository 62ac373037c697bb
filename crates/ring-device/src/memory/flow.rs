//! How messages pass through the block of a kernel with ports, at the beginning of its scratch memory: the steps that are under
//! way, and where the rest of the memory begins.

use super::links::{Input, NARROW, Output};
use crate::block::cell::{Cell, Word};
use crate::block::{Cooperate, Threads};
use crate::emissions::{PortShape, Stages};
use crate::memory::signals::Decision;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::AtomicU32;
use ring_shared::layout::{MAX_PORTS, PortLinks, Routing};

/// Steps that may be under way at once.
pub(crate) const STEPS: usize = 4;

/// Most messages of a step.
pub(crate) const MOST_OF_STEP: u32 = 2048;

/// Most workers: a block has 32 warps at most.
const MOST_WORKERS: usize = 32;

/// Most messages of a chunk: a GPU's thread has two.
pub(crate) const MOST_OF_CHUNK: usize = if Threads::WARP > 1 { 64 } else { 256 };

/// What a channel knows of its links from the beginning of a launch to its end: plain words, so that the compiler reads them
/// together, and once.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Rings.
    pub inputs: u32,
    pub outputs: u32,
    /// Most messages of a step.
    pub most: u32,
    pub areas: Areas,
    pub ports: [PortLinks; MAX_PORTS],
}

impl Layout {
    /// Of a channel that handles `most` messages at a time at most.
    pub fn new((inputs, outputs): (u32, u32), areas: Areas, most: u32) -> Layout {
        let areas = Areas { chunk: areas.chunk.min(most), ..areas };
        let none = PortLinks { first: 0, count: 0, routing: Routing::All };
        Layout { inputs, outputs, most: most.min(MOST_OF_STEP), areas, ports: [none; MAX_PORTS] }
    }

    /// Whether one look of the first warp shows all rings: see [`Lane`](super::links::Lane).
    #[inline(always)]
    pub fn is_narrow(&self) -> bool {
        Threads::WARP > 1 && self.inputs <= NARROW.0 && self.outputs <= NARROW.1
    }
}

/// What the block's threads tell each other. The chunks of a launch are numbered as they come; numbers are low halves.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Flow {
    /// Set by lane 0 of the first warp: whether there is a stream to begin, or else what to do.
    pub decision: Cell<Decision>,
    /// Set by that lane: the host has asked the channel to become inactive, which it does when its inputs are empty.
    pub drains: Cell<bool>,
    /// Where the host has the table of the channel's links. Set before the channel begins.
    pub links: Cell<u64>,
    /// Whether a ring leads to the host or to another device. Set before the channel begins.
    pub leaves_device: Cell<bool>,
    /// Set by that lane: whether what all threads are to handle together is one message that came inline, and no stream.
    pub is_inline: Cell<bool>,
    /// What is wrong, and with which chunk: all before it have their places then. Set by the worker that has it, or before the
    /// channel begins.
    pub wrong: Cell<Decision>,
    pub wrong_at: Cell<u64>,
    /// Set by the first warp: chunks that workers may take.
    pub chunks: AtomicU32,
    /// Set by the first warp where there is no stream: the worker that has the next chunk.
    pub worker: AtomicU32,
    /// Where messages are handled one after the other: the number of the next chunk. Set by the worker that has that before.
    pub turn: AtomicU32,
    /// Of each worker the number of its next chunk: it is done with those before, of which all that was emitted is in slots. Set by
    /// the worker.
    next: [AtomicU32; MOST_WORKERS],
    /// Steps under way.
    pub steps: [Step; STEPS],
}

/// A step. Set by the first warp before it tells workers of its chunks.
#[repr(C, align(16))]
#[derive(Debug)]
pub(crate) struct Step {
    /// Its chunks.
    pub chunks: Cell<Chunks>,
    /// Its messages.
    pub n: AtomicU32,
    /// The input that they come from.
    pub input: AtomicU32,
    /// The low half of the index of the first there.
    pub index: AtomicU32,
}

impl Flow {
    /// One thread: as it is before the channel begins, whose links are told there.
    pub fn begin(&self, links: u64) {
        self.links.set(links);
        self.decision.set(Decision::Continue);
        self.drains.set(false);
        self.leaves_device.set(false);
        self.wrong.set(Decision::Continue);
        self.turn.store(0, Relaxed);
        self.chunks.store(0, Relaxed);
        self.worker.store(0, Relaxed);
        for (me, next) in self.next.iter().enumerate() {
            next.store(me as u32, Relaxed); // workers take chunks in turns
        }
        for step in &self.steps {
            step.chunks.set(Chunks { first: 0, count: 0 });
        }
    }

    /// The number of the next chunk of worker `me`.
    #[inline(always)]
    pub fn next_of(&self, me: u32) -> &AtomicU32 {
        &self.next[me as usize % MOST_WORKERS]
    }

    /// The step that began as the `k`th of its stream, while it is under way.
    #[inline(always)]
    pub fn step(&self, k: u32) -> &Step {
        &self.steps[k as usize % STEPS]
    }
}

/// Chunks side by side: the number of the first, and how many there are. One word, since workers look for theirs among steps that
/// the first warp replaces meanwhile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    pub first: u32,
    pub count: u32,
}

impl Chunks {
    /// How many chunks are before that number, if that is one of them.
    #[inline(always)]
    pub fn before(self, number: u32) -> Option<u32> {
        let before = number.wrapping_sub(self.first);
        (before < self.count).then_some(before)
    }
}

impl Word for Chunks {
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self.first) | u64::from(self.count) << 32
    }

    #[inline(always)]
    fn from_word(word: u64) -> Chunks {
        Chunks { first: word as u32, count: (word >> 32) as u32 }
    }
}

/// Whose turn it is to place messages in an output: the number of a chunk, and the low half of the index behind the last message
/// that has a place there. One word, so that who reads it needs no fence.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    pub chunk: u32,
    pub index: u32,
}

impl Word for Turn {
    #[inline(always)]
    fn to_word(self) -> u64 {
        u64::from(self.chunk) | u64::from(self.index) << 32
    }

    #[inline(always)]
    fn from_word(word: u64) -> Turn {
        Turn { chunk: word as u32, index: (word >> 32) as u32 }
    }
}

/// Where what a block has of its links lies in the scratch memory, behind a [`Layout`], the [`Flow`] and the inputs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    pub outputs: u32,
    /// For each output a [`Turn`].
    pub turns: u32,
    /// Areas of the workers, each of so many bytes. In each, at its beginning, for each output the [`Turn`] in which the worker's
    /// last chunk was placed there.
    pub areas: u32,
    pub area: u32,
    /// In each area: for each output how many messages of the chunk go there, and then the low half of the first one's index.
    pub counts: u32,
    /// In each area: for each message that the chunk emits its offset in the area.
    pub list: u32,
    /// In each area: for each of those where it goes, two words.
    pub routes: u32,
    /// In each area: the stages of the chunk.
    pub stages: u32,
    /// Warps that have an area, and most messages of a chunk; both 0 if there is no room for one.
    pub workers: u32,
    pub chunk: u32,
}

impl Areas {
    /// For a kernel of such requests and ports, in `room` bytes of scratch memory, and a block of so many warps.
    #[inline(always)]
    pub const fn new(
        (request_atoms, ports): (usize, &[PortShape]),
        (inputs, outputs): (usize, usize),
        warps: usize,
        room: usize,
    ) -> Areas {
        let inputs_at = size_of::<Layout>() + size_of::<Flow>();
        let outputs_at = inputs_at + inputs * size_of::<Input>();
        let turns = outputs_at + outputs * size_of::<Output>();
        let areas = (turns + 8 * outputs).next_multiple_of(16);
        let emitted = emitted_before(ports, ports.len());
        let stride = Stages::stride(request_atoms, ports);
        let counts = 8 * outputs;
        let list = counts + 4 * outputs;
        // Of a message: its stage, and where what it emits lies and where that goes.
        let of_message = stride + 12 * emitted;
        // An inline message is read by whole pieces, which may end behind a short one: see `send_inline`.
        let room = room.saturating_sub(areas + 96);
        let head = list + 24;
        let wanted = if warps > 1 { warps - 1 } else { 1 };
        let fit = room / (head + of_message);
        let workers = if fit < wanted { fit } else { wanted };
        let mut chunk = 0;
        if let Some(each) = room.checked_div(workers) {
            let fit = (each - head) / of_message;
            // A chunk's messages are counted by 16 bits.
            chunk = least(&[fit, MOST_OF_CHUNK, 0xffff / if emitted > 0 { emitted } else { 1 }]);
            if chunk > 32 {
                chunk -= chunk % 32; // all of a warp's threads have as many
            }
        }
        let routes = (list + 4 * emitted * chunk).next_multiple_of(8);
        let stages = (routes + 8 * emitted * chunk).next_multiple_of(16);
        Areas {
            outputs: outputs_at as u32,
            turns: turns as u32,
            areas: areas as u32,
            area: (stages + stride * chunk) as u32,
            counts: counts as u32,
            list: list as u32,
            routes: routes as u32,
            stages: stages as u32,
            workers: workers as u32,
            chunk: chunk as u32,
        }
    }
}

/// Most messages that one request emits to the ports before `port`.
pub(crate) const fn emitted_before(ports: &[PortShape], port: usize) -> usize {
    let (mut all, mut p) = (0, 0);
    while p < port && p < ports.len() {
        all += ports[p].most as usize;
        p += 1;
    }
    all
}

const fn least(of: &[usize]) -> usize {
    let (mut least, mut k) = (usize::MAX, 0);
    while k < of.len() {
        least = if of[k] < least { of[k] } else { least };
        k += 1;
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_stay_in_the_room() {
        let port = |most| PortShape {
            name: "p",
            most,
            bytes: 60,
            has_key: true,
            atoms: 4,
            inline_atoms: 6,
        };
        for ports in [&[][..], &[port(1)], &[port(3), port(1)], &[port(100)]] {
            for rings in [(1, 1), (2, 66), (64, 64), (300, 300)] {
                for (warps, room) in [(1, 40960), (16, 40960), (16, 108 * 1024), (32, 108 * 1024)] {
                    let areas = Areas::new((4, ports), rings, warps, room);
                    let end = (areas.areas + areas.workers * areas.area) as usize + 96;
                    assert!(areas.workers == 0 || end <= room, "{areas:?} of {room}");
                    assert_eq!(areas.workers == 0, areas.chunk == 0, "{areas:?}");
                    assert!(areas.stages.is_multiple_of(16) && areas.area.is_multiple_of(16));
                }
            }
        }
    }
}
