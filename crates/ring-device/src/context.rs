//! What a handler sees besides its request.

use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads};
use crate::buffers::{self, Adder, ReadView, View};
use crate::memory::scratch::Room;
use crate::number::Number;
use crate::reduce;
use crate::shared::{self, Shared, SharedSlice};
use crate::thread_block::ThreadBlock;
use bytemuck::Pod;
use core::marker::PhantomData;
use core::ptr::with_exposed_provenance;
use ring_shared::atomics::{Atom, AtomicU32, MemoryScope, Ordering, System};
use ring_shared::{BufferRef, Element, Message};

/// Four plain bytes, `u32`, `i32` or `f32`: what threads of a block may share without tearing.
pub trait Word: Pod + sealed::Sealed {}

mod sealed {
    pub trait Sealed {}
}

macro_rules! words {
    ($($t:ty)*) => {$(
        impl Word for $t {}
        impl sealed::Sealed for $t {}
    )*};
}
words!(u32 i32 f32);

/// Seen by a [`ThreadHandler`](crate::ThreadHandler).
#[derive(Debug)]
pub struct ThreadContext<'a> {
    block: ThreadBlock<'a>,
    payload: Payload<'a>,
    shared: Room,
}

impl<'a> ThreadContext<'a> {
    #[inline(always)]
    pub(crate) fn new(block: ThreadBlock<'a>, payload: Payload<'a>, shared: Room) -> Self {
        ThreadContext { block, payload, shared }
    }

    #[inline(always)]
    pub(crate) fn block(&self) -> ThreadBlock<'a> {
        self.block
    }

    /// Index of the channel whose message this is, from 0.
    #[inline(always)]
    pub fn channel(&self) -> usize {
        self.block.channel() as usize
    }

    /// Counts this message as refused in the channel's telemetry. Call it once a message.
    #[inline(always)]
    pub fn refuse(&self) {
        self.block.add(&self.block.memory().telemetry.refused, 1);
    }

    /// The elements of the block-shared memory that the kernel declares under that name. By a name of another kernel's there is what lies at
    /// that place of this one's, or nothing.
    #[inline(always)]
    pub fn shared<K, T: Element>(&self, name: Shared<K, T>) -> SharedSlice<'a, T> {
        shared::slice(self.shared, name)
    }

    /// The payload arena.
    #[inline(always)]
    pub fn payload(&self) -> Payload<'a> {
        self.payload
    }

    /// Nanoseconds of the device's clock, which all of its kernels share and which begins anywhere: two of its times are as far apart as
    /// they say. Its steps are those of the device, 32 ns on an H200, and on others up to a microsecond.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.block.now()
    }

    /// The elements of a buffer that a reference names. `None` if the buffer was given back, is not of this kernel's runtime
    /// or shorter than the reference says, if its memory is not aligned for `T`, or if the kernel is not declared with
    /// `uses_payload: true` ([`Kernel::USES_PAYLOAD`](crate::Kernel::USES_PAYLOAD)).
    #[inline(always)]
    pub fn view<T: Element>(&self, reference: &BufferRef<T>) -> Option<View<'a, T>> {
        buffers::view(self.block, self.payload.is_declared, reference)
    }

    /// The same, to read only: the answer does not wait until what the handler has written can be seen, if it has written nothing else.
    #[inline(always)]
    pub fn read_view<T: Element>(&self, reference: &BufferRef<T>) -> Option<ReadView<'a, T>> {
        buffers::read_view(self.block, self.payload.is_declared, reference)
    }

    /// The elements of a frozen buffer that a reference names: a slice as any other, since nobody changes them any more. `None` where a
    /// [`view`](Self::view) would be, and if the buffer is not frozen. Of a frozen one there is no view.
    #[inline(always)]
    pub fn frozen<T: Element>(&self, reference: &BufferRef<T>) -> Option<&'a [T]> {
        buffers::frozen(self.block, self.payload.is_declared, reference)
    }

    /// The elements of a buffer that a reference names, to add to them only: as [`view`](Self::view), without its fence.
    #[inline(always)]
    pub fn adder(&self, reference: &BufferRef<u64>) -> Option<Adder<'a>> {
        buffers::adder(self.block, self.payload.is_declared, reference)
    }
}

