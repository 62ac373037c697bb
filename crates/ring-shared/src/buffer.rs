//! References to buffers: typed device memory that kernels and the host share.

use crate::atomics::element;
use bytemuck::{Pod, Zeroable};
use core::fmt;
use core::marker::PhantomData;
use core::ops::Range;

/// What a buffer is made of: `u32`, `i32`, `f32`, `u64`, `i64` or `f64`. Threads of a GPU read and write each by one
/// access. On the CPU device an element of 8 bytes takes two: threads that read and write the same one at once may
/// find halves of two values there.
pub trait Element: Pod + sealed::Sealed {
    /// Reads one, relaxed.
    ///
    /// # Safety
    /// `at` is an aligned element of a buffer, in device memory.
    #[doc(hidden)]
    unsafe fn load(at: *const Self) -> Self;

    /// Writes one, relaxed.
    ///
    /// # Safety
    /// As for [`load`](Self::load).
    #[doc(hidden)]
    unsafe fn store(at: *mut Self, value: Self);
}

/// An [`Element`] of 4 bytes, of which four side by side are read or written at once.
pub trait Element32: Element {
    /// Reads four.
    ///
    /// # Safety
    /// `at` is four elements of a buffer, at a multiple of 16 bytes, in device memory.
    #[doc(hidden)]
    unsafe fn load_four(at: *const Self) -> [Self; 4];

    /// Writes four.
    ///
    /// # Safety
    /// As for [`load_four`](Self::load_four).
    #[doc(hidden)]
    unsafe fn store_four(at: *mut Self, values: [Self; 4]);
}

/// An [`Element`] of 4 bytes to which several threads may add at once: `u32`, `i32` or `f32`.
pub trait ElementAdd: Element32 {
    /// Adds, for all threads of the device; what was there before. Integers wrap.
    ///
    /// # Safety
    /// As for [`Element::store`].
    #[doc(hidden)]
    unsafe fn fetch_add(at: *mut Self, n: Self) -> Self;
}

/// An [`Element`] of 4 bytes that several threads may compare and change at once: `u32` or `i32`.
pub trait ElementAtomic: ElementAdd + PartialEq {
    /// Leaves the greater one, for all threads of the device; what was there before.
    ///
    /// # Safety
    /// As for [`Element::store`].
    #[doc(hidden)]
    unsafe fn fetch_max(at: *mut Self, n: Self) -> Self;

    /// Leaves the lesser one, likewise.
    ///
    /// # Safety
    /// As for [`Element::store`].
    #[doc(hidden)]
    unsafe fn fetch_min(at: *mut Self, n: Self) -> Self;

    /// Writes `new` where `old` is, likewise.
    ///
    /// # Safety
    /// As for [`Element::store`].
    #[doc(hidden)]
    unsafe fn compare_exchange(at: *mut Self, old: Self, new: Self) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($bits:ty, $load:ident, $store:ident: $($t:ty)*;)*) => {$($(
        impl sealed::Sealed for $t {}

        impl Element for $t {
            #[inline(always)]
            unsafe fn load(at: *const $t) -> $t {
                // SAFETY: the caller's promise; elements of buffers are accessed by this file only.
                bytemuck::cast::<$bits, $t>(unsafe { element::$load(at.cast()) })
            }

            #[inline(always)]
            unsafe fn store(at: *mut $t, value: $t) {
                // SAFETY: the caller's promise; elements of buffers are accessed by this file only.
                unsafe { element::$store(at.cast(), bytemuck::cast::<$t, $bits>(value)) }
            }
        }
    )*)*};
}
elements! {
    u32, load32, store32: u32 i32 f32;
    u64, load64, store64: u64 i64 f64;
}

/// Adds to an element of 8 bytes, wrapping, relaxed, for all threads of the device.
///
/// # Safety
/// As for [`Element::store`].
#[doc(hidden)]
#[inline(always)]
pub unsafe fn add(at: *mut u64, n: u64) {
    // SAFETY: the caller's promise; elements of buffers are accessed by this file only.
    unsafe { element::add64(at, n) }
}

