//! What a worker keeps in registers from one chunk to the next. While all warps are at work, a load from block-shared memory takes
//! 60 to 90 cycles, and a chunk some thousand: what all chunks have in common is loaded once.

use super::Area;
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use crate::memory::flow::Chunks;
use core::num::NonZeroU32;
use ring_shared::layout::{Far, PortLinks};
use ring_shared::ring::SlotsOf;
use ring_shared::{Message, Ring};

/// A worker of a stream.
pub(super) struct Worker<'a> {
    /// Which one it is.
    pub me: u32,
    /// Where its chunk is.
    pub area: Area,
    /// The step that its last chunk was of.
    pub step: TakenStep<'a>,
    /// Where the messages of the first two ports go; of others that is loaded for each chunk.
    ways: [Way<'a>; 2],
}

/// A step of which a worker has chunks: it stays as it is until they are done.
#[derive(Clone, Copy)]
pub(super) struct TakenStep<'a> {
    /// Its chunks.
    pub chunks: Chunks,
    /// Its messages.
    pub n: u32,
    /// The low half of the index of the first.
    pub index: u32,
    /// The slots that they lie in, and who writes those.
    pub slots: Option<SlotsOf<'a>>,
    pub far: Far,
    /// The input that they come from.
    pub input: u32,
}

impl TakenStep<'_> {
    const NONE: TakenStep<'static> = TakenStep {
        chunks: Chunks { first: 0, count: 0 },
        n: 0,
        index: 0,
        slots: None,
        far: Far::Channel,
        input: 0,
    };
}

/// Where the messages of a port go.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    /// As a word: the compiler would keep the struct in memory.
    links: u64,
    /// The slots of the first output, and who reads them.
    pub slots: Option<SlotsOf<'a>>,
    pub far: Far,
}

impl Way<'_> {
    const NONE: Way<'static> = Way { links: 0, slots: None, far: Far::Channel };

    /// The outputs of the port.
    #[inline(always)]
    pub fn links(&self) -> PortLinks {
        PortLinks::from_word(self.links)
    }
}

impl<'c, K: Kernel> Channel<'c, K> {
    /// Atoms of a request.
    pub(super) const REQUEST_ATOMS: NonZeroU32 =
        NonZeroU32::new(K::Request::SLOT_ATOMS as u32).unwrap();

    /// Worker `me`, which has no chunk yet.
    #[inline(always)]
    pub(super) fn worker(&self, me: u32) -> Worker<'c> {
        let (area, ways) = (self.area(me), [self.kept_way(0), self.kept_way(1)]);
        Worker { me, area, step: TakenStep::NONE, ways }
    }

    #[inline(always)]
    fn kept_way(&self, port: usize) -> Way<'c> {
        if port < Self::PORTS.len() { self.load_way(port) } else { Way::NONE }
    }

    /// Where the messages of a port go.
    #[inline(always)]
    pub(super) fn way(&self, worker: &Worker<'c>, port: usize) -> Way<'c> {
        match port {
            0 => worker.ways[0],
            1 => worker.ways[1],
            _ => self.load_way(port),
        }
    }

    #[inline(always)]
    fn load_way(&self, port: usize) -> Way<'c> {
        let links = self.layout().ports[port];
        let (slots, far) = self.slots_of_output(port, links.first.into());
        Way { links: links.to_word(), slots, far }
    }

    /// The slots of an output of a port, and who reads them.
    #[inline(always)]
    pub(super) fn slots_of_output(&self, port: usize, k: u32) -> (Option<SlotsOf<'c>>, Far) {
        // SAFETY: an output; nobody changes its ring, or who has the other end.
        let (ring, far): (&'c Ring, Far) =
            unsafe { (&(*self.output(k)).ring, (*self.output(k)).far) };
        (ring.slots_of(Self::atoms_of_port(port)), far)
    }

    /// The slots of an input, and who writes them.
    #[inline(always)]
    pub(super) fn slots_of_input(&self, k: u32) -> (Option<SlotsOf<'c>>, Far) {
        // SAFETY: an input; nobody changes its ring, or who has the other end.
        let (ring, far): (&'c Ring, Far) =
            unsafe { (&(*self.input(k)).ring, (*self.input(k)).far) };
        (ring.slots_of(Self::REQUEST_ATOMS), far)
    }

    /// Atoms of a message of that port, of which there is one at least.
    #[inline(always)]
    pub(super) fn atoms_of_port(port: usize) -> NonZeroU32 {
        NonZeroU32::new(Self::PORTS[port].atoms as u32).unwrap_or(NonZeroU32::MIN)
    }
}
