//! What a chunk's handlers have emitted, on its way to the outputs: put in order, by the index of the request and then as it
//! was emitted; given places in the outputs, each message in one output of its port or in all; and written to their slots.

use super::Area;
use crate::block::{Cooperate, Threads, Words};
use crate::dispatch::channel::Channel;
use crate::kernel::{Kernel, Scope};
use crate::memory::flow::{Turn, emitted_before};
use core::num::NonZeroU32;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::Ring;
use ring_shared::atomics::{AtomicU32, Gpu, MemoryScope, System};
use ring_shared::layout::{Far, MAX_PORTS, PortLinks, Routing};

/// No output.
const NOWHERE: u32 = u32::MAX;

/// How many messages a chunk has for each port.
pub(super) type Totals = [u32; MAX_PORTS];

impl Area {
    /// Word `k` of those that begin at `at`.
    #[inline(always)]
    fn word<'a>(at: *const AtomicU32, k: u32) -> &'a AtomicU32 {
        // SAFETY: a word of the parts of an area that hold such words only, by the callers' bounds.
        unsafe { &*at.wrapping_add(k as usize) }
    }

    /// How many messages the chunk has for an output of a port with keys, and for any output, once they have places, the low half
    /// of the index of the first.
    #[inline(always)]
    fn of_output(&self, output: u32) -> &AtomicU32 {
        Self::word(self.counts, output)
    }
}

