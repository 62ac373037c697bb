//! Buffers as handlers see them: device memory that kernels and the host share, named by references in messages.

use crate::thread_block::ThreadBlock;
use bytemuck::{Pod, Zeroable};
use core::marker::PhantomData;
use core::ptr::{with_exposed_provenance, with_exposed_provenance_mut};
use core::slice;
use ring_shared::atomics::{AtomicU32, Gpu, MemoryScope, Ordering::Relaxed};
use ring_shared::layout::{BufferEntry, ControlBlock, FROZEN, MAX_BUFFERS};
use ring_shared::{BufferRef, Element, Element32, ElementAdd, ElementAtomic, buffer};

/// In `Life::buffers` before the first view of a launch.
pub(crate) const UNREAD: u64 = 0;

/// There where the host says that there is no table: no address is odd.
const NONE: u64 = 1;

/// What a handler wants of a buffer.
#[derive(Clone, Copy)]
struct Wanted {
    /// What stands beside its generation in the table.
    mark: u64,
    /// Whether it must acquire what was written to the buffer before the message was sent: not where the thread has done so, or only adds.
    acquires: bool,
    /// Whether it may write there.
    writes: bool,
}

/// The elements that a reference names, if a kernel that [declares](crate::Kernel::USES_PAYLOAD) that it uses memory outside
/// its messages may see them: the buffer has that generation now, all of the elements are in it, and they are aligned.
#[inline(always)]
pub(crate) fn view<'a, T: Element>(
    block: ThreadBlock<'a>,
    is_declared: bool,
    reference: &BufferRef<T>,
) -> Option<View<'a, T>> {
    find(block, is_declared, reference, Wanted { mark: 0, acquires: true, writes: true })
}

/// The same, to read only.
#[inline(always)]
pub(crate) fn read_view<'a, T: Element>(
    block: ThreadBlock<'a>,
    is_declared: bool,
    reference: &BufferRef<T>,
) -> Option<ReadView<'a, T>> {
    find(block, is_declared, reference, Wanted { mark: 0, acquires: true, writes: false })
        .map(ReadView)
}

/// The elements of a frozen buffer, likewise.
#[inline(always)]
pub(crate) fn frozen<'a, T: Element>(
    block: ThreadBlock<'a>,
    is_declared: bool,
    reference: &BufferRef<T>,
) -> Option<&'a [T]> {
    let wanted = Wanted { mark: FROZEN, acquires: true, writes: false };
    let View { at, count, .. } = find(block, is_declared, reference, wanted)?;
    // SAFETY: so many aligned elements, plain bytes, of a buffer that the host wrote before it named it in the table, and that nobody
    // writes while it is frozen: its host has no function for that, and no view of it is made. Its memory becomes another's only when
    // the answer to the message is there, and the handler has returned in all blocks.
    Some(unsafe { slice::from_raw_parts(with_exposed_provenance(at as usize), count as usize) })
}

/// The same of elements that the handler only adds to, where nothing is acquired: an addition is made where all threads of the GPU see
/// memory, so no L1 cache stands between.
#[inline(always)]
pub(crate) fn adder<'a>(
    block: ThreadBlock<'a>,
    is_declared: bool,
    reference: &BufferRef<u64>,
) -> Option<Adder<'a>> {
    find(block, is_declared, reference, Wanted { mark: 0, acquires: false, writes: true })
        .map(Adder)
}

