//! Numbered messages of one size, the last so many of them: number `n` stands in place `n % capacity`.

use std::ops::Range;

/// A fixed ring of messages as bytes. Who uses it knows which numbers are in it.
#[derive(Debug)]
pub struct Slots {
    bytes: Box<[u8]>,
    size: usize,
    mask: u64,
}

impl Slots {
    /// Room for that many messages, a power of two, of so many bytes each.
    pub fn new(capacity: u32, size: usize) -> Slots {
        assert!(capacity.is_power_of_two(), "the capacity {capacity} is no power of two");
        let bytes = vec![0; capacity as usize * size].into_boxed_slice();
        Slots { bytes, size, mask: u64::from(capacity) - 1 }
    }

    /// How many messages it has room for.
    pub fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// The message of that number, or of one that stands in the same place.
    pub fn get(&self, number: u64) -> &[u8] {
        &self.bytes[self.place(number)]
    }

    /// Where that message is written.
    pub fn get_mut(&mut self, number: u64) -> &mut [u8] {
        let place = self.place(number);
        &mut self.bytes[place]
    }

    /// How many of that many messages from `first` on stand one behind the other.
    pub fn run(&self, first: u64, count: u64) -> u64 {
        count.min(self.capacity() - (first & self.mask))
    }

    /// Those messages, of which there are no more than [`run`](Self::run) says.
    pub fn slice(&self, first: u64, count: u64) -> &[u8] {
        let at = self.place(first).start;
        &self.bytes[at..at + count as usize * self.size]
    }

    /// Writes messages, one behind the other, as the numbers from `first` on.
    pub fn write(&mut self, first: u64, messages: &[u8]) {
        let [head, tail] = self.places(first, messages.len());
        let (to_head, to_tail) = messages.split_at(head.len());
        self.bytes[head].copy_from_slice(to_head);
        self.bytes[tail].copy_from_slice(to_tail);
    }

    /// Reads as many messages as `into` has room for, from the number `first` on.
    pub fn read(&self, first: u64, into: &mut [u8]) {
        let [head, tail] = self.places(first, into.len());
        let (of_head, of_tail) = into.split_at_mut(head.len());
        of_head.copy_from_slice(&self.bytes[head]);
        of_tail.copy_from_slice(&self.bytes[tail]);
    }

    fn place(&self, number: u64) -> Range<usize> {
        let at = (number & self.mask) as usize * self.size;
        at..at + self.size
    }

    /// Where that many bytes of messages from `first` on stand: up to the end of the ring, and from its beginning on.
    fn places(&self, first: u64, len: usize) -> [Range<usize>; 2] {
        let at = (first & self.mask) as usize * self.size;
        let head = len.min(self.bytes.len() - at);
        [at..at + head, 0..len - head]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_by_their_numbers_around_the_end() {
        let mut slots = Slots::new(4, 3);
        assert_eq!(slots.capacity(), 4);
        let messages: Vec<u8> = (0..9).collect();
        slots.write(u64::MAX - 1, &messages);
        assert_eq!(slots.get(u64::MAX - 1), [0, 1, 2]);
        assert_eq!(slots.get(u64::MAX), [3, 4, 5]);
        assert_eq!(slots.get(0), [6, 7, 8]);
        let mut read = [0; 9];
        slots.read(u64::MAX - 1, &mut read);
        assert_eq!(read[..], messages);
        assert_eq!((slots.run(u64::MAX - 1, 3), slots.run(0, 3)), (2, 3));
        assert_eq!(slots.slice(u64::MAX - 1, 2), &messages[..6]);
        slots.get_mut(0)[1] = 70;
        assert_eq!(slots.get(4), [6, 70, 8]);
    }
}
