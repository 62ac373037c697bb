use crate::atomics::Atom;

/// Most buffers of a runtime at once: entries of its table.
pub const MAX_BUFFERS: usize = 4096;

/// A bit of the last words of a [`BufferEntry`], beside the generation: the buffer is frozen, which means that its elements change no more.
pub const FROZEN: u64 = 1 << 32;

shared_struct! {
    /// Where a buffer lies: one of the [`MAX_BUFFERS`] entries of the table that
    /// [`ConfigLine::buffers`](super::ConfigLine::buffers) names. It is in device memory, and the host writes it by copies.
    ///
    /// Both atoms end in the buffer's generation, with [`FROZEN`] if it is, and are copied one by one: they belong together where it is the same, and
    /// name a buffer where it is not 0.
    pub struct BufferEntry: size 32, align 32 {
        /// Device address of the buffer, and its generation.
        pub place @ 0: Atom,
        /// Bytes of the buffer, and its generation.
        pub extent @ 16: Atom,
    }
}

#[cfg(not(target_arch = "nvptx64"))]
impl BufferEntry {
    /// Makes it name a buffer of that generation, which may have [`FROZEN`] beside it, or with zeros none.
    pub fn set(&self, (address, bytes): (u64, u64), generation: u64) {
        self.place.store([address, generation]);
        self.extent.store([bytes, generation]);
    }
}