/// Seen by a [`WarpHandler`](crate::WarpHandler).
///
/// What the threads do together all of them must call, at one place of the handler and in the same order: `sync`, sums and scans, `shuffle`,
/// `all`, `any`, `ballot`. On a GPU a warp some of whose threads do not come waits for ever, so that commands end with a timeout, or
/// goes on with what is half written.
#[derive(Debug)]
pub struct WarpContext<'a> {
    block: ThreadBlock<'a>,
    payload: Payload<'a>,
    shared: Room,
}

impl<'a> WarpContext<'a> {
    #[inline(always)]
    pub(crate) fn new(block: ThreadBlock<'a>, payload: Payload<'a>, shared: Room) -> Self {
        WarpContext { block, payload, shared }
    }

    #[inline(always)]
    pub(crate) fn block(&self) -> ThreadBlock<'a> {
        self.block
    }

    /// Index of the channel whose message this is, from 0.
    #[inline(always)]
    pub fn channel(&self) -> usize {
        self.block.channel() as usize
    }

    /// Index of the calling thread in the warp, from 0: its lane.
    #[inline(always)]
    pub fn thread(&self) -> usize {
        self.block.lane() as usize
    }

    /// Threads in the warp: 32; 1 on the CPU device.
    #[inline(always)]
    pub fn threads(&self) -> usize {
        Threads::WARP as usize
    }

    /// Counts this message as refused in the channel's telemetry. Call it once a message: by one of
    /// the warp's threads.
    #[inline(always)]
    pub fn refuse(&self) {
        self.block.add(&self.block.memory().telemetry.refused, 1);
    }

    /// Waits until all threads of the warp are here; what they wrote before is seen after.
    #[inline(always)]
    pub fn sync(&self) {
        self.block.warp_sync();
    }

    /// The sum of what each thread of the warp brings, for all of them; integers wrap. Of floating-point numbers the order in which they are added is
    /// fixed by the number of threads.
    #[inline(always)]
    pub fn sum<T: Number>(&self, value: T) -> T {
        reduce::warp(*self.block, value, &T::plus)
    }

    /// The least of what the threads of the warp bring, for all of them; a NaN counts only where all bring it.
    #[inline(always)]
    pub fn min<T: Number>(&self, value: T) -> T {
        reduce::warp(*self.block, value, &T::lesser)
    }

    /// The greatest of what the threads of the warp bring, likewise.
    #[inline(always)]
    pub fn max<T: Number>(&self, value: T) -> T {
        reduce::warp(*self.block, value, &T::greater)
    }

    /// For each thread the sum of what the threads up to it bring, itself included; integers wrap.
    #[inline(always)]
    pub fn inclusive_sum<T: Number>(&self, value: T) -> T {
        reduce::warp_scan::<T, true>(*self.block, value)
    }

    /// For each thread the sum of what the threads before it bring, which is zero for the first; integers wrap.
    #[inline(always)]
    pub fn exclusive_sum<T: Number>(&self, value: T) -> T {
        reduce::warp_scan::<T, false>(*self.block, value)
    }

    /// The number that thread `thread` of the warp brings, counted on around the warp: `thread() + 1` names the next one. On the CPU
    /// device a warp has one thread, which gets its own.
    #[inline(always)]
    pub fn shuffle<T: Number>(&self, value: T, thread: usize) -> T {
        reduce::shuffle(*self.block, value, thread as u32)
    }

    /// Whether the condition holds for all threads of the warp.
    #[inline(always)]
    pub fn all(&self, holds: bool) -> bool {
        self.block.all(holds)
    }

    /// Whether the condition holds for any thread of the warp.
    #[inline(always)]
    pub fn any(&self, holds: bool) -> bool {
        !self.block.all(!holds)
    }

    /// A bit for each thread of the warp for which the condition holds, the first thread's the lowest.
    #[inline(always)]
    pub fn ballot(&self, holds: bool) -> u32 {
        self.block.ballot(holds)
    }

    /// The elements of the block-shared memory that the kernel declares under that name. By a name of another kernel's there is what lies at
    /// that place of this one's, or nothing.
    #[inline(always)]
    pub fn shared<K, T: Element>(&self, name: Shared<K, T>) -> SharedSlice<'a, T> {
        shared::slice(self.shared, name)
    }

    /// The payload arena.
    #[inline(always)]
    pub fn payload(&self) -> Payload<'a> {
        self.payload
    }

    /// Nanoseconds of the device's clock, which all of its kernels share and which begins anywhere: two of its times are as far apart as
    /// they say. Its steps are those of the device, 32 ns on an H200, and on others up to a microsecond.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.block.now()
    }

    /// The elements of a buffer that a reference names. `None` if the buffer was given back, is not of this kernel's runtime
    /// or shorter than the reference says, if its memory is not aligned for `T`, or if the kernel is not declared with
    /// `uses_payload: true` ([`Kernel::USES_PAYLOAD`](crate::Kernel::USES_PAYLOAD)).
    #[inline(always)]
    pub fn view<T: Element>(&self, reference: &BufferRef<T>) -> Option<View<'a, T>> {
        buffers::view(self.block, self.payload.is_declared, reference)
    }

    /// The same, to read only: the answer does not wait until what the handler has written can be seen, if it has written nothing else.
    #[inline(always)]
    pub fn read_view<T: Element>(&self, reference: &BufferRef<T>) -> Option<ReadView<'a, T>> {
        buffers::read_view(self.block, self.payload.is_declared, reference)
    }

    /// The elements of a frozen buffer that a reference names: a slice as any other, since nobody changes them any more. `None` where a
    /// [`view`](Self::view) would be, and if the buffer is not frozen. Of a frozen one there is no view.
    #[inline(always)]
    pub fn frozen<T: Element>(&self, reference: &BufferRef<T>) -> Option<&'a [T]> {
        buffers::frozen(self.block, self.payload.is_declared, reference)
    }

    /// The elements of a buffer that a reference names, to add to them only: as [`view`](Self::view), without its fence.
    #[inline(always)]
    pub fn adder(&self, reference: &BufferRef<u64>) -> Option<Adder<'a>> {
        buffers::adder(self.block, self.payload.is_declared, reference)
    }
}