/// The same, of a buffer as it is wanted.
#[inline(always)]
fn find<'a, T: Element>(
    block: ThreadBlock<'a>,
    is_declared: bool,
    reference: &BufferRef<T>,
    wanted: Wanted,
) -> Option<View<'a, T>> {
    if !is_declared {
        return None; // nothing would order what it writes before its answer
    }
    if wanted.writes {
        // No element is written but through here: an answer without it needs no fence in front of it.
        block.memory().signals.uses_payload.set(true);
    }
    let (entry, generation) = (reference.entry() as usize, u64::from(reference.generation()));
    if generation == 0 || entry >= MAX_BUFFERS {
        return None;
    }
    let table = table(block)?;
    // SAFETY: the host's table has `MAX_BUFFERS` entries, all atomics, and stays for as long as the kernel runs.
    let entry = unsafe { &*table.wrapping_add(entry) };
    // The entry was copied there before the host sent the message, which this thread has acquired. Both halves are on their way at once:
    // the first does not acquire.
    let [address, of_place] = Gpu::load_whole(&entry.place);
    let [bytes, of_extent] = match wanted.acquires {
        // SYNC: acquires what was copied to the buffer and to its entry before the host sent the message, and what other blocks have
        // written there, also past an L1 cache that still holds other bytes of that memory.
        true => Gpu::observe(&entry.extent),
        false => Gpu::load_whole(&entry.extent),
    };
    let named = generation | wanted.mark;
    if of_place != named || of_extent != named {
        return None; // given back, not yet whole, of another runtime, or frozen where it may not be, or not where it must
    }
    let (first, length) = reference.bytes();
    let is_inside = first.checked_add(length).is_some_and(|end| end <= bytes);
    let is_aligned = address.is_multiple_of(size_of::<T>() as u64);
    // It does not overflow: the buffer's bytes have addresses.
    let at = address.wrapping_add(first);
    (is_inside && is_aligned).then_some(View { at, count: reference.len() as u32, of: PhantomData })
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
    count: u32,
    of: PhantomData<(&'a AtomicU32, T)>,
}

impl<T: Element> View<'_, T> {
    /// Where element `i` is, if there are `n` from there on.
    #[inline(always)]
    fn place(&self, i: usize, n: usize) -> Option<usize> {
        let is_inside = i < self.len() && self.len() - i >= n;
        is_inside.then(|| self.at as usize + size_of::<T>() * i)
    }

    /// How many elements these are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count as usize
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

impl<'a, T: Element> View<'a, T> {
    /// The elements, or `None` if there are none.
    #[inline(always)]
    pub fn elements(&self) -> Option<Elements<'a, T>> {
        (self.count > 0).then(|| Elements { at: self.at, last: self.count - 1, of: PhantomData })
    }
}

/// The elements of a buffer, which a handler only reads: as a [`View`], but an answer waits for nothing on its account, where one behind a
/// view waits until what was written through it can be seen.
#[derive(Clone, Copy, Debug)]
pub struct ReadView<'a, T>(View<'a, T>);

impl<T: Element> ReadView<'_, T> {
    /// How many elements these are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether these are no elements at all.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Element `i`, or `None` past the end.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<T> {
        self.0.get(i)
    }

    /// The elements, one after the other, each read when it is asked for.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.0.iter()
    }
}

impl<T: Element32> ReadView<'_, T> {
    /// Elements `i` to `i + 3`, read at once: as [`View::get4`].
    #[inline(always)]
    pub fn get4(&self, i: usize) -> Option<[T; 4]> {
        self.0.get4(i)
    }
}

/// The elements of a [`View`], one at least, read without a branch, as [`Fours`] are.
#[derive(Clone, Copy, Debug)]
pub struct Elements<'a, T> {
    at: u64,
    /// The index of the last one.
    last: u32,
    of: PhantomData<(&'a AtomicU32, T)>,
}

impl<T: Element> Elements<'_, T> {
    /// How many there are.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "there is one at least")]
    pub fn len(&self) -> u32 {
        self.last + 1
    }

    /// Element `k`, or the last one if there are not so many. No branch depends on which: a GPU's thread goes on until it uses what it
    /// reads, and so can have many reads on their way.
    #[inline(always)]
    pub fn nearest(&self, k: u32) -> T {
        let at = self.at as usize + size_of::<T>() * k.min(self.last) as usize;
        // SAFETY: one of the elements that `view` checked, as for `View::get`.
        unsafe { T::load(with_exposed_provenance(at)) }
    }

    /// Sets element `k`; whether there is one. Otherwise nothing is set.
    #[inline(always)]
    pub fn set(&self, k: u32, value: T) -> bool {
        let is_inside = k <= self.last;
        if is_inside {
            let at = self.at as usize + size_of::<T>() * k as usize;
            // SAFETY: as for `nearest`.
            unsafe { T::store(with_exposed_provenance_mut(at), value) };
        }
        is_inside
    }
}

