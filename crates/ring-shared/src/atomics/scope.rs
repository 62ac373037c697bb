//! Memory scope: who shares a ring, so how far its accesses must reach.
//!
//! On a GPU each access that orders others names the threads for which it does so, and a narrower
//! scope may be answered by a nearer cache. A CPU has one scope only.

#[cfg(target_arch = "nvptx64")]
use super::atom::{load_atom, store_atom};
use super::{Atom, AtomicU64};
#[cfg(not(target_arch = "nvptx64"))]
use core::sync::atomic::Ordering;

/// A memory scope of PTX: a parameter of [`Inbox`](crate::Inbox) and [`Outbox`](crate::Outbox). Both ends
/// of a ring have the same.
pub trait MemoryScope: sealed::Sealed + Copy + core::fmt::Debug {
    /// Reads an atom's halves, in no order, for bytes that another access has published.
    fn load(atom: &Atom) -> [u64; 2];
    /// Writes an atom's halves, in no order, for bytes that another access will publish.
    fn store(atom: &Atom, words: [u64; 2]);
    /// Reads an atom, `lo` at least as new as `hi`. On a GPU it orders nothing else.
    fn load_whole(atom: &Atom) -> [u64; 2];
    /// Writes an atom so that whoever sees its new `hi` sees its new `lo`. On a GPU it orders nothing else.
    fn store_whole(atom: &Atom, words: [u64; 2]);
    /// Writes an atom as [`store_whole`](Self::store_whole) does, and releases what was written before it, by the calling thread and by
    /// those that it has met. On a GPU this takes less than a fence in front of it, which acquires too.
    fn publish(atom: &Atom, words: [u64; 2]);
    /// Reads a word. On a GPU it orders nothing else.
    fn look(word: &AtomicU64) -> u64;
    /// Reads an atom as [`load_whole`](Self::load_whole) does, and acquires what was written before it.
    fn observe(atom: &Atom) -> [u64; 2];
    /// Orders what this thread has read and written for each [`store_whole`](Self::store_whole) that follows.
    /// On a CPU those do it by themselves.
    fn release();
    /// Reads a word, acquiring.
    fn load_acquire(word: &AtomicU64) -> u64;
    /// Writes a word, releasing.
    fn store_release(word: &AtomicU64, value: u64);
}

/// Host and devices, `.sys`: what crosses the bus, or goes from one GPU to another.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

/// The threads of one GPU, `.gpu`: a ring in its memory that no other side touches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gpu;

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::System {}
    impl Sealed for super::Gpu {}
}

/// A CPU has one scope, whatever an end was given.
#[cfg(not(target_arch = "nvptx64"))]
impl<S: sealed::Sealed + Copy + core::fmt::Debug> MemoryScope for S {
    #[inline(always)]
    fn load(atom: &Atom) -> [u64; 2] {
        atom.load()
    }

    #[inline(always)]
    fn store(atom: &Atom, words: [u64; 2]) {
        atom.store(words);
    }

    #[inline(always)]
    fn load_whole(atom: &Atom) -> [u64; 2] {
        atom.observe()
    }

    #[inline(always)]
    fn store_whole(atom: &Atom, words: [u64; 2]) {
        atom.publish(words);
    }

    #[inline(always)]
    fn observe(atom: &Atom) -> [u64; 2] {
        atom.observe()
    }

    #[inline(always)]
    fn publish(atom: &Atom, words: [u64; 2]) {
        atom.publish(words);
    }

    #[inline(always)]
    fn look(word: &AtomicU64) -> u64 {
        word.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn release() {}

    #[inline(always)]
    fn load_acquire(word: &AtomicU64) -> u64 {
        word.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_release(word: &AtomicU64, value: u64) {
        word.store(value, Ordering::Release);
    }
}

#[cfg(target_arch = "nvptx64")]
macro_rules! scope {
    ($scope:ident, $ptx:literal) => {
        #[doc = concat!("`.", $ptx, "`.")]
        impl MemoryScope for $scope {
            #[inline(always)]
            fn load(atom: &Atom) -> [u64; 2] {
                load_atom!(concat!("relaxed.", $ptx), atom)
            }

            #[inline(always)]
            fn store(atom: &Atom, words: [u64; 2]) {
                store_atom!(concat!("relaxed.", $ptx), atom, words);
            }

            #[inline(always)]
            fn load_whole(atom: &Atom) -> [u64; 2] {
                Self::load(atom)
            }

            #[inline(always)]
            fn store_whole(atom: &Atom, words: [u64; 2]) {
                Self::store(atom, words);
            }

            #[inline(always)]
            fn observe(atom: &Atom) -> [u64; 2] {
                // SYNC: acquires what the other end had a `release` before its `store_whole` for.
                load_atom!(concat!("acquire.", $ptx), atom)
            }

            #[inline(always)]
            fn publish(atom: &Atom, words: [u64; 2]) {
                // SYNC: releases to the `observe` of whoever finds the new words.
                store_atom!(concat!("release.", $ptx), atom, words);
            }

            #[inline(always)]
            fn look(word: &AtomicU64) -> u64 {
                let value: u64;
                // SAFETY: 8 readable bytes, aligned, an atomic cell.
                unsafe {
                    core::arch::asm!(
                        concat!("ld.relaxed.", $ptx, ".global.b64 {value}, [{at}];"),
                        value = out(reg64) value, at = in(reg64) word,
                        options(nostack, preserves_flags)
                    );
                }
                value
            }

            #[inline(always)]
            fn release() {
                // SAFETY: a fence.
                unsafe { core::arch::asm!(concat!("fence.acq_rel.", $ptx, ";"), options(nostack)) }
            }

            #[inline(always)]
            fn load_acquire(word: &AtomicU64) -> u64 {
                let value: u64;
                // SAFETY: 8 readable bytes, aligned, an atomic cell.
                unsafe {
                    core::arch::asm!(
                        concat!("ld.acquire.", $ptx, ".global.b64 {value}, [{at}];"),
                        value = out(reg64) value, at = in(reg64) word,
                        options(nostack, preserves_flags)
                    );
                }
                value
            }

            #[inline(always)]
            fn store_release(word: &AtomicU64, value: u64) {
                // SAFETY: 8 writable bytes, aligned, an atomic cell.
                unsafe {
                    core::arch::asm!(
                        concat!("st.release.", $ptx, ".global.b64 [{at}], {value};"),
                        value = in(reg64) value, at = in(reg64) word,
                        options(nostack, preserves_flags)
                    );
                }
            }
        }
    };
}

#[cfg(target_arch = "nvptx64")]
scope!(System, "sys");
#[cfg(target_arch = "nvptx64")]
scope!(Gpu, "gpu");