macro_rules! elements32 {
    ($($t:ty)*) => {$(
        impl Element32 for $t {
            #[inline(always)]
            unsafe fn load_four(at: *const $t) -> [$t; 4] {
                // SAFETY: the caller's promise; elements of buffers are accessed by this file only.
                unsafe { element::load_four32(at.cast()) }.map(bytemuck::cast)
            }

            #[inline(always)]
            unsafe fn store_four(at: *mut $t, values: [$t; 4]) {
                // SAFETY: the caller's promise; elements of buffers are accessed by this file only.
                unsafe { element::store_four32(at.cast(), values.map(bytemuck::cast)) }
            }
        }
    )*};
}
elements32!(u32 i32 f32);

macro_rules! atomics {
    ($($t:ty: $add:ident $($max:ident $min:ident)?;)*) => {$(
        impl ElementAdd for $t {
            #[inline(always)]
            unsafe fn fetch_add(at: *mut $t, n: $t) -> $t {
                // SAFETY: the caller's promise; elements of buffers are accessed by this file only.
                bytemuck::cast(unsafe { element::$add(at.cast(), bytemuck::cast(n)) })
            }
        }

        $(
            impl ElementAtomic for $t {
                #[inline(always)]
                unsafe fn fetch_max(at: *mut $t, n: $t) -> $t {
                    // SAFETY: as for `fetch_add`.
                    bytemuck::cast(unsafe { element::$max(at.cast(), bytemuck::cast(n)) })
                }

                #[inline(always)]
                unsafe fn fetch_min(at: *mut $t, n: $t) -> $t {
                    // SAFETY: as for `fetch_add`.
                    bytemuck::cast(unsafe { element::$min(at.cast(), bytemuck::cast(n)) })
                }

                #[inline(always)]
                unsafe fn compare_exchange(at: *mut $t, old: $t, new: $t) -> $t {
                    let (old, new) = (bytemuck::cast(old), bytemuck::cast(new));
                    // SAFETY: as for `fetch_add`.
                    bytemuck::cast(unsafe { element::compare_exchange32(at.cast(), old, new) })
                }
            }
        )?
    )*};
}
atomics! {
    u32: fetch_add32 fetch_max32 fetch_min32;
    i32: fetch_add32 fetch_max_i32 fetch_min_i32;
    f32: fetch_add_f32;
}

/// A reference to a buffer, or to a part of it: 16 plain bytes that may be a field of a message. Whoever gets it asks
/// for a view, which is refused if the buffer was given back, is another runtime's, or is shorter than the reference
/// says. A zeroed reference is refused everywhere.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use ring_shared::BufferRef;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// struct Scale {
///     by: f32,
///     what: BufferRef<f32>,
/// }
///
/// let nothing = Scale::zeroed().what;
/// assert!(nothing.is_empty() && nothing.slice(0..0).is_none());
/// ```
#[repr(C)]
pub struct BufferRef<T> {
    /// Index of its entry in the table of buffers.
    entry: u32,
    /// Which of the buffers that have that entry one after the other it is; 0 for none.
    generation: u32,
    /// Of the first element, in elements from the beginning of the buffer.
    offset: u32,
    /// How many elements.
    length: u32,
    of: PhantomData<T>,
}

static_assertions::const_assert_eq!(size_of::<BufferRef<f64>>(), 16);
static_assertions::const_assert_eq!(align_of::<BufferRef<f64>>(), 4);

// SAFETY: four integers, of which zero is a value.
unsafe impl<T: Element> Zeroable for BufferRef<T> {}
// SAFETY: four integers of 4 bytes each, so there is no padding, and any bytes are a value. What they refer to is
// checked by whoever views it.
unsafe impl<T: Element> Pod for BufferRef<T> {}

impl<T> Clone for BufferRef<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for BufferRef<T> {}

impl<T> PartialEq for BufferRef<T> {
    fn eq(&self, other: &Self) -> bool {
        let of = |one: &Self| (one.entry, one.generation, one.offset, one.length);
        of(self) == of(other)
    }
}

impl<T> Eq for BufferRef<T> {}

impl<T> fmt::Debug for BufferRef<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferRef")
            .field("entry", &self.entry)
            .field("generation", &self.generation)
            .field("offset", &self.offset)
            .field("length", &self.length)
            .finish()
    }
}