impl View<'_, u64> {
    /// Adds to element `i`, wrapping; whether there is one. Threads of several blocks may add to the same element at once: nothing
    /// of it is lost. They may not set it at the same time. Whoever reads it finds all that was added where something else orders
    /// the additions before: a `sync` of the context, or a message that was sent behind them.
    #[inline(always)]
    pub fn add(&self, i: usize, value: u64) -> bool {
        let Some(at) = self.place(i, 1) else { return false };
        // SAFETY: as for `get`.
        unsafe { buffer::add(with_exposed_provenance_mut(at), value) };
        true
    }
}

impl<T: ElementAdd> View<'_, T> {
    /// Adds to element `i`, integers wrapping; what it was before, or `None` past the end. Threads of all blocks of the device may do so
    /// at once, and nothing is lost; of floating-point numbers the order of the additions is any. Nothing else is ordered by it.
    /// While others change an element so, none may [`set`](Self::set) it.
    #[inline(always)]
    pub fn fetch_add(&self, i: usize, n: T) -> Option<T> {
        let at = with_exposed_provenance_mut(self.place(i, 1)?);
        // SAFETY: as for `get`.
        Some(unsafe { T::fetch_add(at, n) })
    }
}

impl<T: ElementAtomic> View<'_, T> {
    /// Leaves the greater of element `i` and `n` there; what it was before, or `None` past the end: as [`fetch_add`](Self::fetch_add).
    #[inline(always)]
    pub fn fetch_max(&self, i: usize, n: T) -> Option<T> {
        let at = with_exposed_provenance_mut(self.place(i, 1)?);
        // SAFETY: as for `get`.
        Some(unsafe { T::fetch_max(at, n) })
    }

    /// Leaves the lesser one, likewise.
    #[inline(always)]
    pub fn fetch_min(&self, i: usize, n: T) -> Option<T> {
        let at = with_exposed_provenance_mut(self.place(i, 1)?);
        // SAFETY: as for `get`.
        Some(unsafe { T::fetch_min(at, n) })
    }

    /// Sets element `i` to `new` if it is `old`: as [`fetch_add`](Self::fetch_add). `Ok` with `old` if it was, else `Err` with what it was;
    /// `None` past the end.
    #[inline(always)]
    pub fn compare_exchange(&self, i: usize, old: T, new: T) -> Option<Result<T, T>> {
        let at = with_exposed_provenance_mut(self.place(i, 1)?);
        // SAFETY: as for `get`.
        let was = unsafe { T::compare_exchange(at, old, new) };
        Some(if was == old { Ok(was) } else { Err(was) })
    }
}

/// The elements of a buffer, to which a handler only adds: cheaper to have than a [`View`], which acquires what is read.
#[derive(Clone, Copy, Debug)]
pub struct Adder<'a>(View<'a, u64>);

impl Adder<'_> {
    /// How many elements these are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether these are no elements at all.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds to element `i`, wrapping; whether there is one: as [`View::add`].
    #[inline(always)]
    pub fn add(&self, i: usize, value: u64) -> bool {
        self.0.add(i, value)
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

    /// Sets elements `i` to `i + 3` at once, where [`get4`](Self::get4) would read them; whether it did. Otherwise nothing is set.
    #[inline(always)]
    pub fn set4(&self, i: usize, values: [T; 4]) -> bool {
        let Some(at) = self.place(i, 4) else { return false };
        let fits = i.is_multiple_of(4) && at.is_multiple_of(16);
        if fits {
            // SAFETY: as for `get4`.
            unsafe { T::store_four(with_exposed_provenance_mut(at), values) };
        }
        fits
    }
}