/// Seen by a [`BlockHandler`](crate::BlockHandler).
///
/// What the threads do together all of them must call, at one place of the handler and in the same order: `sync`, sums and scans. On a
/// GPU a block some of whose threads do not come waits for ever, so that commands end with a timeout, or goes on with what is half written.
#[derive(Debug)]
pub struct BlockContext<'a> {
    block: ThreadBlock<'a>,
    payload: Payload<'a>,
    shared: Room,
}

impl<'a> BlockContext<'a> {
    #[inline(always)]
    pub(crate) fn new(block: ThreadBlock<'a>, payload: Payload<'a>, shared: Room) -> Self {
        BlockContext { block, payload, shared }
    }

    #[inline(always)]
    pub(crate) fn block(&self) -> ThreadBlock<'a> {
        self.block
    }

    /// Index of the channel whose message this is, from 0.
    #[inline(always)]
    pub fn channel(&self) -> usize {
        self.block.channel() as usize
    }

    /// Index of the calling thread in the block, from 0.
    #[inline(always)]
    pub fn thread(&self) -> usize {
        self.block.thread() as usize
    }

    /// Threads in the block; 1 on the CPU device.
    #[inline(always)]
    pub fn threads(&self) -> usize {
        self.block.threads() as usize
    }

    /// Index of the calling thread's warp in the block, from 0.
    #[inline(always)]
    pub fn warp(&self) -> usize {
        self.block.warp() as usize
    }

    /// Index of the calling thread in its warp, from 0.
    #[inline(always)]
    pub fn lane(&self) -> usize {
        self.block.lane() as usize
    }

    /// Threads in a warp: 32; 1 on the CPU device.
    #[inline(always)]
    pub fn lanes(&self) -> usize {
        Threads::WARP as usize
    }

    /// Counts this message as refused in the channel's telemetry. Call it once a message: by one of
    /// the block's threads.
    #[inline(always)]
    pub fn refuse(&self) {
        self.block.add(&self.block.memory().telemetry.refused, 1);
    }

    /// Waits until all threads of the block are here; what they wrote before is seen after.
    #[inline(always)]
    pub fn sync(&self) {
        self.block.sync();
    }

    /// The sum of what each thread of the calling warp brings, for all of them; integers wrap. All of its threads must call it together.
    #[inline(always)]
    pub fn sum_warp<T: Number>(&self, value: T) -> T {
        reduce::warp(*self.block, value, &T::plus)
    }

    /// The sum of what each thread of the block brings, for all of them; integers wrap. Of floating-point numbers the order in which they are added is
    /// fixed by the number of threads. A barrier, as
    /// [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn sum<T: Number>(&self, value: T) -> T {
        reduce::block(self.block, value, T::ZERO, &T::plus)
    }

    /// The least of what the threads of the block bring, for all of them; a NaN counts only where all bring it. A barrier, as
    /// [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn min<T: Number>(&self, value: T) -> T {
        reduce::block(self.block, value, T::GREATEST, &T::lesser)
    }

    /// The greatest of what the threads of the block bring, likewise. A barrier, as
    /// [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn max<T: Number>(&self, value: T) -> T {
        reduce::block(self.block, value, T::LEAST, &T::greater)
    }

    /// For each thread the sum of what the threads up to it bring, itself included; integers wrap. A barrier, as
    /// [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn inclusive_sum<T: Number>(&self, value: T) -> T {
        reduce::block_scan::<T, true>(self.block, value)
    }

    /// For each thread the sum of what the threads before it bring, which is zero for the first; integers wrap. A barrier, as
    /// [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn exclusive_sum<T: Number>(&self, value: T) -> T {
        reduce::block_scan::<T, false>(self.block, value)
    }

    /// The elements of the block-shared memory that the kernel declares under that name. By a name of another kernel's there is what lies at
    /// that place of this one's, or nothing.
    #[inline(always)]
    pub fn shared<K, T: Element>(&self, name: Shared<K, T>) -> SharedSlice<'a, T> {
        shared::slice(self.shared, name)
    }

    /// The payload arena.
    #[inline(always)]
    pub fn payload(&self) -> Payload<'a> {
        self.payload
    }

    /// Nanoseconds of the device's clock, which all of its kernels share and which begins anywhere: two of its times are as far apart as
    /// they say. Its steps are those of the device, 32 ns on an H200, and on others up to a microsecond.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.block.now()
    }

    /// The elements of a buffer that a reference names. `None` if the buffer was given back, is not of this kernel's runtime
    /// or shorter than the reference says, if its memory is not aligned for `T`, or if the kernel is not declared with
    /// `uses_payload: true` ([`Kernel::USES_PAYLOAD`](crate::Kernel::USES_PAYLOAD)).
    #[inline(always)]
    pub fn view<T: Element>(&self, reference: &BufferRef<T>) -> Option<View<'a, T>> {
        buffers::view(self.block, self.payload.is_declared, reference)
    }

    /// The same, to read only: the answer does not wait until what the handler has written can be seen, if it has written nothing else.
    #[inline(always)]
    pub fn read_view<T: Element>(&self, reference: &BufferRef<T>) -> Option<ReadView<'a, T>> {
        buffers::read_view(self.block, self.payload.is_declared, reference)
    }

    /// The elements of a frozen buffer that a reference names: a slice as any other, since nobody changes them any more. `None` where a
    /// [`view`](Self::view) would be, and if the buffer is not frozen. Of a frozen one there is no view.
    #[inline(always)]
    pub fn frozen<T: Element>(&self, reference: &BufferRef<T>) -> Option<&'a [T]> {
        buffers::frozen(self.block, self.payload.is_declared, reference)
    }

    /// The elements of a buffer that a reference names, to add to them only: as [`view`](Self::view), without its fence.
    #[inline(always)]
    pub fn adder(&self, reference: &BufferRef<u64>) -> Option<Adder<'a>> {
        buffers::adder(self.block, self.payload.is_declared, reference)
    }
}