impl<T: Element> BufferRef<T> {
    /// The reference to `length` elements from `offset` on of the buffer with that entry and generation. No view comes of
    /// one that no buffer has.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn from_parts(entry: u32, generation: u32, offset: u32, length: u32) -> Self {
        BufferRef { entry, generation, offset, length, of: PhantomData }
    }

    /// Index of the buffer's entry in the table of buffers.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn entry(&self) -> u32 {
        self.entry
    }

    /// The buffer's generation, or 0.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// The first byte in the buffer, and how many bytes these are.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn bytes(&self) -> (u64, u64) {
        let each = size_of::<T>() as u64;
        (self.offset as u64 * each, self.length as u64 * each)
    }

    /// How many elements these are.
    #[inline(always)]
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// Whether these are no elements at all.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The reference to elements `range` of these, or `None` if they are not all there. A zeroed one has no parts.
    #[inline(always)]
    pub fn slice(&self, range: Range<usize>) -> Option<BufferRef<T>> {
        if self.generation == 0 || range.start > range.end || range.end > self.len() {
            return None;
        }
        // Both fit: they are no more than `length`, which is a `u32`.
        let offset = self.offset.checked_add(range.start as u32)?;
        let length = (range.end - range.start) as u32;
        Some(BufferRef { offset, length, ..*self })
    }

    /// The same bytes as elements of another type, or `None` if they do not begin and end at multiples of its size. A
    /// zeroed one stays one of its type.
    #[inline(always)]
    pub fn cast<U: Element>(&self) -> Option<BufferRef<U>> {
        let ((offset, bytes), each) = (self.bytes(), size_of::<U>() as u64);
        if self.generation == 0 || !offset.is_multiple_of(each) || !bytes.is_multiple_of(each) {
            return None;
        }
        let (offset, length) =
            (u32::try_from(offset / each).ok()?, u32::try_from(bytes / each).ok()?);
        Some(BufferRef::from_parts(self.entry, self.generation, offset, length))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn casts_begin_and_end_at_whole_elements() {
        let words = BufferRef::<u32>::from_parts(3, 7, 2, 6);
        assert_eq!(words.cast::<f64>(), Some(BufferRef::from_parts(3, 7, 1, 3)));
        assert_eq!(words.cast::<f64>().unwrap().cast::<u32>(), Some(words));
        assert_eq!(words.slice(1..5).unwrap().cast::<u64>(), None, "it begins between two");
        assert_eq!(words.slice(0..5).unwrap().cast::<u64>(), None, "it ends between two");
        assert_eq!(words.cast::<f32>().map(|cast| cast.len()), Some(6));
        let long = BufferRef::<u64>::from_parts(3, 7, 0, u32::MAX);
        assert_eq!(long.cast::<u32>(), None, "more elements than a reference counts");
    }

    #[test]
    fn elements_survive() {
        fn survives<T: Element + PartialEq + fmt::Debug>(values: [T; 2]) {
            let mut memory = [values[0]; 2];
            let at = memory.as_mut_ptr();
            // SAFETY: an aligned element of the array, which nobody else uses.
            let found = unsafe {
                T::store(at.add(1), values[1]);
                [T::load(at), T::load(at.add(1))]
            };
            assert_eq!(found, values);
        }
        survives([1u32, u32::MAX]);
        survives([-1i32, 7]);
        survives([0.5f32, -0.0]);
        survives([1u64 << 40, 3]);
        survives([i64::MIN, -2]);
        survives([1e300f64, 2.5]);
        #[repr(align(16))]
        struct Aligned([f32; 4]);
        let mut four = Aligned([0.0; 4]);
        let (values, at) = ([1.0, 2.0, 3.0, 4.0], four.0.as_mut_ptr());
        // SAFETY: four aligned elements, which nobody else uses.
        let found = unsafe {
            f32::store_four(at, values);
            f32::load_four(at)
        };
        assert_eq!((four.0, found), (values, values));
    }

    proptest! {
        #[test]
        fn a_part_is_inside_the_whole(
            offset: u32, length: u32, start in 0..1u64 << 33, end in 0..1u64 << 33, few: bool,
        ) {
            let most = u64::from(length) + 2;
            let (start, end) = if few { (start % most, end % most) } else { (start, end) };
            let whole = BufferRef::<u64>::from_parts(1, 1, offset, length);
            let part = whole.slice(start as usize..end as usize);
            let fits = start <= end && end <= u64::from(length);
            let counts = u64::from(offset) + start <= u64::from(u32::MAX);
            prop_assert_eq!(part.is_some(), fits && counts);
            if let Some(part) = part {
                let ((at, bytes), (part_at, part_bytes)) = (whole.bytes(), part.bytes());
                prop_assert!(part_at >= at && part_at + part_bytes <= at + bytes);
            }
        }
    }
}