impl<'a, T: Element32> View<'a, T> {
    /// The elements by fours, or `None` if there are none, or if element 0 does not lie at a multiple of 16 bytes. Elements behind the
    /// last whole four are left out.
    #[inline(always)]
    pub fn fours(&self) -> Option<Fours<'a, T>> {
        let fits = self.count >= 4 && self.at.is_multiple_of(16);
        fits.then(|| Fours { at: self.at, last: self.count / 4 - 1, of: PhantomData })
    }
}

/// The elements of a [`View`] by fours, one at least: read and written by fours as [`View::get4`] does.
#[derive(Clone, Copy, Debug)]
pub struct Fours<'a, T> {
    at: u64,
    /// The index of the last four. There are no more elements than 32 bits count.
    last: u32,
    of: PhantomData<(&'a AtomicU32, T)>,
}

impl<T: Element32> Fours<'_, T> {
    /// How many fours these are.
    #[inline(always)]
    #[expect(clippy::len_without_is_empty, reason = "there is one at least")]
    pub fn len(&self) -> u32 {
        self.last + 1
    }

    /// Elements `4 k` to `4 k + 3`, or the last four if there are not so many. No branch depends on which: a GPU's thread goes on until
    /// it uses what it reads, and so can have many reads on their way.
    #[inline(always)]
    pub fn nearest(&self, k: u32) -> [T; 4] {
        let at = self.at as usize + 16 * k.min(self.last) as usize;
        // SAFETY: four of the elements that `view` checked, as for `View::get`; the first lies at a multiple of 16, and so do all.
        unsafe { T::load_four(with_exposed_provenance(at)) }
    }

    /// Sets elements `4 k` to `4 k + 3`; whether there are so many. Otherwise nothing is set.
    #[inline(always)]
    pub fn set(&self, k: u32, values: [T; 4]) -> bool {
        let is_inside = k <= self.last;
        if is_inside {
            let at = self.at as usize + 16 * k as usize;
            // SAFETY: as for `nearest`.
            unsafe { T::store_four(with_exposed_provenance_mut(at), values) };
        }
        is_inside
    }
}

/// Four elements of 4 bytes at a multiple of 16 bytes, which a GPU's thread reads at once.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Four<T>(pub [T; 4]);

// SAFETY: four elements, of which zero is a value.
unsafe impl<T: Element32> Zeroable for Four<T> {}
// SAFETY: four plain elements of 4 bytes each at a multiple of 16: there is no padding, and any bytes are a value.
unsafe impl<T: Element32> Pod for Four<T> {}

