//! Buffers and the table that names them, each an allocation of just its size, and lies in the table: an entry that is not
//! whole, or of another generation, may say anything; one that is whole names a part of its buffer.

use super::field::Part;
use crate::Lie;
use crate::parts::Memory;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_shared::layout::{BufferEntry, MAX_BUFFERS};

/// The entries that name buffers.
const ENTRIES: [u32; 2] = [0, MAX_BUFFERS as u32 - 1];

/// Generation of the first buffer; the other has the next.
const GENERATION: u32 = 0x517;

/// How long the buffers are, and what the table is made to say.
#[derive(Arbitrary, Clone, Debug)]
pub struct Tables {
    /// Words of each.
    pub words: [u8; 2],
    /// One after the other.
    pub lies: Vec<TableLie>,
}

/// A lie in the table.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub struct TableLie {
    /// Before a launch; else while it runs.
    pub before: bool,
    /// Which entry.
    pub entry: bool,
    /// Which of its four words: address, generation, bytes, generation. Another number: there is no table.
    pub word: u8,
    /// Which part of it.
    pub part: Part,
    /// What it says.
    pub lie: Lie,
}

/// Buffers of a host.
#[derive(Debug)]
pub struct Buffers {
    table: Memory,
    memory: [Memory; 2],
    words: [u32; 2],
    lies: std::vec::IntoIter<TableLie>,
    /// What the host wrote into the entries.
    written: [[u64; 4]; 2],
}

impl Buffers {
    /// The buffers, and a table that names them.
    pub fn new(tables: Tables) -> Buffers {
        let words = tables.words.map(u32::from);
        let memory = words.map(|words| Memory::new(4 * words as usize, 16));
        let table = Memory::new(MAX_BUFFERS * size_of::<BufferEntry>(), align_of::<BufferEntry>());
        let entry = |k: usize| {
            let generation = u64::from(GENERATION) + k as u64;
            [memory[k].address(), generation, 4 * u64::from(words[k]), generation]
        };
        let written = [entry(0), entry(1)];
        let mut buffers = Buffers { table, memory, words, lies: tables.lies.into_iter(), written };
        (0..2).for_each(|k| buffers.write(k, written[k]));
        buffers
    }

    /// Where the table is.
    pub fn table(&self) -> u64 {
        self.table.address()
    }

    /// The words of a reference to so many elements of one of the buffers, and where they are, seen from the last place that
    /// has room for them.
    pub fn part(&self, which: usize, count: u32, at: Lie) -> [u64; 2] {
        let last = self.words[which].saturating_sub(count);
        let [named, _] = self.whole(which, Lie::Near(0), Lie::Near(0));
        [named, u64::from(at.apply32(last)) | u64::from(count) << 32]
    }

    /// The words of a reference to all of one of the buffers, and lies in their place.
    pub fn whole(&self, which: usize, named: Lie, part: Lie) -> [u64; 2] {
        let generation = u64::from(GENERATION) + which as u64;
        let length = u64::from(self.words[which]) << 32;
        [named.apply(u64::from(ENTRIES[which]) | generation << 32), part.apply(length)]
    }

    /// The next lie, if it is one for that moment, and whether it says that there is no table.
    pub fn lie(&mut self, before: bool) -> Option<bool> {
        let next = self.lies.as_slice().first().filter(|lie| lie.before == before)?;
        let TableLie { entry, word, part, lie, .. } = *next;
        self.lies.next();
        let k = usize::from(entry);
        let mut words = self.written[k];
        let Some(told) = words.get_mut(usize::from(word % 5)) else { return Some(true) };
        *told = part.apply(lie, *told);
        let [address, generation, bytes, same] = words;
        if generation == same {
            // What `run` is promised: it is memory of the buffer.
            let (base, all) = (self.memory[k].address(), 4 * u64::from(self.words[k]));
            let from = address.wrapping_sub(base) % (all + 1);
            words = [base + from, generation, bytes.min(all - from), same];
        }
        self.write(k, words);
        Some(false)
    }

    fn write(&mut self, k: usize, words: [u64; 4]) {
        let [address, generation, bytes, same] = words;
        let entry = self.entry(ENTRIES[k]);
        entry.place.store([address, generation]);
        entry.extent.store([bytes, same]);
        self.written[k] = words;
    }

    fn entry(&self, index: u32) -> &BufferEntry {
        assert!((index as usize) < MAX_BUFFERS);
        // SAFETY: an entry of the table: zeroed atomics.
        unsafe { self.table.at::<BufferEntry>().add(index as usize).as_ref() }
    }

    /// Checks that only the host wrote to the table.
    pub fn check(&self) {
        for (index, written) in ENTRIES.iter().zip(self.written) {
            let entry = self.entry(*index);
            let [place, extent] = [entry.place.load(), entry.extent.load()];
            assert_eq!([place, extent].as_flattened(), written, "wrote to entry {index}");
        }
    }

    /// The words of a buffer.
    #[cfg(test)]
    pub fn contents(&self, which: usize) -> Vec<u32> {
        use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
        // SAFETY: so many words of a buffer, all of them atomics.
        let word = |k| unsafe { self.memory[which].at::<u8>().cast::<AtomicU32>().add(k).as_ref() };
        (0..self.words[which] as usize).map(|k| word(k).load(Relaxed)).collect()
    }
}