/// The kernel's payload arena, for what is too large for a slot: memory that the host fills and reads, a small arena's in
/// mapped memory, which a handler reads over the bus each time, a large one's on the device. A message names a part of
/// it by offset and length. It lives as long as the handler's call, not longer.
#[derive(Clone, Copy, Debug)]
pub struct Payload<'a> {
    base: u64,
    bytes: u64,
    /// The kernel declares that it uses a payload: then it may view buffers too.
    is_declared: bool,
    /// Told when a handler asks for words.
    is_used: &'a Cell<bool>,
}

impl<'a> Payload<'a> {
    /// # Safety
    /// `base..base + bytes` is 4-byte aligned memory, readable and writable for `'a`, accessed by
    /// this kernel's handlers and by the host, as words that are atomic to each other.
    #[inline(always)]
    pub(crate) unsafe fn new(
        (base, bytes): (u64, u64),
        is_declared: bool,
        is_used: &'a Cell<bool>,
    ) -> Payload<'a> {
        Payload { base, bytes, is_declared, is_used }
    }

    /// Whether the kernel declares that it uses a payload.
    #[inline(always)]
    pub(crate) fn is_declared(&self) -> bool {
        self.is_declared
    }

    /// Bytes of the arena.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// `count` words from `offset` bytes on, or `None` if they are not all in the arena or
    /// `offset` is not a multiple of 4.
    #[inline(always)]
    pub fn words<T: Word>(&self, offset: u64, count: u64) -> Option<Words<'a, T>> {
        // No word is reached but through here: an answer without it needs no fence in front of it.
        self.is_used.set(true);
        let bytes = count.checked_mul(4)?;
        let end = offset.checked_add(bytes)?;
        let inside = end <= self.bytes && offset.is_multiple_of(4);
        inside.then(|| Words { at: self.base + offset, count, of: PhantomData })
    }
}

