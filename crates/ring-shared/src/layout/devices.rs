use crate::atomics::{Atom, AtomicU64};

/// Most devices that the grids of a kernel are on.
pub const MAX_DEVICES: usize = 8;

shared_struct! {
    /// Where the blocks of a kernel's grids on several devices meet. It is the beginning of what a kernel of scope `Grid` has in device
    /// memory, and the host writes it before the launch; of a kernel on one device all of it is zero.
    pub struct DevicesLine: size 128, align 128 {
        /// In halves of its words: devices, or 0; the number of this device among them; the number of its first block among the blocks of
        /// all devices; the blocks of all devices.
        pub size @ 0: Atom,
        pad @ 16: [AtomicU64; 6],
        /// For each device, where its blocks are told of those of all devices. It is in that device's memory. Two in each atom.
        pub places @ 64: [Atom; MAX_DEVICES / 2],
    }
}

/// What a [`DevicesLine`] says.
#[cfg(not(target_arch = "nvptx64"))]
#[derive(Clone, Copy, Debug)]
pub struct DevicesSetup<'a> {
    /// The number of this device.
    pub own: usize,
    /// Where its blocks are told, for each device.
    pub places: &'a [u64],
    /// How many blocks each device has.
    pub blocks: &'a [u32],
}

#[cfg(not(target_arch = "nvptx64"))]
impl DevicesSetup<'_> {
    /// The line, as the bytes of its words: what the host copies.
    ///
    /// # Panics
    /// If there are more than [`MAX_DEVICES`] devices, or not as many counts of blocks.
    pub fn to_words(self) -> [u64; size_of::<DevicesLine>() / 8] {
        assert!(self.places.len() <= MAX_DEVICES && self.places.len() == self.blocks.len());
        let pair = |low: u32, high: u32| bytemuck::cast::<[u32; 2], u64>([low, high]);
        let (first, all) = (self.blocks[..self.own].iter().sum(), self.blocks.iter().sum());
        let mut words = [0; size_of::<DevicesLine>() / 8];
        words[0] = pair(self.places.len() as u32, self.own as u32);
        words[1] = pair(first, all);
        words[8..8 + self.places.len()].copy_from_slice(self.places);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_where_the_fields_are() {
        let setup = DevicesSetup { own: 1, places: &[4096, 8192, 77], blocks: &[5, 6, 7] };
        // SAFETY: atomics of integers, each valid with any bytes.
        let line: DevicesLine = unsafe { core::mem::transmute(setup.to_words()) };
        assert_eq!(line.size.load(), [3 | 1 << 32, 5 | 18 << 32]);
        let places = line.places.map(|two| two.load());
        assert_eq!(places, [[4096, 8192], [77, 0], [0; 2], [0; 2]]);
    }
}