impl<K: Kernel> Channel<'_, K> {
    /// Where message `j` of a port lies, as an offset from the first stage.
    #[inline(always)]
    fn listed(area: &Area, port: usize, j: u32) -> &AtomicU32 {
        Area::word(area.list, area.chunk * emitted_before(Self::PORTS, port) as u32 + j)
    }

    /// Where it goes: in the upper half an output of the port, in the lower half which of the chunk's messages there it is.
    #[inline(always)]
    fn routed(area: &Area, port: usize, j: u32) -> &AtomicU32 {
        Area::word(area.routes, area.chunk * emitted_before(Self::PORTS, port) as u32 + j)
    }

    /// Whether messages of a port go to outputs by their keys.
    #[inline(always)]
    fn is_keyed(port: usize, links: PortLinks) -> bool {
        Self::PORTS[port].has_key && links.routing != Routing::All
    }

    /// All threads of a warp: lists what the `n` requests in the stages of an area have emitted, and chooses outputs. How many
    /// there are of each port; false for a thread that has a message for a channel that is not there.
    #[inline(always)]
    pub(super) fn list(&self, area: Area, n: u32) -> (bool, Totals) {
        let (mut port, mut fits, mut totals) = (0, true, [0; MAX_PORTS]);
        while port < Self::PORTS.len() {
            totals[port] = self.list_port(area, port, n);
            self.warp_sync();
            let links = self.layout().ports[port];
            if Self::is_keyed(port, links) {
                fits &= self.choose_outputs(area, port, links, totals[port]);
            }
            port += 1;
        }
        (fits, totals)
    }

    /// All threads of a warp: lists where the messages of a port lie, in their order; how many there are.
    #[inline(always)]
    fn list_port(&self, area: Area, port: usize, n: u32) -> u32 {
        let (mut m, mut total) = (self.lane(), 0);
        loop {
            let emitted = Self::emitted(area.stages, m.min(n - 1), port);
            let emitted = if m < n { emitted } else { 0 };
            let (before, sum) = self.sum_before(emitted, Self::PORTS[port].most);
            let mut k = 0;
            while k < emitted {
                let of = Self::offset_of(port, m, k) as u32;
                Self::listed(&area, port, total + before + k).store(of, Relaxed);
                k += 1;
                if Self::PORTS[port].most == 1 {
                    break;
                }
            }
            total += sum;
            m += Threads::WARP;
            if Threads::WARP > 1 || m >= n {
                return total; // a warp has a thread for each request
            }
        }
    }

    /// All threads of a warp: the sum of what the threads before the calling one bring, each `most` at most, and that of all.
    #[inline(always)]
    fn sum_before(&self, value: u32, most: u32) -> (u32, u32) {
        if most == 1 {
            let all = self.ballot(value > 0);
            let before = all & ((1 << self.lane()) - 1);
            return (before.count_ones(), all.count_ones());
        }
        let (mut sum, mut step) = (value, 1);
        while step < Threads::WARP {
            let below = self.shuffle32(sum, self.lane().wrapping_sub(step) & (Threads::WARP - 1));
            sum += if self.lane() >= step { below } else { 0 };
            step *= 2;
        }
        (sum - value, self.shuffle32(sum, Threads::WARP - 1))
    }

    /// All threads of a warp: chooses an output for each of the `total` messages of a port, by its key, and counts those before
    /// it there; false for a thread that has a message for a channel that is not there.
    #[inline(always)]
    fn choose_outputs(&self, area: Area, port: usize, links: PortLinks, total: u32) -> bool {
        let (first_output, count) = (u32::from(links.first), u32::from(links.count));
        let by_index = links.routing == Routing::ByIndex;
        let mut k = self.lane();
        while k < count {
            area.of_output(first_output + k).store(0, Relaxed);
            k += Threads::WARP;
        }
        self.warp_sync();
        let (mut j, mut fits, mut first) = (self.lane(), true, 0);
        while first < total {
            let at = Self::listed(&area, port, j.min(total - 1)).load(Relaxed);
            // SAFETY: a message of that port, in its stage.
            let key =
                unsafe { <K::Scope as Scope<K>>::key(port, Self::message_at(area.stages, at)) };
            let mut chosen = if by_index { key } else { key.checked_rem(count).unwrap_or(NOWHERE) };
            fits &= chosen < count || j >= total;
            chosen = if chosen < count && j < total { chosen } else { NOWHERE };
            let peers = self.peers(chosen);
            let below = (peers & ((1 << self.lane()) - 1)).count_ones();
            let of_output = area.of_output(first_output + chosen.min(count - 1));
            let before = of_output.load(Relaxed);
            self.warp_sync(); // all have read before one writes
            if chosen != NOWHERE {
                Self::routed(&area, port, j).store(chosen << 16 | (before + below), Relaxed);
                if below == 0 {
                    of_output.store(before + peers.count_ones(), Relaxed);
                }
            }
            self.warp_sync();
            first += Threads::WARP;
            j += Threads::WARP;
        }
        fits
    }

    /// How many messages of the chunk go to an output.
    #[inline(always)]
    fn count_of(&self, area: Area, totals: Totals, output: u32) -> u32 {
        let (mut count, mut port) = (0, 0);
        while port < Self::PORTS.len() {
            let links = self.layout().ports[port];
            let is_its = output.wrapping_sub(links.first.into()) < links.count.into();
            let of_port = if Self::is_keyed(port, links) {
                area.of_output(output).load(Relaxed)
            } else {
                totals[port]
            };
            count = if is_its { of_port } else { count };
            port += 1;
        }
        count
    }

    /// All threads of a warp: gives what was listed its places in the outputs, in the turn of its chunk; false if that is not to
    /// come. If it is the last of the `k`th step, leaves where that ends.
    #[inline(always)]
    pub(super) fn place(&self, area: Area, totals: Totals, number: u32, last: Option<u32>) -> bool {
        let mut first = 0;
        while first < area.outputs {
            let own = first + self.lane();
            let output = own.min(area.outputs - 1);
            let count = self.count_of(area, totals, output);
            let Some(index) = self.await_place(output, number) else { return false };
            let end = index.wrapping_add(count);
            if own < area.outputs {
                self.turn_of(output).set(Turn { chunk: number.wrapping_add(1), index: end });
                area.of_output(output).store(index, Relaxed);
                if let Some(k) = last {
                    self.end_of(k, output).store(end, Relaxed);
                }
            }
            first += Threads::WARP;
        }
        self.warp_sync();
        true
    }

    /// All threads of a warp: writes what was placed to slots.
    #[inline(always)]
    pub(super) fn write_emissions(&self, area: Area, totals: Totals) {
        let mut port = 0;
        while port < Self::PORTS.len() {
            let (total, links) = (totals[port], self.layout().ports[port]);
            if total > 0 {
                if Self::is_keyed(port, links) {
                    self.write_to_chosen(area, port, links, total);
                } else {
                    self.write_to_all(area, port, links, total);
                }
            }
            port += 1;
        }
    }

    /// Atoms of a message of that port, of which there is one at least.
    #[inline(always)]
    fn atoms_of_port(port: usize) -> NonZeroU32 {
        NonZeroU32::new(Self::PORTS[port].atoms as u32).unwrap_or(NonZeroU32::MIN)
    }

    /// All threads of a warp: writes the `total` messages of a port to each of its outputs, of which there is one.
    #[inline(always)]
    fn write_to_all(&self, area: Area, port: usize, links: PortLinks, total: u32) {
        let mut k = u32::from(links.first);
        loop {
            // SAFETY: an output; nobody changes its ring, or who has the other end.
            let (ring, far) = unsafe { ((*self.output(k)).ring, (*self.output(k)).far) };
            let first = area.of_output(k).load(Relaxed);
            match far {
                Far::Channel => self.write_to_one::<Gpu>(area, port, (ring, first), total),
                Far::Host => self.write_to_one::<System>(area, port, (ring, first), total),
            }
            k += 1;
            if k >= u32::from(links.first) + u32::from(links.count) {
                return;
            }
        }
    }

    /// All threads of a warp: writes the `total` messages of a port to slots, which the threads of `S` share, from that of index
    /// `first` on.
    #[inline(always)]
    fn write_to_one<S: MemoryScope>(
        &self,
        area: Area,
        port: usize,
        (ring, first): (Ring, u32),
        total: u32,
    ) {
        let Some(slots) = ring.slots_of(Self::atoms_of_port(port)) else { return }; // never: it was checked
        self.write_atoms(area, port, total, |t, words| S::store(slots.atom(first, t), words));
    }

    /// All threads of a warp: writes the `total` messages of a port to the output that was chosen for each: other channels.
    #[inline(always)]
    fn write_to_chosen(&self, area: Area, port: usize, links: PortLinks, total: u32) {
        let atoms = Self::atoms_of_port(port);
        self.write_atoms(area, port, total, |t, words| {
            let to = Self::routed(&area, port, t / atoms).load(Relaxed);
            let output = u32::from(links.first) + (to >> 16);
            let first = area.of_output(output).load(Relaxed).wrapping_add(to & 0xffff);
            // SAFETY: an output; nobody changes its ring.
            let ring = unsafe { &(*self.output(output)).ring };
            if let Some(slots) = ring.slots_of(atoms) {
                Gpu::store(slots.atom(first, t % atoms), words);
            }
        });
    }

    /// All threads of a warp, each some atoms of the `total` messages of a port, one at least, four at a time: gives `write` the
    /// atom's number of all, and the atom.
    #[inline(always)]
    fn write_atoms(&self, area: Area, port: usize, total: u32, write: impl Fn(u32, Words)) {
        let atoms = Self::atoms_of_port(port);
        let (all, step) = (total * atoms.get(), Threads::WARP);
        let read = |t: u32| {
            let t = t.min(all - 1);
            let at = Self::listed(&area, port, t / atoms).load(Relaxed);
            let message = Self::message_at(area.stages, at).cast::<Words>();
            // SAFETY: an atom of a message that a handler has emitted, in its stage; nobody writes there now. Behind the
            // message's end it is whatever the scratch memory holds.
            unsafe { message.wrapping_add((t % atoms) as usize).read() }
        };
        let keep = |t: u32, words: Words| {
            if t < all {
                write(t, words);
            }
        };
        let mut t = self.lane();
        loop {
            let words = [read(t), read(t + step), read(t + 2 * step), read(t + 3 * step)];
            keep(t, words[0]);
            keep(t + step, words[1]);
            keep(t + 2 * step, words[2]);
            keep(t + 3 * step, words[3]);
            t += 4 * step;
            if t - self.lane() >= all {
                return;
            }
        }
    }
}
