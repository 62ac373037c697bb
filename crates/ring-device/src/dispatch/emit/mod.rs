//! The loop of a kernel with ports: a channel takes messages from its inputs, and sends what its handler emits to its outputs.
//!
//! The block goes step by step. In a **step** the first warp [chooses](choose) messages of one input: at most as many as surely
//! have room in all outputs, whatever the handler emits; all threads bring them to stages in the block's memory and handle
//! them; what they have emitted is [put in order and written](route) to the slots of the outputs; and the first warp tells the
//! outputs' consumers and the input's producer. So no step waits inside, and a channel whose outputs are full takes
//! nothing: the pressure goes back to whoever sends.
//!
//! A message that came inline the first warp handles by itself, and sends what it emits inline, if it may go so: no other warp
//! takes part.
//!
//! Inputs take turns, a step each. To be asked to become inactive is to drain: a channel says that it is inactive when all its
//! inputs are empty. The host asks the kernels of a graph one behind the other, so that nothing more comes then.

mod choose;
mod open;
mod route;

use super::channel::Channel;
use super::resume::First;
use crate::block::{Cooperate, Words};
use crate::emissions::{PortShape, Stages};
use crate::kernel::{Kernel, Scope};
use crate::memory::links::{Areas, Input, Output, Source, Step};
use crate::memory::signals::Decision;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{AtomicU32, Gpu, MemoryScope, System};
use ring_shared::{Message, Ring};

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
    pub fn run_steps(&self, began: (u64, u64), first: First) {
        self.begin(began, first);
        self.sync();
        let why = loop {
            let this = self.optimization_barrier();
            if this.is_first_warp() {
                this.choose();
            }
            this.sync();
            let mut decision = this.step().decision.get();
            if decision == Decision::Continue {
                decision = this.take_step();
            }
            if decision == Decision::Obey {
                decision = this.obey();
                this.sync();
            }
            if let Some(why) = decision.exit() {
                break why;
            }
        };
        let this = self.optimization_barrier();
        if this.is_first_warp() {
            this.tell_all();
            this.leave(why);
        }
    }

    /// All threads: takes the step that was chosen. Whether to go on, or why to leave.
    #[inline(always)]
    fn take_step(&self) -> Decision {
        let n = self.step().n.get() as u32;
        if !self.step().is_inline.get() {
            self.bring_requests(n);
            self.sync();
            let this = self.optimization_barrier();
            this.handle(n);
            this.sync();
        }
        let this = self.optimization_barrier();
        let wrong = this.step().wrong.get();
        if wrong != Decision::Continue {
            return wrong; // nothing of the step is sent
        }
        this.send_emissions(n);
        this.sync();
        let this = self.optimization_barrier();
        if this.thread() == 0 {
            this.step().is_untold.set(true);
        }
        this.step().wrong.get()
    }

    /// All threads of the block, or of the first warp if there is one request: handles the `n` requests in the stages.
    #[inline(always)]
    fn handle(&self, n: u32) {
        let (began, m) = (self.ticks(), self.memory());
        // SAFETY: the block's own memory, with `n` requests in it, at most as many as there is room for; the threads
        // synchronise before and after, and those that are not here have no request.
        let fits =
            unsafe { <K::Scope as Scope<K>>::emit(self.block, self.payload(), self.stages(), n) };
        if !fits {
            self.step().wrong.set(Decision::EmittedTooMany);
        }
        if self.thread() == 0 {
            let (took, waited) =
                (self.ticks().wrapping_sub(began), began.wrapping_sub(m.telemetry.unseen.get()));
            m.telemetry.count(u64::from(n), took, waited);
        }
    }

    /// All threads: bring the `n` requests of the step from their slots to its stages.
    #[inline(always)]
    fn bring_requests(&self, n: u32) {
        // SAFETY: the first warp's lanes are done with the end until the next barrier.
        let source = &unsafe { &*self.input(self.step().input.get() as u32) }.0;
        match source {
            Source::Channel(inbox) => self.bring_from::<Gpu>(inbox.ring(), inbox.next(), n),
            Source::Host(inbox) => self.bring_from::<System>(inbox.ring(), inbox.next(), n),
        }
    }

    /// The same from a ring whose threads share `S`, four atoms of each thread at a time.
    #[inline(always)]
    fn bring_from<S: MemoryScope>(&self, ring: Ring, next: u64, n: u32) {
        let atoms = K::Request::SLOT_ATOMS as u32;
        let (all, step, stages) = (n * atoms, self.threads(), self.stages());
        let slots = ring.atoms_from(next);
        let read = |t: u32| match slots.get(t as usize) {
            Some(atom) if t < all => S::load(atom),
            _ => [0; 2],
        };
        let keep = |t: u32, words: Words| {
            if t < all {
                let stage = stages.stage(Self::STAGE_STRIDE, t / atoms);
                let at = stage.wrapping_add(16 * (t % atoms) as usize).cast::<Words>();
                // SAFETY: an atom of the request of message `t / atoms < n`, in the stages; each has one thread.
                unsafe { at.write(words) };
            }
        };
        let mut first = 0;
        while first < all {
            let t = first + self.thread();
            let words = [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            self.warp_sync(); // all in flight before the first is used
            keep(t, words[0]);
            keep(t + step, words[1]);
            keep(t + 2 * step, words[2]);
            keep(t + 3 * step, words[3]);
            first += 4 * step;
        }
    }

    /// Where things lie.
    #[inline(always)]
    fn areas(&self, (inputs, outputs): (u32, u32)) -> Areas {
        Areas::new(
            (K::Request::SLOT_ATOMS, Self::PORTS),
            (inputs as usize, outputs as usize),
            (self.threads() as usize, self.warps() as usize),
            self.block.scratch_bytes(),
        )
    }

    #[inline(always)]
    fn step(&self) -> &Step {
        // SAFETY: the beginning of the scratch memory, aligned, where `open_links` has put it: cells, of which any bytes are
        // valid.
        unsafe { &*self.memory().scratch.bytes(0).cast() }
    }

    #[inline(always)]
    fn input(&self, k: u32) -> *mut Input {
        let at = self.memory().scratch.bytes(size_of::<Step>()).cast::<Input>();
        at.wrapping_add(k as usize)
    }

    #[inline(always)]
    fn output(&self, k: u32) -> *mut Output {
        let at = self.step().outputs_at.get() as usize;
        self.memory().scratch.bytes(at).cast::<Output>().wrapping_add(k as usize)
    }

    #[inline(always)]
    fn stages(&self) -> Stages {
        Stages::new(self.memory().scratch.bytes(self.step().stages_at.get() as usize))
    }

    /// Word `k` of those that begin at `at` bytes of the scratch memory.
    #[inline(always)]
    fn scratch_word(&self, at: usize, k: u32) -> &AtomicU32 {
        let at = self.memory().scratch.bytes(at).cast::<AtomicU32>().wrapping_add(k as usize);
        // SAFETY: a word of the areas that hold such words only, by the callers' bounds.
        unsafe { &*at }
    }

    /// How many messages stage `m` has for port `port`.
    #[inline(always)]
    fn emitted(&self, m: u32, port: usize) -> u32 {
        let at = Stages::counts(K::Request::SLOT_ATOMS, Self::PORTS);
        let at = self.stages().stage(Self::STAGE_STRIDE, m).wrapping_add(at + 4 * (port / 4));
        // SAFETY: a word of the counts of a stage, which its handler has written before a barrier.
        let counts = unsafe { &*at.cast::<AtomicU32>() }.load(Relaxed);
        counts >> (8 * (port % 4)) & 0xff
    }
}
