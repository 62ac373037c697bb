//! The loop of a kernel with ports: a channel takes messages from its inputs, and sends what its handler emits to its outputs.
//!
//! The first warp [looks](look) at all rings, and [judges](judge) what it sees by what it has in [registers](known). A message that
//! came inline it [handles by itself](alone), and sends what it emits inline, if it may go so: no other warp takes part. For messages in slots a **stream** begins, in which all warps take part:
//!
//! - The first warp [begins steps](stream): a **step** is some messages of one input, at most as many as surely have room in all
//!   outputs, whatever the handler emits, beside the steps under way. So nobody waits for room inside a step, and a channel
//!   whose outputs are full takes nothing: the pressure goes back to whoever sends.
//! - The other warps are **workers**. A worker [takes](work) the next chunk of a step, brings it to its own area of the block's
//!   memory, handles it, and [writes](route) what was emitted to slots of the outputs. Chunks are worked on side by side; the
//!   places of what they emit are given in the order of the chunks, so that all keeps its order.
//! - The first warp tells the outputs' consumers and the inputs' producers of the chunks that are done and have none before
//!   them that is not: one fence for all of them.
//!
//! A stream ends when there were no more messages, or no room, for a while, or the host commands something. Inputs take turns, a step each.
//! A block has two warps at least: the first, and a worker. A CPU's one thread does all of this in turns.
//!
//! Where the whole block handles each message [together], there is one worker, the first warp, and it hands messages that
//! came inline to all threads as well.
//!
//! To be asked to become inactive is to drain: a channel says that it is inactive when all its inputs are empty. The host asks
//! the kernels of a graph one behind the other, so that nothing more comes then.

/// Does the same for each port. It is neither a loop nor a function, so that the compiler works out what depends on the port's shape
/// alone.
macro_rules! each_port {
    ($port:ident => $body:block) => {
        each_port!($port => $body 0 1 2 3 4 5 6 7);
    };
    ($port:ident => $body:block $($number:literal)*) => {$(
        if $number < Self::PORTS.len() {
            let $port: usize = $number;
            $body
        }
    )*};
}
const _: () = assert!(ring_shared::layout::MAX_PORTS == 8);

mod alone;
mod choose;
mod judge;
mod known;
mod look;
mod note;
mod open;
mod registers;
mod report;
mod route;
mod stream;
mod together;
mod work;
mod worker;

use super::channel::Channel;
use super::resume::First;
use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Kernel, Scope};
use crate::memory::flow::{Areas, Flow, Layout, MOST_OF_CHUNK, Turn};
use crate::memory::links::{Input, Output};
use crate::memory::signals::Decision;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Message;
use ring_shared::atomics::{AtomicU32, AtomicU64};

/// Whether four atoms a thread are all that the messages of a chunk have, if there are 32 at most, of so many atoms each. Then there
/// is no loop: one costs a warp some 50 cycles, even if it is passed once.
const fn fits_once(atoms: usize) -> bool {
    Threads::WARP > 1 && MOST_OF_CHUNK * atoms <= 4 * Threads::WARP as usize
}

/// Where a worker keeps its chunk.
#[derive(Clone, Copy)]
struct Area {
    placed: *const Cell<Turn>,
    counts: *const AtomicU32,
    list: *const AtomicU32,
    routes: *const AtomicU64,
    stages: Stages,
    /// Most messages of a chunk, and how many outputs there are.
    chunk: u32,
    outputs: u32,
}

