//! Block-shared memory that a kernel declares for its handlers.

use crate::block::{Cooperate, Threads};
use crate::memory::scratch::{MAX_SHARED_BYTES, Room};
use crate::thread_block::ThreadBlock;
use core::fmt;
use core::marker::PhantomData;
use ring_shared::{Element, Element32};

/// Names elements of the block-shared memory that kernel `K` declares: a constant of the kernel's type, with the name that they were given
/// in [`ring_kernel!`](crate::ring_kernel). A context's `shared` gives them.
pub struct Shared<K, T> {
    /// Of the first one, in bytes, a multiple of 16.
    at: u32,
    count: u32,
    of: PhantomData<fn() -> (K, T)>,
}

impl<K, T: Element> Shared<K, T> {
    /// `count` elements, from `at` bytes on.
    #[doc(hidden)]
    pub const fn new(at: usize, count: usize) -> Self {
        assert!(
            count <= MAX_SHARED_BYTES / size_of::<T>() && at <= MAX_SHARED_BYTES,
            "`shared` takes more than MAX_SHARED_BYTES, 187,392 bytes, which is what a GPU's block can have beside its messages"
        );
        Shared { at: at as u32, count: count as u32, of: PhantomData }
    }

    /// Where what is declared behind them begins.
    #[doc(hidden)]
    pub const fn end(&self) -> usize {
        (self.at as usize + size_of::<T>() * self.count as usize).next_multiple_of(16)
    }

    /// How many elements these are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether these are no elements at all.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl<K, T> Clone for Shared<K, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, T> Copy for Shared<K, T> {}

impl<K, T> fmt::Debug for Shared<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("at", &self.at).field("count", &self.count).finish()
    }
}

/// Elements of the memory that the threads of a block share, and nobody else: a GPU's block-shared memory. Each block has its own. It is
/// zero when a launch of the kernel begins, and what handlers leave there the handlers of later messages find, until that launch
/// ends: a kernel that is not persistent is launched again and again, and one that is when it was taken off the device.
///
/// Each element is read and written by one access. What other threads have written is seen behind a `sync` of the context. Of an element that two
/// threads write, or that one writes while another one reads it, either value may be found.
#[derive(Clone, Copy, Debug)]
pub struct SharedSlice<'a, T> {
    /// In the window of shared memory.
    at: *mut T,
    count: u32,
    of: PhantomData<&'a T>,
}

/// The elements that the name says, or none if they are not all in the block's `room`.
#[inline(always)]
pub(crate) fn slice<'a, K, T: Element>(room: Room, name: Shared<K, T>) -> SharedSlice<'a, T> {
    let at = name.at as usize;
    let is_there = at <= room.bytes && name.count as usize <= (room.bytes - at) / size_of::<T>();
    let count = if is_there { name.count } else { 0 };
    let at = Threads::in_shared_window(room.at.wrapping_add(at)).cast();
    SharedSlice { at, count, of: PhantomData }
}

/// All threads of a block, before its first message: makes its `room` zero. A barrier of the block must follow.
#[inline(always)]
pub(crate) fn clear(block: ThreadBlock<'_>, room: Room) {
    let all = slice(room, Shared::<(), u32>::new(0, room.bytes / 4));
    let mut i = 4 * block.thread() as usize;
    while all.set4(i, [0; 4]) {
        i += 4 * block.threads() as usize;
    }
}

impl<'a, T: Element> SharedSlice<'a, T> {
    /// Elements `i` to `i + N - 1`, or `None` if they are not all there or if `i` is not a multiple of 4. Where the compiler knows which of
    /// them is read, as in a loop of constant length, that costs no check any more.
    #[inline(always)]
    pub fn array<const N: usize>(&self, i: usize) -> Option<SharedArray<'a, T, N>> {
        let is_inside = i <= self.len() && self.len() - i >= N && i.is_multiple_of(4);
        is_inside.then(|| SharedArray { at: self.at.wrapping_add(i), of: PhantomData })
    }
}

impl<T: Element> SharedSlice<'_, T> {
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

    /// Where element `i` is, if there are `n` from there on.
    #[inline(always)]
    fn place(&self, i: usize, n: usize) -> Option<*mut T> {
        let is_inside = i < self.len() && self.len() - i >= n;
        is_inside.then(|| self.at.wrapping_add(i))
    }

    /// Element `i`, or `None` past the end.
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<T> {
        // SAFETY: element `i` of those that `slice` found in the block's memory, aligned, and of plain bytes; on a CPU only this thread
        // has that memory.
        Some(unsafe { Threads::load_shared(self.place(i, 1)?) })
    }

    /// Sets element `i`; whether there is one. Past the end nothing is set.
    #[inline(always)]
    pub fn set(&self, i: usize, value: T) -> bool {
        let Some(at) = self.place(i, 1) else { return false };
        // SAFETY: as for `get`.
        unsafe { Threads::store_shared(at, value) };
        true
    }
}