/// A checked run of words in the payload arena.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a, T> {
    at: u64,
    count: u64,
    of: PhantomData<(&'a AtomicU32, T)>,
}

impl<T: Word> Words<'_, T> {
    #[inline(always)]
    fn cell(&self, i: usize) -> Option<&AtomicU32> {
        // SAFETY: `i` is below the count that `Payload::words` checked against the arena, which
        // `Payload::new`'s caller promised; words are only ever accessed as atomics.
        ((i as u64) < self.count)
            .then(|| unsafe { &*((self.at as usize + 4 * i) as *const AtomicU32) })
    }

    /// How many words these are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether these are no words at all.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Word `i`, or `None` past the end.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<T> {
        // Relaxed: the dispatch loop fences before the handler.
        self.cell(i).map(|cell| bytemuck::cast(cell.load(Ordering::Relaxed)))
    }

    /// Sets word `i`; whether there is one. Past the end nothing is set.
    #[inline(always)]
    pub fn set(&self, i: usize, value: T) -> bool {
        let cell = self.cell(i);
        if let Some(cell) = cell {
            cell.store(bytemuck::cast(value), Ordering::Relaxed);
        }
        cell.is_some()
    }

    /// Words `i` to `i + 3`, read at once: across the bus four take a GPU's thread as long as one. `None` if they are not all there, or if
    /// word `i` does not lie at a multiple of 16 bytes of the arena. Where the host writes them at the same time each is the old one or
    /// the new one.
    #[inline(always)]
    pub fn get4(&self, i: usize) -> Option<[T; 4]> {
        let at = self.four(i)?;
        if cfg!(target_arch = "nvptx64") {
            // SAFETY: as for `cell`, of the four words that `four` checked, at a multiple of 16.
            let four = unsafe { &*with_exposed_provenance::<Atom>(at) };
            return Some(bytemuck::cast(System::load_whole(four)));
        }
        // A CPU knows no atomics as wide.
        let [a, b, c, d] = [0, 1, 2, 3].map(|k| self.get(i + k));
        Some([a?, b?, c?, d?])
    }

    /// Sets words `i` to `i + 3` at once, where [`get4`](Self::get4) would read them; whether it did. Otherwise nothing is set.
    #[inline(always)]
    pub fn set4(&self, i: usize, values: [T; 4]) -> bool {
        let Some(at) = self.four(i) else { return false };
        if cfg!(target_arch = "nvptx64") {
            // SAFETY: as for `get4`.
            let four = unsafe { &*with_exposed_provenance::<Atom>(at) };
            System::store_whole(four, bytemuck::cast(values));
        } else {
            values.into_iter().enumerate().for_each(|(k, value)| _ = self.set(i + k, value));
        }
        true
    }

    /// Where four words from `i` on are, if they are there and may be read at once.
    #[inline(always)]
    fn four(&self, i: usize) -> Option<usize> {
        let count = self.count as usize;
        let fits = i <= count && count - i >= 4;
        let at = self.at as usize + 4 * if fits { i } else { 0 };
        (fits && at.is_multiple_of(16)).then_some(at)
    }

    /// The words, one after the other, each read when it is asked for.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.len()).map_while(|i| self.get(i))
    }
}