impl<K: Kernel> Channel<'_, K> {
    /// Whether the kernel has ports, and answers nothing.
    pub const EMITS: bool = <K::Scope as Scope<K>>::PORTS.is_some();

    /// Its ports.
    pub const PORTS: &'static [PortShape] = match <K::Scope as Scope<K>>::PORTS {
        Some(ports) => ports,
        None => &[],
    };

    /// Bytes from one stage to the next.
    const STAGE_STRIDE: usize = Stages::stride(K::Request::SLOT_ATOMS, Self::PORTS);

    /// All threads: the loop, from the launch's beginning to its end, of a channel whose links were
    /// [opened](Self::open_links).
    #[inline(always)]
    pub fn run_links(&self, began: (u64, u64), first: First) {
        self.limit_registers::<K>(); // else ptxas may take more than a block of so many threads has
        self.begin(began, first);
        self.sync();
        let mut watch = self.watch();
        let why = loop {
            let this = self.optimization_barrier();
            if this.is_first_warp() {
                this.choose(&mut watch);
            }
            this.sync();
            let mut decision = this.flow().decision.get();
            if decision == Decision::Continue {
                decision = match Self::TOGETHER {
                    false => this.stream(&mut watch),
                    true => this.together(&mut watch),
                };
            }
            if decision == Decision::Obey {
                if this.is_first_warp() {
                    this.report_links(); // before the host is told that the channel has obeyed
                }
                decision = this.obey();
                this.sync();
            }
            if let Some(why) = decision.exit() {
                break why;
            }
        };
        let this = self.optimization_barrier();
        if this.is_first_warp() {
            this.tell_all(&watch);
            this.leave(why);
        }
    }

    /// Where things lie.
    #[inline(always)]
    fn areas(&self, (inputs, outputs): (u32, u32)) -> Areas {
        Areas::new(
            (K::Request::SLOT_ATOMS, Self::PORTS),
            (inputs as usize, outputs as usize),
            <K::Scope as Scope<K>>::EMITTERS.warps(self.warps() as usize),
            self.block.scratch_bytes(K::SHARED_BYTES),
        )
    }

    /// What is known of the links.
    #[inline(always)]
    fn layout(&self) -> &Layout {
        // SAFETY: the beginning of the scratch memory, where `open_links` has put it, and nobody writes any more.
        unsafe { &*self.memory().scratch.bytes(0).cast() }
    }

    #[inline(always)]
    fn flow(&self) -> &Flow {
        // SAFETY: behind the layout, aligned: cells, of which any bytes are valid.
        unsafe { &*self.memory().scratch.bytes(size_of::<Layout>()).cast() }
    }

    #[inline(always)]
    fn input(&self, k: u32) -> *mut Input {
        let at = size_of::<Layout>() + size_of::<Flow>();
        self.memory().scratch.bytes(at).cast::<Input>().wrapping_add(k as usize)
    }

    #[inline(always)]
    fn output(&self, k: u32) -> *mut Output {
        let at = self.layout().areas.outputs as usize;
        self.memory().scratch.bytes(at).cast::<Output>().wrapping_add(k as usize)
    }

    /// Whose turn it is to place messages in an output.
    #[inline(always)]
    fn turn_of(&self, output: u32) -> &Cell<Turn> {
        let at = self.layout().areas.turns as usize;
        let at = self.memory().scratch.bytes(at).cast::<Cell<Turn>>().wrapping_add(output as usize);
        // SAFETY: one of those that the areas have room for; a cell, of which any bytes are valid.
        unsafe { &*at }
    }

    /// The area of worker `me`.
    #[inline(always)]
    fn area(&self, me: u32) -> Area {
        let areas = &self.layout().areas;
        let at = areas.areas + me * areas.area;
        let bytes = |offset: u32| self.memory().scratch.bytes((at + offset) as usize);
        Area {
            placed: bytes(0).cast(),
            counts: bytes(areas.counts).cast(),
            list: bytes(areas.list).cast(),
            routes: bytes(areas.routes).cast(),
            stages: Stages::new(bytes(areas.stages)),
            chunk: areas.chunk,
            outputs: self.layout().outputs,
        }
    }

    /// Where stage `m` says how many messages it has for each port.
    #[inline(always)]
    fn counts_of(stages: Stages, m: u32) -> *mut u8 {
        let at = Stages::counts(K::Request::SLOT_ATOMS, Self::PORTS);
        stages.stage(Self::STAGE_STRIDE, m).wrapping_add(at)
    }

    /// How many messages stage `m` has for port `port`.
    #[inline(always)]
    fn emitted(stages: Stages, m: u32, port: usize) -> u32 {
        let at = Self::counts_of(stages, m).wrapping_add(4 * (port / 4));
        // SAFETY: a word of the counts of a stage, which its handler has written before the warp synchronised.
        let counts = unsafe { &*at.cast::<AtomicU32>() }.load(Relaxed);
        counts >> (8 * (port % 4)) & 0xff
    }

    /// Where message `k` that stage `m` has emitted to a port lies, as an offset from the first stage.
    #[inline(always)]
    fn offset_of(port: usize, m: u32, k: u32) -> usize {
        let in_stage = Stages::message(K::Request::SLOT_ATOMS, Self::PORTS, port, k);
        m as usize * Self::STAGE_STRIDE + in_stage
    }

    /// The message at such an offset.
    #[inline(always)]
    fn message_at(stages: Stages, offset: u32) -> *const u8 {
        stages.stage(0, 0).wrapping_add(offset as usize)
    }
}
