//! Messages into slots and out of them: four atoms at a time, then single ones, then what is left.
//!
//! What of this there is to do follows from the message's size alone, so for each type the
//! compiler keeps only the moves. Of a slot too small for the message, as a kernel and a host that
//! disagree may make, only what there is is written and read.

use crate::atomics::{Atom, MemoryScope, wide};
use crate::message::{Message, set_word64, word64};
use crate::ring::Ring;
use bytemuck::{bytes_of, bytes_of_mut, pod_read_unaligned};

/// Bytes of an atom, and of four.
const ONE: usize = 16;
const FOUR: usize = 4 * ONE;

/// Whether the slots of `ring` are large enough for a `T`.
#[inline]
pub(crate) fn fits<T: Message>(ring: &Ring) -> bool {
    ring.slot(0).len() >= T::SLOT_ATOMS
}

/// Writes `message` into `slot`, and zeros up to the end of its last atom.
#[inline]
pub fn write<T: Message, S: MemoryScope>(slot: &[Atom], message: &T) {
    match slot.len() >= T::SLOT_ATOMS {
        true => write_whole::<T, S>(slot, message),
        false => write_cut::<T, S>(slot, message),
    }
}

/// Reads the message in `slot`, each byte once.
#[inline]
pub fn read<T: Message, S: MemoryScope>(slot: &[Atom], message: &mut T) {
    match slot.len() >= T::SLOT_ATOMS {
        true => read_whole::<T, S>(slot, message),
        false => read_cut::<T, S>(slot, message),
    }
}

/// As [`write`], into a slot that is large enough.
///
/// # Panics
/// If it is not.
#[inline]
pub(crate) fn write_whole<T: Message, S: MemoryScope>(slot: &[Atom], message: &T) {
    let slot = &slot[..T::SLOT_ATOMS];
    let (fours, rest) = bytes_of(message).as_chunks::<FOUR>();
    let (of_fours, of_rest) = slot.split_at(4 * fours.len());
    for (atoms, bytes) in of_fours.as_chunks::<4>().0.iter().zip(fours) {
        wide::store_four::<S>(atoms, pod_read_unaligned(bytes));
    }
    for (atom, bytes) in of_rest.iter().zip(rest.as_chunks::<ONE>().0) {
        wide::store::<S>(atom, pod_read_unaligned(bytes));
    }
    write_words::<T, S>(slot, message, size_of::<T>() / ONE);
}

/// As [`read`], from a slot that is large enough.
///
/// # Panics
/// If it is not.
#[inline]
pub(crate) fn read_whole<T: Message, S: MemoryScope>(slot: &[Atom], message: &mut T) {
    let slot = &slot[..T::SLOT_ATOMS];
    let (fours, rest) = bytes_of_mut(message).as_chunks_mut::<FOUR>();
    let (of_fours, of_rest) = slot.split_at(4 * fours.len());
    for (atoms, bytes) in of_fours.as_chunks::<4>().0.iter().zip(fours) {
        bytes.copy_from_slice(bytes_of(&wide::load_four::<S>(atoms)));
    }
    for (atom, bytes) in of_rest.iter().zip(rest.as_chunks_mut::<ONE>().0) {
        bytes.copy_from_slice(bytes_of(&wide::load::<S>(atom)));
    }
    read_words::<T, S>(slot, message, size_of::<T>() / ONE);
}

/// Writes the atoms from the `from`th on, zero where the message has ended.
#[inline]
fn write_words<T: Message, S: MemoryScope>(slot: &[Atom], message: &T, from: usize) {
    for k in from..T::SLOT_ATOMS {
        if let Some(atom) = slot.get(k) {
            S::store(atom, [word64(message, ONE * k), word64(message, ONE * k + 8)]);
        }
    }
}

/// Reads the atoms from the `from`th on, dropping what is behind the message's end.
#[inline]
fn read_words<T: Message, S: MemoryScope>(slot: &[Atom], message: &mut T, from: usize) {
    for k in from..T::SLOT_ATOMS {
        if let Some(atom) = slot.get(k) {
            let [lo, hi] = S::load(atom);
            set_word64(message, ONE * k, lo);
            set_word64(message, ONE * k + 8, hi);
        }
    }
}

#[cold]
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
fn write_cut<T: Message, S: MemoryScope>(slot: &[Atom], message: &T) {
    write_words::<T, S>(slot, message, 0);
}

#[cold]
#[cfg_attr(target_arch = "nvptx64", inline(always))]
#[cfg_attr(not(target_arch = "nvptx64"), inline(never))]
fn read_cut<T: Message, S: MemoryScope>(slot: &[Atom], message: &mut T) {
    *message = T::zeroed();
    read_words::<T, S>(slot, message, 0);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::atomics::System;

    /// Every byte depends on where it is.
    fn message<const N: usize>() -> [u8; N] {
        core::array::from_fn(|at| 1 + (at % 251) as u8)
    }

    fn bytes(atoms: &[Atom]) -> Vec<u8> {
        atoms.iter().flat_map(Atom::load).flat_map(u64::to_le_bytes).collect()
    }

    fn stays_in_its_slot<const N: usize>()
    where
        [u8; N]: Message,
    {
        let (most, sent) = (<[u8; N]>::SLOT_ATOMS, message::<N>());
        for atoms in 0..most + 2 {
            let memory: Vec<Atom> = (0..atoms + 2).map(|_| Atom::new([u64::MAX; 2])).collect();
            let slot = &memory[1..=atoms];
            write::<_, System>(slot, &sent);
            let written = bytes(&memory);
            let (before, rest) = written.split_at(ONE);
            let (inside, after) = rest.split_at(ONE * atoms);
            assert!(before.iter().chain(after).all(|&byte| byte == 0xff), "{N} in {atoms} atoms");
            let there = N.min(inside.len());
            assert_eq!(inside[..there], sent[..there]);
            let unused = &inside[(ONE * most).min(inside.len())..];
            assert!(unused.iter().all(|&byte| byte == 0xff), "behind the message's last atom");

            let mut got = [0xee; N];
            read::<_, System>(slot, &mut got);
            assert_eq!(got[..there], sent[..there]);
            assert!(got[there..].iter().all(|&byte| byte == 0), "from beyond the slot");
            let mut got = [0xee; N];
            if atoms >= most {
                read_whole::<_, System>(slot, &mut got);
                assert_eq!(got, sent);
            }
        }
    }

    #[test]
    fn sizes_of_all_sorts() {
        stays_in_its_slot::<1>();
        stays_in_its_slot::<7>();
        stays_in_its_slot::<12>();
        stays_in_its_slot::<16>();
        stays_in_its_slot::<24>();
        stays_in_its_slot::<60>();
        stays_in_its_slot::<64>();
        stays_in_its_slot::<84>();
        stays_in_its_slot::<85>();
        stays_in_its_slot::<100>();
        stays_in_its_slot::<200>();
    }

    #[test]
    fn the_largest() {
        let (memory, sent) = ([(); 512].map(|()| Atom::new([0; 2])), message::<8192>());
        write::<_, System>(&memory, &sent);
        let mut got = [0; 8192];
        read::<_, System>(&memory, &mut got);
        assert_eq!(got, sent);
    }
}
