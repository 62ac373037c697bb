//! What a step's handlers have emitted, on its way to the outputs: put in order, by the index of the request and then as it
//! was emitted, and written to slots, each message to one output of its port or to all.

use crate::block::{Cooperate, Threads, Words};
use crate::dispatch::channel::Channel;
use crate::kernel::{Kernel, Scope};
use crate::memory::links::Sink;
use crate::memory::signals::Decision;
use core::num::NonZeroU32;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Ring;
use ring_shared::atomics::{Gpu, MemoryScope, System};
use ring_shared::layout::{PortLinks, Routing};

/// No output.
const NOWHERE: u32 = u32::MAX;

impl<K: Kernel> Channel<'_, K> {
    /// All threads, behind a barrier: writes what the `n` requests of the step have emitted to slots of the outputs.
    #[inline(always)]
    pub(super) fn send_emissions(&self, n: u32) {
        let mut port = 0;
        while port < Self::PORTS.len() {
            let this = self.optimization_barrier();
            if port > 0 {
                this.sync(); // all are done with the list of the port before
            }
            let total = this.list_emissions(port, n);
            this.sync();
            let links = this.step().port(port);
            match links.routing {
                Routing::All => this.write_to_all(port, links, total),
                by => {
                    this.choose_outputs(port, links, total, by == Routing::ByIndex);
                    this.sync();
                    this.write_to_chosen(port, links, total);
                }
            }
            port += 1;
        }
    }

    /// All threads: lists where the messages of a port lie, by offsets from the first stage, in their order; how many there are.
    #[inline(always)]
    fn list_emissions(&self, port: usize, n: u32) -> u32 {
        let at = self.step().list_at.get() as usize;
        let (mut first, mut total) = (0, 0);
        while first < n {
            let m = first + self.thread();
            let emitted = if m < n { self.emitted(m, port) } else { 0 };
            let (before, sum) = self.sum_before(emitted);
            let mut k = 0;
            while k < emitted {
                let of = Self::offset_of(port, m, k) as u32;
                self.scratch_word(at, total + before + k).store(of, Relaxed);
                k += 1;
            }
            total += sum;
            first += self.threads();
        }
        total
    }

    /// All threads: the sum of what the threads before the calling one bring, and that of all.
    #[inline(always)]
    fn sum_before(&self, value: u32) -> (u32, u32) {
        if Threads::WARP == 1 {
            return (0, value);
        }
        let (mut sum, mut step) = (value, 1);
        while step < Threads::WARP {
            let below = self.shuffle32(sum, self.lane().wrapping_sub(step) & (Threads::WARP - 1));
            sum += if self.lane() >= step { below } else { 0 };
            step *= 2;
        }
        let sums = &self.step().sums;
        if self.lane() == Threads::WARP - 1
            && let Some(of_warp) = sums.get(self.warp() as usize)
        {
            of_warp.store(sum, Relaxed);
        }
        self.sync();
        // Each lane has the sum of a warp; those below the own warp are before it.
        let of_lane = sums.get(self.lane() as usize).map_or(0, |sum| sum.load(Relaxed));
        let of_lane = if self.lane() < self.warps() { of_lane } else { 0 };
        let all = self.warp_sum32(of_lane);
        let before = self.warp_sum32(if self.lane() < self.warp() { of_lane } else { 0 });
        self.sync(); // before they are written anew
        (before + sum - value, all)
    }

    /// Atoms of a message of that port, of which there is one at least.
    #[inline(always)]
    fn atoms_of_port(port: usize) -> NonZeroU32 {
        NonZeroU32::new(Self::PORTS[port].atoms as u32).unwrap_or(NonZeroU32::MIN)
    }

    /// All threads: writes the `total` messages of a port to each of its outputs.
    #[inline(always)]
    fn write_to_all(&self, port: usize, links: PortLinks, total: u32) {
        let mut k = u32::from(links.first);
        while k < u32::from(links.first) + u32::from(links.count) {
            // SAFETY: the first warp's lanes are done with the end until the next barrier.
            let output = unsafe { &*self.output(k) };
            match &output.sink {
                Sink::Channel(outbox) => {
                    self.write_to_one::<Gpu>(port, (outbox.ring(), outbox.next()), total);
                }
                Sink::Host(outbox) => {
                    self.write_to_one::<System>(port, (outbox.ring(), outbox.next()), total);
                }
            }
            if self.thread() == 0 {
                output.n.store(total, Relaxed);
            }
            k += 1;
        }
    }

    /// All threads: writes the `total` messages of a port to slots from that of index `next` on.
    #[inline(always)]
    fn write_to_one<S: MemoryScope>(&self, port: usize, (ring, next): (Ring, u64), total: u32) {
        let slots = ring.atoms_from(next);
        self.write_atoms(port, total, |t, _, words| {
            if let Some(atom) = slots.get(t as usize) {
                S::store(atom, words);
            }
        });
    }

    /// All threads: writes the `total` messages of a port to the output that was chosen for each: other channels.
    #[inline(always)]
    fn write_to_chosen(&self, port: usize, links: PortLinks, total: u32) {
        let places = self.step().places_at.get() as usize;
        let atoms = Self::atoms_of_port(port);
        self.write_atoms(port, total, |t, a, words| {
            let place = self.scratch_word(places, t / atoms).load(Relaxed);
            let (chosen, at) = (place >> 16, place & 0xffff);
            if chosen >= u32::from(links.count) {
                return; // the channel faults
            }
            // SAFETY: as in `write_to_all`.
            let output = unsafe { &*self.output(u32::from(links.first) + chosen) };
            let (ring, next) = output.sink.place();
            if let Some(atom) = ring.slot(next + u64::from(at)).get(a) {
                Gpu::store(atom, words);
            }
        });
    }

    /// All threads, each some atoms, four at a time: gives `write` the atom's number of all, its number in the message, and the
    /// atom.
    #[inline(always)]
    fn write_atoms(&self, port: usize, total: u32, write: impl Fn(u32, usize, Words)) {
        let (list, atoms) = (self.step().list_at.get() as usize, Self::atoms_of_port(port));
        let (all, step) = (total * atoms.get(), self.threads());
        let read = |t: u32| {
            if t >= all {
                return [0; 2];
            }
            let message = self.message_at(self.scratch_word(list, t / atoms).load(Relaxed));
            // SAFETY: an atom of a message that a handler has emitted, in its stage; nobody writes there now. Behind the
            // message's end it is whatever the scratch memory holds.
            unsafe { message.cast::<Words>().wrapping_add((t % atoms) as usize).read() }
        };
        let keep = |t: u32, words: Words| {
            if t < all {
                write(t, (t % atoms) as usize, words);
            }
        };
        let mut t = self.thread();
        while t < all {
            let words = [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            keep(t, words[0]);
            keep(t + step, words[1]);
            keep(t + 2 * step, words[2]);
            keep(t + 3 * step, words[3]);
            t += 4 * step;
        }
    }

    /// All threads: chooses an output for each of the `total` messages of a port, by its key, and a place there behind those
    /// that were before it in the list.
    #[inline(always)]
    fn choose_outputs(&self, port: usize, links: PortLinks, total: u32, by_index: bool) {
        let (list, places) = (self.step().list_at.get(), self.step().places_at.get());
        let (list, places) = (list as usize, places as usize);
        let (first_output, count) = (u32::from(links.first), u32::from(links.count));
        let (mut first, mut wrong) = (0, false);
        while first < total {
            let j = first + self.thread();
            let mut chosen = NOWHERE;
            if j < total {
                let at = self.scratch_word(list, j).load(Relaxed);
                // SAFETY: a message of that port, in its stage.
                let key = unsafe { <K::Scope as Scope<K>>::key(port, self.message_at(at)) };
                chosen = if by_index { key } else { key.checked_rem(count).unwrap_or(NOWHERE) };
                if chosen >= count {
                    (chosen, wrong) = (NOWHERE, true);
                }
            }
            let before = self.rank(chosen, (first_output, count));
            if j < total {
                let place = if chosen == NOWHERE { NOWHERE } else { chosen << 16 | before };
                self.scratch_word(places, j).store(place, Relaxed);
            }
            first += self.threads();
        }
        if wrong {
            self.step().wrong.set(Decision::NoSuchChannel);
        }
    }

    /// All threads: how many messages of the step before the calling thread's go to the same output `chosen`, of `count` from
    /// `first` on; the outputs count them all.
    #[inline(always)]
    fn rank(&self, chosen: u32, (first, count): (u32, u32)) -> u32 {
        // SAFETY: as in `write_to_all`.
        let output = |k: u32| unsafe { &*self.output(first + k) };
        if Threads::WARP == 1 {
            if chosen == NOWHERE {
                return 0;
            }
            let n = &output(chosen).n;
            let before = n.load(Relaxed);
            n.store(before + 1, Relaxed);
            return before;
        }
        let counts = self.step().counts_at.get() as usize;
        let of_warp = |w: u32, k: u32| self.scratch_word(counts, w * count + k);
        let mut k = self.thread();
        while k < self.warps() * count {
            self.scratch_word(counts, k).store(0, Relaxed);
            k += self.threads();
        }
        self.sync();
        let peers = self.peers(chosen);
        let below = (peers & ((1 << self.lane()) - 1)).count_ones();
        if chosen != NOWHERE && below == 0 {
            of_warp(self.warp(), chosen).store(peers.count_ones(), Relaxed);
        }
        self.sync();
        let mut k = self.thread();
        while k < count {
            let (mut sum, mut w) = (output(k).n.load(Relaxed), 0);
            while w < self.warps() {
                let n = of_warp(w, k).load(Relaxed);
                of_warp(w, k).store(sum, Relaxed);
                sum += n;
                w += 1;
            }
            output(k).n.store(sum, Relaxed);
            k += self.threads();
        }
        self.sync();
        let mut before = 0;
        if chosen != NOWHERE {
            before = of_warp(self.warp(), chosen).load(Relaxed) + below;
        }
        self.sync(); // before they are written anew
        before
    }
}