/// A message that several threads make together, word by word: the response of one that they handle, or one that they
/// emit.
#[derive(Debug)]
pub struct Output<R> {
    words: *mut u8,
    of: PhantomData<R>,
}

impl<R: Message> Output<R> {
    /// # Safety
    /// `words` is an aligned slot in the block's memory, large enough for `R`, that only the threads
    /// that handle its message touch while the output lives, and they as words that are atomic to each other.
    #[inline(always)]
    pub(crate) unsafe fn new(words: *mut u8) -> Output<R> {
        Output { words, of: PhantomData }
    }

    /// Its beginning, as another message that it has room for.
    ///
    /// # Safety
    /// `R` has room for a `T` at its beginning, aligned.
    #[inline(always)]
    pub(crate) unsafe fn beginning<T: Message>(&self) -> Output<T> {
        // SAFETY: the caller's promise; the threads that touch it are the same.
        unsafe { Output::new(self.words) }
    }

    /// Sets the word at `offset + 4 * i` bytes of the message, where `offset` is that of a field
    /// (`core::mem::offset_of!`); whether there is one. Outside the message, or between words, nothing
    /// is set. So it is best a multiple of 4 bytes long: bytes behind the last whole word stay
    /// zero.
    #[inline(always)]
    pub fn set<T: Word>(&self, offset: usize, i: usize, value: T) -> bool {
        let (words, first) = (size_of::<R>() / 4, offset / 4);
        // One comparison where `offset` is known to the compiler.
        let fits = offset.is_multiple_of(4) && first < words && i < words - first;
        if fits {
            // SAFETY: inside the message by the check.
            unsafe { self.word(first + i) }.store(bytemuck::cast(value), Ordering::Relaxed);
        }
        fits
    }

    /// Sets all of it: what one of the threads does that has all of it.
    #[inline(always)]
    pub fn set_all(&self, message: R) {
        let (from, whole) = (&raw const message, size_of::<R>() / 4);
        let mut k = 0;
        while k < whole {
            // SAFETY: a whole word of the message, which is plain bytes.
            let word = unsafe { from.cast::<u32>().add(k).read_unaligned() };
            // SAFETY: the same word of the slot.
            unsafe { self.word(k) }.store(word, Ordering::Relaxed);
            k += 1;
        }
        let mut last = [0; 4];
        for (to, byte) in last.iter_mut().zip(bytemuck::bytes_of(&message).iter().skip(4 * whole)) {
            *to = *byte;
        }
        if size_of::<R>() > 4 * whole {
            // SAFETY: the word with the message's last bytes: a slot is whole words.
            unsafe { self.word(whole) }.store(u32::from_ne_bytes(last), Ordering::Relaxed);
        }
    }

