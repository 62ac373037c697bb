//! Buffers as handlers see them: device memory that kernels and the host share, named by references in messages.

use crate::block::Cooperate;
use crate::thread_block::ThreadBlock;
use core::marker::PhantomData;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use ring_shared::atomics::{AtomicU32, Gpu, MemoryScope, Ordering::Relaxed};
use ring_shared::layout::{BufferEntry, ControlBlock, MAX_BUFFERS};
use ring_shared::{BufferRef, Element, Element32};

/// In `Life::buffers` before the first view of a launch.
pub(crate) const UNREAD: u64 = 0;

/// There where the host says that there is no table: no address is odd.
const NONE: u64 = 1;

/// The elements that a reference names, if a kernel that [declares](crate::Kernel::USES_PAYLOAD) that it uses memory outside
/// its messages may see them: the buffer has that generation now, all of the elements are in it, and they are aligned.
#[inline(always)]
pub(crate) fn view<'a, T: Element>(
    block: ThreadBlock<'a>,
    is_declared: bool,
    reference: &BufferRef<T>,
) -> Option<View<'a, T>> {
    if !is_declared {
        return None; // nothing would order what it writes before its answer
    }
    // No element is reached but through here: an answer without it needs no fence in front of it.
    block.memory().signals.uses_payload.set(true);
    let (entry, generation) = (reference.entry() as usize, u64::from(reference.generation()));
    if generation == 0 || entry >= MAX_BUFFERS {
        return None;
    }
    let table = table(block)?;
    // SAFETY: the host's table has `MAX_BUFFERS` entries, all atomics, and stays for as long as the kernel runs.
    let entry = unsafe { &*table.wrapping_add(entry) };
    // SYNC: with the fence behind it, acquires what was copied to the buffer and to its entry before the host sent the
    // message, and what other blocks have written there, also past an L1 cache that still holds other bytes of that memory.
    let [address, of_place] = Gpu::load_whole(&entry.place);
    let [bytes, of_extent] = Gpu::load_whole(&entry.extent);
    block.fence_device();
    if of_place != generation || of_extent != generation {
        return None; // given back, not yet whole, or of another runtime
    }
    let (first, length) = reference.bytes();
    let is_inside = first.checked_add(length).is_some_and(|end| end <= bytes);
    let is_aligned = address.is_multiple_of(size_of::<T>() as u64);
    // It does not overflow: the buffer's bytes have addresses.
    let at = address.wrapping_add(first);
    (is_inside && is_aligned).then_some(View { at, count: reference.len(), of: PhantomData })
}

/// Where the host's table of buffers is. The first view of a launch asks the host's memory, which may be across the bus.
#[inline(always)]
fn table(block: ThreadBlock<'_>) -> Option<*const BufferEntry> {
    let life = &block.memory().life;
    if life.buffers.get() == UNREAD {
        let control = with_exposed_provenance::<ControlBlock>(life.control.get() as usize);
        // SAFETY: `run` stored the address of the control block, all atomics and padding, that its caller promised, before
        // it called a handler.
        let table = unsafe { &(*control).config.buffers }.load(Relaxed); // written before the launch
        life.buffers.set(if table == 0 { NONE } else { table });
    }
    match life.buffers.get() {
        NONE => None,
        table => Some(with_exposed_provenance(table as usize)),
    }
}

/// The elements of a buffer that a reference names, while a handler runs. Each is read and written by one relaxed access:
/// whoever reads what another thread writes at the same time finds the old element or the new one (on the CPU device, of
/// 8 bytes, perhaps half of each), and is told of no order. What was in the buffer when the view was made is seen; after a
/// `sync` of the context, what its threads have written before.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    at: u64,
    count: usize,
    of: PhantomData<(&'a AtomicU32, T)>,
}

impl<T: Element> View<'_, T> {
    /// Where element `i` is, if there are `n` from there on.
    #[inline(always)]
    fn place(&self, i: usize, n: usize) -> Option<usize> {
        let is_inside = i < self.count && self.count - i >= n;
        is_inside.then(|| self.at as usize + size_of::<T>() * i)
    }

    /// How many elements these are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether these are no elements at all.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Element `i`, or `None` past the end.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<T> {
        let at = with_exposed_provenance(self.place(i, 1)?);
        // SAFETY: element `i` of those that `view` checked against the buffer, whose memory the host keeps until the answer
        // to the message is there; it is aligned, and accessed as such elements only.
        Some(unsafe { T::load(at) })
    }

    /// Sets element `i`; whether there is one. Past the end nothing is set.
    #[inline(always)]
    pub fn set(&self, i: usize, value: T) -> bool {
        let Some(at) = self.place(i, 1) else { return false };
        // SAFETY: as for `get`.
        unsafe { T::store(with_exposed_provenance_mut(at), value) };
        true
    }

    /// The elements, one after the other, each read when it is asked for.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len()).map_while(|i| self.get(i))
    }
}

