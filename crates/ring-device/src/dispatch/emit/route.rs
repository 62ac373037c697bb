//! What a chunk's handlers have emitted, on its way to the outputs: put in order, by the index of the request and then as it
//! was emitted; given places in the outputs, each message in one output of its port or in all; and written to their slots.

use super::work::LOOKS;
use super::worker::{Way, Worker};
use super::{Area, fits_once};
use crate::block::cell::Cell;
use crate::block::{Cooperate, Piece, Threads, Words};
use crate::dispatch::channel::Channel;
use crate::kernel::{Kernel, Scope};
use crate::memory::flow::{MOST_OF_CHUNK, Turn, emitted_before};
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{Atom, AtomicU32, AtomicU64, Gpu, MemoryScope, System};
use ring_shared::layout::{Far, MAX_PORTS, PortLinks, Routing};
use ring_shared::ring::SlotsOf;

/// Where a request may emit as many messages to a port, a chunk has few requests: threads of a warp list the messages of one side by
/// side, request after request, where else each lists those of a request.
const MANY: u32 = 32;

/// What a chunk has for each port.
#[derive(Clone, Copy)]
pub(super) struct Emitted {
    /// How many messages.
    totals: [u32; MAX_PORTS],
    /// Whether they are one of each request: then there is no list.
    is_one_each: [bool; MAX_PORTS],
}

impl Area {
    /// Word `k` of those that begin at `at`.
    #[inline(always)]
    fn word<'a>(at: *const AtomicU32, k: u32) -> &'a AtomicU32 {
        // SAFETY: a word of the parts of an area that hold such words only, by the callers' bounds.
        unsafe { &*at.wrapping_add(k as usize) }
    }

    /// When the worker's last chunk was placed in an output, and where its first message there lies.
    #[inline(always)]
    pub(super) fn placed(&self, output: u32) -> &Cell<Turn> {
        // SAFETY: a cell of those at the beginning of an area, one for each output.
        unsafe { &*self.placed.wrapping_add(output as usize) }
    }

    /// How many messages the chunk has for an output of a port with keys, and for any output, once they have places, the low half
    /// of the index of the first, or in a kernel that is traced how many there are.
    #[inline(always)]
    pub(super) fn of_output(&self, output: u32) -> &AtomicU32 {
        Self::word(self.counts, output)
    }
}

impl<'c, K: Kernel> Channel<'c, K> {
    /// Where message `j` of a port is listed: where it lies, as an offset from the first stage.
    #[inline(always)]
    fn listed(area: &Area, port: usize, j: u32) -> &AtomicU32 {
        Area::word(area.list, area.chunk * emitted_before(Self::PORTS, port) as u32 + j)
    }

    /// Where it goes. Before it is placed: in the upper half of the low word an output of the port, in the lower half which of the
    /// chunk's messages there it is. Then: the address of its slot.
    #[inline(always)]
    fn routed(area: &Area, port: usize, j: u32) -> &AtomicU64 {
        let k = area.chunk * emitted_before(Self::PORTS, port) as u32 + j;
        // SAFETY: a word of the part of an area that holds such words only, by the callers' bounds.
        unsafe { &*area.routes.wrapping_add(k as usize) }
    }

    /// Whether messages of a port go to outputs by their keys.
    #[inline(always)]
    fn is_keyed(port: usize, links: PortLinks) -> bool {
        Self::PORTS[port].has_key && links.routing != Routing::All
    }

    /// All threads of a warp: lists what the `n` requests in the stages of an area have emitted, and chooses outputs. How many
    /// there are of each port; false for a thread that has a message for a channel that is not there.
    #[inline(always)]
    pub(super) fn list(&self, worker: &Worker<'c>, n: u32) -> (bool, Emitted) {
        let (area, mut fits) = (worker.area, true);
        let mut emitted = Emitted { totals: [0; MAX_PORTS], is_one_each: [false; MAX_PORTS] };
        each_port!(port => {
            let (total, is_one_each) = self.list_port(area, port, n);
            (emitted.totals[port], emitted.is_one_each[port]) = (total, is_one_each);
            self.warp_sync();
            let links = self.way(worker, port).links();
            if Self::is_keyed(port, links) {
                fits &= self.choose_outputs(area, port, links, &emitted);
            }
        });
        (fits, emitted)
    }