    /// Zeroes it, by threads `first..` of a group of `step`, each some of its words.
    #[inline(always)]
    pub(crate) fn zero(&self, first: u32, step: u32) {
        let mut k = first as usize;
        while k < size_of::<R>().div_ceil(4) {
            // SAFETY: a word with bytes of the message.
            unsafe { self.word(k) }.store(0, Ordering::Relaxed);
            k += step as usize;
        }
    }

    /// Word `k`.
    ///
    /// # Safety
    /// It has bytes of the message.
    #[inline(always)]
    unsafe fn word(&self, k: usize) -> &AtomicU32 {
        // SAFETY: inside the slot, by the caller's promise; words of it are only accessed as atomics while
        // the output lives, so threads that set the same word do not race.
        unsafe { &*self.words.add(4 * k).cast::<AtomicU32>() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three words and two bytes that are none.
    type Response = [u16; 7];

    #[test]
    fn four_words_are_reached_at_multiples_of_16_bytes_inside_and_nowhere_else() {
        #[repr(align(16))]
        struct Arena([u32; 16]);
        for (first, count) in (0..8).flat_map(|first| (0..8).map(move |count| (first, count))) {
            let mut arena = Arena(core::array::from_fn(|k| k as u32));
            let at = arena.0.as_mut_ptr().expose_provenance() as u64;
            // SAFETY: a word, of which zero is a value.
            let is_used: Cell<bool> = unsafe { core::mem::zeroed() };
            // SAFETY: aligned memory of this thread alone.
            let payload = unsafe { Payload::new((at, 64), true, &is_used) };
            let words = payload.words::<u32>(4 * first as u64, count as u64).unwrap();
            for i in (0..20).chain([usize::MAX, usize::MAX - 3, usize::MAX / 4]) {
                let fits = i < count && count - i >= 4 && (first + i) % 4 == 0;
                let four = || core::array::from_fn(|k| (first + i + k) as u32);
                assert_eq!(words.get4(i), fits.then(four), "{first}, {count}, {i}");
                assert_eq!(words.set4(i, [100; 4]), fits);
                let set = || (0..16).map(|k| payload.words::<u32>(4 * k, 1).unwrap().get(0));
                let all = set().filter(|word| *word == Some(100)).count();
                assert_eq!(
                    (all, words.get4(i)),
                    if fits { (4, Some([100; 4])) } else { (0, None) }
                );
                if fits {
                    words.set4(i, four());
                }
            }
        }
    }

    #[test]
    fn all_of_a_message_is_set_and_nothing_behind_it() {
        let (mut slot, message) = ([u32::MAX; 6], [1u16, 2, 3, 4, 5, 6, 7]);
        // SAFETY: room for more than a message, of this thread alone.
        unsafe { Output::<Response>::new(slot.as_mut_ptr().cast()) }.set_all(message);
        let halves: &[u16] = bytemuck::cast_slice(&slot);
        assert_eq!((&halves[..7], &halves[8..]), (&message[..], &[u16::MAX; 4][..]));
    }

    #[test]
    fn only_whole_words_of_the_response_are_set() {
        let far = [usize::MAX, usize::MAX / 4, usize::MAX / 4 + 1, usize::MAX - 3];
        let numbers = || (0..20).chain(far);
        for (offset, i) in numbers().flat_map(|offset| numbers().map(move |i| (offset, i))) {
            let mut slot = [0u32; 6];
            // SAFETY: room for more than a response, of this thread alone.
            let output = unsafe { Output::<Response>::new(slot.as_mut_ptr().cast()) };
            let place = (offset / 4).checked_add(i).filter(|k| offset % 4 == 0 && *k < 3);
            assert_eq!(output.set(offset, i, 7u32), place.is_some(), "{offset}, {i}");
            let set = slot.iter().position(|word| *word != 0);
            assert_eq!((set, slot.iter().sum()), (place, 7 * place.iter().count() as u32));
        }
    }
}