impl<T: Element32> View<'_, T> {
    /// Elements `i` to `i + 3`, read at once: a GPU's thread needs wide reads where memory is what it waits for. `None` if
    /// they are not all there, or if `i` is not a multiple of 4 or element `i` does not lie at a multiple of 16 bytes: a
    /// buffer begins at one. Where others write these elements at the same time each is the old one or the new one.
    #[inline(always)]
    pub fn get4(&self, i: usize) -> Option<[T; 4]> {
        let at = self.place(i, 4)?;
        let fits = i.is_multiple_of(4) && at.is_multiple_of(16);
        // SAFETY: as for `get`, of four elements; at a multiple of 16.
        fits.then(|| unsafe { T::load_four(with_exposed_provenance(at)) })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use crate::{BlockMemory, Hooks};
    use std::boxed::Box;
    use std::vec::Vec;

    const HOOKS: Hooks = Hooks { now: || 0, rest: |_| {}, unwind: || unreachable!() };
    const GENERATION: u32 = 77;
    const ENTRY: u32 = 5;
    /// Words of the buffer; as many lie before and behind it.
    const WORDS: usize = 8;

    #[repr(align(16))]
    struct Memory([AtomicU32; 3 * WORDS]);

    struct Rig {
        control: Box<ControlBlock>,
        table: Vec<BufferEntry>,
        memory: Box<Memory>,
        block: Box<BlockMemory>,
    }

    impl Rig {
        fn new() -> Rig {
            // SAFETY: atomics and cells of integers.
            let (control, block) = unsafe {
                (Box::<ControlBlock>::new_zeroed().assume_init(), Box::new_zeroed().assume_init())
            };
            // SAFETY: atomics.
            let entry = |_| unsafe { core::mem::zeroed() };
            let memory = Box::new(Memory(core::array::from_fn(|k| AtomicU32::new(k as u32))));
            let rig = Rig { control, table: (0..MAX_BUFFERS).map(entry).collect(), memory, block };
            rig.control
                .config
                .buffers
                .store(rig.table.as_ptr().expose_provenance() as u64, Relaxed);
            rig.block.life.control.set((&raw const *rig.control).expose_provenance() as u64);
            rig.entry().set((rig.address(), 4 * WORDS as u64), GENERATION);
            rig
        }

        fn entry(&self) -> &BufferEntry {
            &self.table[ENTRY as usize]
        }

        fn address(&self) -> u64 {
            self.memory.0[WORDS..].as_ptr().expose_provenance() as u64
        }

        fn view<T: Element>(&mut self, reference: &BufferRef<T>) -> Option<View<'_, T>> {
            let block = ThreadBlock::new((0, 1), &mut self.block, HOOKS);
            view(block, true, reference)
        }

        fn is_refused(&mut self, reference: BufferRef<u32>) -> bool {
            self.view(&reference).is_none()
        }
    }

    fn whole<T: Element>() -> BufferRef<T> {
        let length = 4 * WORDS / size_of::<T>();
        BufferRef::from_parts(ENTRY, GENERATION, 0, length as u32)
    }

    #[test]
    fn a_view_stays_inside_what_its_reference_names() {
        let mut rig = Rig::new();
        let part = whole::<u32>().slice(2..6).unwrap();
        let view = rig.view(&part).unwrap();
        assert_eq!((view.len(), view.is_empty()), (4, false));
        assert!(view.iter().eq([10, 11, 12, 13]));
        for i in 0..4 {
            assert!(view.set(i, 100 + i as u32));
            assert_eq!(view.get(i), Some(100 + i as u32));
        }
        for i in [4, 5, 1 << 30, 1 << 62, usize::MAX / 4 + 1, usize::MAX] {
            assert!(view.get(i).is_none() && !view.set(i, 7) && view.get4(i).is_none(), "{i}");
        }
        let view = rig.view(&whole::<f64>()).unwrap();
        assert!(view.set(3, 1.5) && !view.set(4, 2.5) && view.get(4).is_none());
        assert_eq!(view.get(3), Some(1.5));
        let none = rig.view(&whole::<u32>().slice(8..8).unwrap()).unwrap();
        assert!(none.is_empty() && none.get(0).is_none() && !none.set(0, 7));
        let [low, high] = bytemuck::cast::<f64, [u32; 2]>(1.5);
        let words = [8, 9, 100, 101, 102, 103, low, high];
        let found = rig.memory.0.each_ref().map(|word| word.load(Relaxed));
        assert_eq!(found[WORDS..2 * WORDS], words);
        let others = |k: &usize| !(WORDS..2 * WORDS).contains(k);
        assert!((0..3 * WORDS).filter(others).all(|k| found[k] == k as u32), "{found:?}");
        assert!(rig.block.signals.uses_payload.get());
    }

    #[test]
    fn four_are_read_at_once_where_they_are_aligned() {
        let mut rig = Rig::new();
        let view = rig.view(&whole::<u32>()).unwrap();
        assert_eq!((view.get4(0), view.get4(4)), (Some([8, 9, 10, 11]), Some([12, 13, 14, 15])));
        assert!([1, 2, 3, 5, 6, 7, 8].into_iter().all(|i| view.get4(i).is_none()));
        let view = rig.view(&whole::<u32>().slice(4..7).unwrap()).unwrap();
        assert!(view.get4(0).is_none(), "three are no four");
        let view = rig.view(&whole::<u32>().slice(1..8).unwrap()).unwrap();
        assert!(view.get4(0).is_none(), "not at a multiple of 16 bytes");
    }

    #[test]
    fn references_that_no_buffer_has_are_refused() {
        let mut rig = Rig::new();
        let of = BufferRef::<u32>::from_parts;
        let (words, most) = (WORDS as u32, u32::MAX);
        for (entry, generation, offset, length) in [
            (ENTRY, GENERATION, 0, words + 1),
            (ENTRY, GENERATION, 1, words),
            (ENTRY, GENERATION, words + 1, 0),
            (ENTRY, GENERATION, most, most),
            (ENTRY, GENERATION, most, 1),
            (ENTRY, GENERATION + 1, 0, 1),
            (ENTRY, 0, 0, 1),
            (ENTRY + 1, GENERATION, 0, 1),
            (ENTRY + 1, 0, 0, 0),
            (MAX_BUFFERS as u32, GENERATION, 0, 1),
            (most, GENERATION, 0, 1),
            (0, 0, 0, 0),
        ] {
            let reference = of(entry, generation, offset, length);
            assert!(rig.is_refused(reference), "{reference:?}");
        }
        assert!(!rig.is_refused(whole()));
    }

    #[test]
    fn an_entry_that_is_not_whole_is_refused() {
        let mut rig = Rig::new();
        let (place, extent) =
            ([rig.address(), GENERATION.into()], [4 * WORDS as u64, GENERATION.into()]);
        for other in [0, u64::from(GENERATION) + 1, u64::from(GENERATION) | 1 << 32, u64::MAX] {
            rig.entry().place.store([place[0], other]);
            assert!(rig.is_refused(whole()), "{other}");
            rig.entry().place.store(place);
            rig.entry().extent.store([extent[0], other]);
            assert!(rig.is_refused(whole()), "{other}");
            rig.entry().extent.store(extent);
            assert!(!rig.is_refused(whole()));
        }
        rig.entry().set((0, 0), 0);
        assert!(rig.is_refused(whole()));
    }

    #[test]
    fn a_buffer_that_is_not_aligned_for_the_element_is_refused() {
        let mut rig = Rig::new();
        let at = rig.address() + 4;
        rig.entry().set((at, 4 * WORDS as u64 - 8), GENERATION);
        assert!(rig.view(&whole::<u64>().slice(0..2).unwrap()).is_none());
        assert!(!rig.is_refused(whole().slice(0..2).unwrap()));
    }

    #[test]
    fn without_a_table_or_undeclared_nothing_is_seen() {
        let mut rig = Rig::new();
        let block = ThreadBlock::new((0, 1), &mut rig.block, HOOKS);
        assert!(view(block, false, &whole::<u32>()).is_none());
        assert!(!rig.block.signals.uses_payload.get());
        rig.control.config.buffers.store(0, Relaxed);
        assert!(rig.is_refused(whole()));
        let table = rig.table.as_ptr().expose_provenance() as u64;
        rig.control.config.buffers.store(table, Relaxed);
        assert!(rig.is_refused(whole()), "the host is asked once a launch");
        rig.block.life.buffers.set(UNREAD);
        assert!(!rig.is_refused(whole()));
    }
}