    /// All threads of a warp: lists where the messages of a port lie, in their order, if they are not one of each request; how
    /// many there are, and whether they are.
    #[inline(always)]
    fn list_port(&self, area: Area, port: usize, n: u32) -> (u32, bool) {
        let (mut m, mut total) = (self.lane(), 0);
        if Self::PORTS[port].most == 1 && Threads::WARP > 1 {
            let (mut k, mut emit) = (0, true);
            while k < MOST_OF_CHUNK as u32 {
                emit &= Self::emitted(area.stages, (m + k).min(n - 1), port) > 0;
                k += Threads::WARP;
            }
            if self.all(emit) {
                return (n, true);
            }
        }
        if Self::PORTS[port].most >= MANY {
            let mut m = 0;
            while m < n {
                let (emitted, mut k) = (Self::emitted(area.stages, m, port), self.lane());
                while k < emitted {
                    let of = Self::offset_of(port, m, k) as u32;
                    Self::listed(&area, port, total + k).store(of, Relaxed);
                    k += Threads::WARP;
                }
                total += emitted;
                m += 1;
            }
            return (total, false);
        }
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
            if m - self.lane() >= n {
                return (total, false);
            }
        }
    }

    /// Where message `j` of a port lies, as an offset from the first stage.
    #[inline(always)]
    fn offset_of_nth(area: &Area, port: usize, j: u32, emitted: &Emitted) -> u32 {
        if emitted.is_one_each[port] {
            Self::offset_of(port, j, 0) as u32
        } else {
            Self::listed(area, port, j).load(Relaxed)
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

    /// All threads of a warp: chooses an output for each message of a port, by its key, and counts those before it there; false
    /// for a thread that has a message for a channel that is not there.
    #[inline(always)]
    fn choose_outputs(&self, area: Area, port: usize, links: PortLinks, emitted: &Emitted) -> bool {
        let total = emitted.totals[port];
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
            let at = Self::offset_of_nth(&area, port, j.min(total - 1), emitted);
            // SAFETY: a message of that port, in its stage.
            let key =
                unsafe { <K::Scope as Scope<K>>::key(port, Self::message_at(area.stages, at)) };
            let chosen = match by_index {
                true => key,
                false if count.is_power_of_two() => key & (count - 1), // a division takes long
                false => key.checked_rem(count).unwrap_or(0),          // there is an output
            };
            fits &= chosen < count || j >= total;
            let is_there = chosen < count && j < total;
            let peers = self.peers(is_there.then_some(chosen), count);
            let below = (peers & ((1 << self.lane()) - 1)).count_ones();
            let of_output = area.of_output(first_output + chosen.min(count - 1));
            let before = of_output.load(Relaxed);
            self.warp_sync(); // all have read before one writes
            if is_there {
                Self::routed(&area, port, j)
                    .store(u64::from(chosen << 16 | (before + below)), Relaxed);
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
    fn count_of(&self, worker: &Worker<'c>, emitted: &Emitted, output: u32) -> u32 {
        let mut count = 0;
        each_port!(port => {
            let links = self.way(worker, port).links();
            let is_its = output.wrapping_sub(links.first.into()) < links.count.into();
            let of_port = if Self::is_keyed(port, links) {
                worker.area.of_output(output).load(Relaxed)
            } else {
                emitted.totals[port]
            };
            count = if is_its { of_port } else { count };
        });
        count
    }

    /// All threads of a warp: gives what was listed its places in the outputs, in the turn of its chunk, and lets the next chunk
    /// have its turn there; `None` if that is not to come. Else for the output that has the number of the lane, where the first
    /// lies: the low half of its index.
    #[inline(always)]
    pub(super) fn place(&self, worker: &Worker<'c>, emitted: &Emitted, number: u32) -> Option<u32> {
        let outputs = worker.area.outputs;
        let mut of_lane = 0;
        if outputs > 0 {
            of_lane = self.place_from(worker, emitted, number, 0)?;
            let mut first = Threads::WARP;
            while first < outputs {
                self.place_from(worker, emitted, number, first)?;
                first += Threads::WARP;
            }
        }
        self.warp_sync();
        Some(of_lane)
    }

    /// The same for the outputs from `first` on, one a lane.
    #[inline(always)]
    fn place_from(
        &self,
        worker: &Worker<'c>,
        emitted: &Emitted,
        number: u32,
        first: u32,
    ) -> Option<u32> {
        let area = worker.area;
        // Lanes without an output look at the last one's turn, so that the warp stays together.
        let output = (first + self.lane()).min(area.outputs - 1);
        let has_output = first + self.lane() < area.outputs;
        let count = self.count_of(worker, emitted, output);
        let turn = self.turn_of(output);
        // The next worker waits for what this loop stores, and the one behind it for that one: the loop has one branch.
        let (mut is_placed, mut index) = (false, 0);
        loop {
            let mut looks = 0;
            let are_placed = loop {
                let seen = turn.get();
                let is_turn = !is_placed && seen.chunk.wrapping_sub(number) as i32 >= 0;
                index = if is_turn { seen.index } else { index };
                if is_turn && has_output {
                    let end = seen.index.wrapping_add(count);
                    turn.set(Turn { chunk: number.wrapping_add(1), index: end });
                }
                is_placed |= is_turn;
                looks += 1;
                let are_placed = self.all(is_placed);
                if are_placed | (looks == LOOKS) {
                    break are_placed;
                }
            };
            if are_placed {
                break;
            }
            if self.agreed(self.is_over()) {
                return None;
            }
        }
        if has_output {
            area.placed(output).set(Turn { chunk: number, index });
            area.of_output(output).store(if Self::TRACES { count } else { index }, Relaxed);
        }
        Some(index)
    }

    /// The low half of the index of the first message that was placed in an output.
    #[inline(always)]
    fn first_there(area: &Area, output: u32) -> u32 {
        match Self::TRACES {
            true => area.placed(output).get().index,
            false => area.of_output(output).load(Relaxed),
        }
    }

    /// All threads of a warp: writes what was placed to slots. `of_lane` is where [`place`](Self::place) has put the first for the
    /// output that has the number of the lane.
    #[inline(always)]
    pub(super) fn write_emissions(&self, worker: &Worker<'c>, emitted: &Emitted, of_lane: u32) {
        each_port!(port => {
            let way = self.way(worker, port);
            if emitted.totals[port] > 0 {
                if Self::is_keyed(port, way.links()) {
                    self.write_to_chosen(worker.area, port, way.links(), emitted);
                } else {
                    self.write_to_all(worker.area, port, way, emitted, of_lane);
                }
            }
        });
    }

    /// All threads of a warp: writes the messages of a port to each of its outputs, of which there is one.
    #[inline(always)]
    fn write_to_all(&self, area: Area, port: usize, way: Way<'c>, emitted: &Emitted, of_lane: u32) {
        let links = way.links();
        let (first, end) =
            (u32::from(links.first), u32::from(links.first) + u32::from(links.count));
        self.write_to_output(area, port, (way.slots, way.far), emitted, (first, of_lane));
        let mut k = first + 1;
        while k < end {
            self.write_to_output(area, port, self.slots_of_output(port, k), emitted, (k, of_lane));
            k += 1;
        }
    }

    /// All threads of a warp: writes the messages of a port to output `k`, which has those slots.
    #[inline(always)]
    fn write_to_output(
        &self,
        area: Area,
        port: usize,
        (slots, far): (Option<SlotsOf<'c>>, Far),
        emitted: &Emitted,
        (k, of_lane): (u32, u32),
    ) {
        let index = match k < Threads::WARP {
            true => self.shuffle32(of_lane, k),
            false => Self::first_there(&area, k),
        };
        let slots = slots.and_then(|slots| slots.of(Self::atoms_of_port(port)));
        let Some(slots) = slots else { return }; // never: it was checked
        match far.is_on_device() {
            true => self.write_to_one::<Gpu>(area, port, (slots, index), emitted),
            false => self.write_to_one::<System>(area, port, (slots, index), emitted),
        }
    }

    /// All threads of a warp: writes the messages of a port to slots, which the threads of `S` share, from that of index `first`
    /// on.
    #[inline(always)]
    fn write_to_one<S: MemoryScope>(
        &self,
        area: Area,
        port: usize,
        (slots, first): (SlotsOf<'_>, u32),
        emitted: &Emitted,
    ) {
        self.write_atoms(area, port, emitted, |t, words| S::store(slots.atom(first, t), words));
    }

    /// All threads of a warp: writes the messages of a port to the output that was chosen for each: other channels. By the scope of the
    /// GPU also where one of another device is reached through the host's memory: the fence before they are told of has that of the
    /// system then.
    #[inline(always)]
    fn write_to_chosen(&self, area: Area, port: usize, links: PortLinks, emitted: &Emitted) {
        let (total, atoms) = (emitted.totals[port], Self::atoms_of_port(port));
        // Each thread finds the slots of some messages, once for all atoms of each.
        let (mut j, mut first) = (self.lane(), 0);
        while first < total {
            if j < total {
                let route = Self::routed(&area, port, j);
                let to = route.load(Relaxed) as u32;
                let output = u32::from(links.first) + (to >> 16);
                let index = Self::first_there(&area, output).wrapping_add(to & 0xffff);
                if let Some(slots) = self.slots_of_output(port, output).0 {
                    let slot = core::ptr::from_ref(slots.atom(index, 0));
                    route.store(slot.expose_provenance() as u64, Relaxed);
                }
            }
            first += Threads::WARP;
            j += Threads::WARP;
        }
        self.warp_sync();
        self.write_atoms(area, port, emitted, |t, words| {
            let slot = Self::routed(&area, port, t / atoms).load(Relaxed) as usize;
            let slot = with_exposed_provenance::<Atom>(slot);
            // SAFETY: an atom of the slot that this warp has found for the message above: there is one, since all rings were
            // checked for messages of their ports when the links were opened.
            Gpu::store(unsafe { &*slot.add((t % atoms) as usize) }, words);
        });
    }

    /// All threads of a warp, each some atoms of the messages of a port, of which there is one, four at a time: gives `write` the
    /// atom's number of all, and the atom.
    #[inline(always)]
    fn write_atoms(&self, area: Area, port: usize, emitted: &Emitted, write: impl Fn(u32, Words)) {
        let atoms = Self::atoms_of_port(port);
        let (all, step) = (emitted.totals[port] * atoms.get(), Threads::WARP);
        let read = |t: u32| {
            let t = t.min(all - 1);
            let at = Self::offset_of_nth(&area, port, t / atoms, emitted);
            let message = Self::message_at(area.stages, at).cast::<Piece>();
            // SAFETY: an atom of a message that a handler has emitted, in its stage; nobody writes there now. Behind the
            // message's end it is whatever the scratch memory holds.
            unsafe { message.wrapping_add((t % atoms) as usize).read() }.0
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
            let shape = &Self::PORTS[port];
            if (shape.most == 1 && fits_once(shape.atoms)) || t - self.lane() >= all {
                return;
            }
        }
    }
}