/// Those elements by fours, or `None` if element 0 does not lie at a multiple of 16 bytes: a buffer begins at one. Elements behind the last whole
/// four are left out.
#[inline(always)]
pub fn fours<T: Element32>(elements: &[T]) -> Option<&[Four<T>]> {
    let whole = elements.get(..elements.len() / 4 * 4)?;
    bytemuck::try_cast_slice(whole).ok()
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
            rig.mark(0);
            rig
        }

        fn entry(&self) -> &BufferEntry {
            &self.table[ENTRY as usize]
        }

        fn address(&self) -> u64 {
            self.memory.0[WORDS..].as_ptr().expose_provenance() as u64
        }

        /// Lets the addresses that were told name the memory again: a box that was moved has it for itself until then.
        fn expose(&self) {
            _ = (self.address(), (&raw const *self.control).expose_provenance());
        }

        fn view<T: Element>(&mut self, reference: &BufferRef<T>) -> Option<View<'_, T>> {
            self.expose();
            let block = ThreadBlock::new((0, 1), &mut self.block, HOOKS);
            view(block, true, reference)
        }

        fn read_view<T: Element>(
            &mut self,
            is_declared: bool,
            reference: &BufferRef<T>,
        ) -> Option<ReadView<'_, T>> {
            self.expose();
            let block = ThreadBlock::new((0, 1), &mut self.block, HOOKS);
            read_view(block, is_declared, reference)
        }

        fn adder(&mut self, is_declared: bool, reference: BufferRef<u64>) -> Option<Adder<'_>> {
            self.expose();
            let block = ThreadBlock::new((0, 1), &mut self.block, HOOKS);
            adder(block, is_declared, &reference)
        }

        fn frozen<T: Element>(&mut self, reference: &BufferRef<T>) -> Option<&[T]> {
            self.expose();
            let block = ThreadBlock::new((0, 1), &mut self.block, HOOKS);
            frozen(block, true, reference)
        }

        /// Names the memory by marks beside the generation.
        fn mark(&self, mark: u64) {
            self.entry().set((self.address(), 4 * WORDS as u64), u64::from(GENERATION) | mark);
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
            assert!(view.get(i).is_none() && view.get4(i).is_none(), "{i}");
            assert!(!view.set(i, 7) && !view.set4(i, [7; 4]), "{i}");
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
    fn no_answer_waits_for_what_is_only_read() {
        let mut rig = Rig::new();
        let part = whole::<u32>().slice(0..6).unwrap();
        let read = rig.read_view(true, &part).unwrap();
        assert_eq!((read.len(), read.is_empty()), (6, false));
        assert_eq!((read.get(5), read.get(6)), (Some(13), None));
        assert_eq!((read.get4(0), read.get4(4)), (Some([8, 9, 10, 11]), None));
        assert!(read.iter().eq(8..14));
        assert!(rig.read_view(true, &part.slice(2..2).unwrap()).unwrap().is_empty());
        assert!(rig.read_view(false, &part).is_none(), "not declared");
        let given_back = BufferRef::<u32>::from_parts(ENTRY, GENERATION - 1, 0, 1);
        assert!(rig.read_view(true, &given_back).is_none());
        rig.mark(FROZEN);
        assert!(rig.read_view(true, &part).is_none() && rig.frozen(&part).is_some());
        assert!(!rig.block.signals.uses_payload.get());
    }

    #[test]
    fn a_frozen_buffer_is_a_slice_and_has_no_view() {
        let mut rig = Rig::new();
        assert_eq!(rig.frozen(&whole::<u32>()), None, "it is not frozen");
        rig.mark(FROZEN);
        assert!(rig.is_refused(whole()) && rig.adder(true, whole()).is_none());
        let part = whole::<u32>().slice(2..6).unwrap();
        assert_eq!(rig.frozen(&part), Some(&[10, 11, 12, 13][..]));
        assert_eq!(rig.frozen(&part.slice(4..4).unwrap()), Some(&[][..]));
        let wide = rig.frozen(&whole::<u64>()).unwrap();
        assert_eq!((wide.len(), wide[1]), (4, bytemuck::cast([10u32, 11])));
        let longer = BufferRef::<u32>::from_parts(ENTRY, GENERATION, 1, WORDS as u32);
        assert_eq!(rig.frozen(&longer), None);
        for other in [FROZEN << 1, FROZEN | FROZEN << 1, u64::MAX << 32] {
            rig.mark(other);
            assert!(rig.frozen(&part).is_none() && rig.is_refused(part), "{other:x}");
        }
        // One atom of the entry, and not yet the other.
        rig.mark(FROZEN);
        rig.entry().extent.store([4 * WORDS as u64, GENERATION.into()]);
        assert!(rig.frozen(&part).is_none() && rig.is_refused(part));
    }

    #[test]
    fn fours_of_a_slice_are_whole_and_aligned() {
        let mut rig = Rig::new();
        rig.mark(FROZEN);
        let of = |range| whole::<u32>().slice(range).unwrap();
        let all = [Four([8, 9, 10, 11]), Four([12, 13, 14, 15])];
        assert_eq!(rig.frozen(&of(0..8)).and_then(fours), Some(&all[..]));
        assert_eq!(rig.frozen(&of(0..7)).and_then(fours), Some(&all[..1]));
        assert_eq!(rig.frozen(&of(4..7)).and_then(fours), Some(&[][..]));
        assert_eq!(rig.frozen(&of(1..8)).and_then(fours), None, "not at a multiple of 16 bytes");
    }

    #[test]
    fn additions_of_several_threads_are_all_there() {
        let mut rig = Rig::new();
        let view = rig.view(&whole::<u64>()).unwrap();
        assert!(view.set(1, u64::MAX) && view.set(2, 5) && view.set(0, 0));
        let add = || {
            for k in 0..1000 {
                assert!(view.add(1, k << 30) && view.add(0, 1));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(add);
            add();
        });
        assert_eq!(view.get(1), Some(((999 * 1000) << 30) - 1));
        assert_eq!((view.get(0), view.get(2)), (Some(2000), Some(5)));
        assert!([4, 5, 1 << 61, usize::MAX].into_iter().all(|i| !view.add(i, 1)));
        rig.block.signals.uses_payload.set(false);
        let adder = rig.adder(true, whole()).unwrap();
        assert_eq!((adder.len(), adder.is_empty()), (4, false));
        assert!(adder.add(2, 6) && !adder.add(4, 1));
        assert_eq!(rig.view(&whole::<u64>()).unwrap().get(2), Some(11));
        assert!(rig.block.signals.uses_payload.get(), "answers wait for what was added");
        assert!(rig.adder(false, whole()).is_none());
        assert!(rig.adder(true, BufferRef::from_parts(ENTRY, GENERATION - 1, 0, 1)).is_none());
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
    fn four_are_set_at_once_where_they_are_aligned() {
        let mut rig = Rig::new();
        let view = rig.view(&whole::<u32>()).unwrap();
        assert!([1, 2, 3, 5, 6, 7, 8].into_iter().all(|i| !view.set4(i, [7; 4])));
        assert!(view.set4(4, [100, 101, 102, 103]));
        assert!(view.iter().eq([8, 9, 10, 11, 100, 101, 102, 103]));
        let view = rig.view(&whole::<u32>().slice(4..7).unwrap()).unwrap();
        assert!(!view.set4(0, [7; 4]), "three are no four");
        let view = rig.view(&whole::<u32>().slice(1..8).unwrap()).unwrap();
        assert!(!view.set4(0, [7; 4]), "not at a multiple of 16 bytes");
        let found = rig.memory.0.each_ref().map(|word| word.load(Relaxed));
        let is_set = |k: &usize| (WORDS + 4..2 * WORDS).contains(k);
        assert!((0..3 * WORDS).all(|k| found[k] == k as u32 || is_set(&k)), "{found:?}");
    }

    #[test]
    fn fours_are_those_of_the_view() {
        let mut rig = Rig::new();
        let fours = rig.view(&whole::<u32>()).unwrap().fours().unwrap();
        assert_eq!(fours.nearest(0), [8, 9, 10, 11]);
        assert!([1, 2, u32::MAX].into_iter().all(|k| fours.nearest(k) == [12, 13, 14, 15]));
        assert!(fours.set(1, [100, 101, 102, 103]) && !fours.set(2, [7; 4]));
        assert!(!fours.set(u32::MAX, [7; 4]));
        let view = rig.view(&whole::<u32>()).unwrap();
        assert!(view.iter().eq([8, 9, 10, 11, 100, 101, 102, 103]));
        let of = |range| whole::<u32>().slice(range).unwrap();
        assert!(rig.view(&of(4..7)).unwrap().fours().is_none(), "three are no four");
        assert!(rig.view(&of(1..8)).unwrap().fours().is_none(), "not at a multiple of 16 bytes");
        let fours = rig.view(&of(0..7)).unwrap().fours().unwrap();
        assert!(fours.nearest(1) == [8, 9, 10, 11] && !fours.set(1, [7; 4]));
        let found = rig.memory.0.each_ref().map(|word| word.load(Relaxed));
        let is_set = |k: &usize| (WORDS + 4..2 * WORDS).contains(k);
        assert!((0..3 * WORDS).all(|k| found[k] == k as u32 || is_set(&k)), "{found:?}");
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
        rig.entry().set((at, 4 * WORDS as u64 - 8), GENERATION.into());
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