impl<T: Element32> SharedSlice<'_, T> {
    /// Elements `i` to `i + 3`, read at once. `None` if they are not all there, or if `i` is not a multiple of 4.
    #[inline(always)]
    pub fn get4(&self, i: usize) -> Option<[T; 4]> {
        let at = self.place(i, 4)?;
        // SAFETY: as for `get`, of four; each slice begins at a multiple of 16 bytes.
        i.is_multiple_of(4).then(|| unsafe { Threads::load_four_shared(at) })
    }

    /// Sets elements `i` to `i + 3` at once, where [`get4`](Self::get4) would read them; whether it did. Otherwise nothing is set.
    #[inline(always)]
    pub fn set4(&self, i: usize, values: [T; 4]) -> bool {
        let Some(at) = self.place(i, 4) else { return false };
        let fits = i.is_multiple_of(4);
        if fits {
            // SAFETY: as for `get4`.
            unsafe { Threads::store_four_shared(at, values) };
        }
        fits
    }
}

/// `N` elements side by side of a [`SharedSlice`], the first of which has an index that is a multiple of 4: [`array`](SharedSlice::array) gives it.
#[derive(Clone, Copy, Debug)]
pub struct SharedArray<'a, T, const N: usize> {
    at: *mut T,
    of: PhantomData<&'a T>,
}

impl<T: Element, const N: usize> SharedArray<'_, T, N> {
    /// Element `k` of these, or `None` past the end.
    #[inline(always)]
    pub fn get(&self, k: usize) -> Option<T> {
        // SAFETY: as for `SharedSlice::get`: `array` has checked that there are N.
        (k < N).then(|| unsafe { Threads::load_shared(self.at.wrapping_add(k)) })
    }
}

impl<T: Element32, const N: usize> SharedArray<'_, T, N> {
    /// Elements `k` to `k + 3` of these, read at once. `None` if they are not all there, or if `k` is not a multiple of 4.
    #[inline(always)]
    pub fn get4(&self, k: usize) -> Option<[T; 4]> {
        let is_inside = k < N && N - k >= 4 && k.is_multiple_of(4);
        // SAFETY: as for `get`, of four; the first of all lies at a multiple of 16 bytes.
        is_inside.then(|| unsafe { Threads::load_four_shared(self.at.wrapping_add(k)) })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec;

    struct K;

    #[test]
    fn elements_are_reached_inside_the_room_and_nothing_else() {
        let mut memory = vec![[u64::MAX; 2]; 4];
        let room = Room { at: memory.as_mut_ptr().cast(), bytes: 48 };
        let words = slice(room, Shared::<K, u32>::new(16, 7));
        assert_eq!((words.len(), words.is_empty()), (7, false));
        for i in 0..7 {
            assert!(words.set(i, i as u32));
        }
        assert_eq!((words.get(6), words.get(7), words.get(usize::MAX)), (Some(6), None, None));
        assert!(!words.set(7, 1) && !words.set(usize::MAX, 1));
        assert!(words.set4(0, [9, 8, 7, 6]));
        assert_eq!((words.get4(0), words.get(4)), (Some([9, 8, 7, 6]), Some(4)));
        // Not at a multiple of 4, and not all there.
        assert_eq!((words.get4(1), words.get4(4), words.get4(usize::MAX - 3)), (None, None, None));
        assert!(!words.set4(2, [0; 4]) && !words.set4(4, [0; 4]) && !words.set4(8, [0; 4]));
        let array = words.array::<3>(4).unwrap();
        assert_eq!([array.get(0), array.get(2), array.get(3)], [Some(4), Some(6), None]);
        assert_eq!((array.get(usize::MAX), array.get4(0)), (None, None));
        assert_eq!(words.array::<7>(0).unwrap().get4(0), Some([9, 8, 7, 6]));
        assert_eq!(words.array::<7>(0).unwrap().get4(4), None);
        assert_eq!(words.array::<7>(0).unwrap().get4(1), None);
        assert!(words.array::<0>(4).unwrap().get(0).is_none());
        assert!(words.array::<4>(4).is_none() && words.array::<8>(0).is_none());
        assert!(words.array::<1>(3).is_none() && words.array::<0>(8).is_none());
        assert!(words.array::<1>(usize::MAX - 3).is_none());
        // The same memory by another name, as other elements.
        let wide = slice(room, Shared::<K, u64>::new(0, 6));
        let of_two: u64 = bytemuck::cast([9u32, 8]);
        assert_eq!((wide.len(), wide.get(1), wide.get(2)), (6, Some(u64::MAX), Some(of_two)));
        // Names of more than there is.
        for name in [Shared::<K, u32>::new(16, 9), Shared::new(48, 1), Shared::new(4096, 1)] {
            let none = slice(room, name);
            assert!(none.is_empty() && none.get(0).is_none() && !none.set(0, 1));
        }
        assert_eq!(memory[3], [u64::MAX; 2]);
        assert_eq!(memory[2][1], u64::from_ne_bytes(bytemuck::cast([6u32, u32::MAX])));
    }
}
