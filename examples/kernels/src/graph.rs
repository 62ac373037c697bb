//! Kernels that pass messages on, for graphs of all kinds: tests put them together.

use bytemuck::{Pod, Zeroable};

/// A message that tells where it comes from and how it wants to be treated.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Item {
    /// Who sent it first.
    pub source: u64,
    /// Its number there.
    pub number: u64,
    /// By what links choose a channel.
    pub key: u32,
    /// Messages that [`Copier`] makes of it.
    pub copies: u32,
    /// Which of the copies it is.
    pub copy: u32,
    /// Kernels that it has passed.
    pub hops: u32,
    /// What a [`Tally`] had counted, this message included.
    pub counted: u64,
    /// Which copies of copies it is: four times that of the message that it was copied from, and [`copy`](Self::copy) and one.
    pub lineage: u64,
    /// Whatever the sender wants to see again.
    pub rest: [u64; 2],
}

impl Item {
    /// The message behind one more kernel.
    pub(crate) fn passed(&self) -> Item {
        Item { hops: self.hops.wrapping_add(1), ..*self }
    }

    /// A copy of it.
    #[inline(always)]
    pub(crate) fn copied(&self, copy: u32) -> Item {
        let lineage = self.lineage.wrapping_mul(4).wrapping_add(u64::from(copy) + 1);
        Item { copy, key: self.key.wrapping_add(copy), lineage, ..self.passed() }
    }
}

/// Words of an [`Item`] before the rest.
const WORDS: usize = core::mem::offset_of!(Item, rest) / 4;

impl Item {
    /// Word `i` of those.
    #[inline(always)]
    fn word(&self, i: usize) -> u32 {
        match i {
            0 => self.source as u32,
            1 => (self.source >> 32) as u32,
            2 => self.number as u32,
            3 => (self.number >> 32) as u32,
            4 => self.key,
            5 => self.copies,
            6 => self.copy,
            7 => self.hops,
            8 => self.counted as u32,
            9 => (self.counted >> 32) as u32,
            10 => self.lineage as u32,
            _ => (self.lineage >> 32) as u32,
        }
    }
}

/// The number of copies that no handler can bear.
pub const TOO_MUCH: u32 = u32::MAX;

ring_device::ring_kernel! {
    /// Passes each message on.
    pub struct Pass {
        name: "pass",
        ports: {
            /// The messages.
            ON: [Item; 1] by |item| item.key,
        },
    }

    fn handle(item: &Item, out: &mut Ports) {
        assert_ne!(item.copies, TOO_MUCH, "a message that the handler cannot bear");
        out.emit(Pass::ON, item.passed());
    }
}

ring_device::ring_kernel! {
    /// Passes on as many copies of a message as it says, up to five; it declares three.
    pub struct Copier {
        name: "copier",
        ports: {
            /// The copies.
            COPIES: [Item; 3] by |item| item.key,
            /// The numbers of those messages of which there was no copy.
            NONE: [u64; 1],
        },
    }

    fn handle(item: &Item, out: &mut Ports) {
        for copy in 0..item.copies.min(5) {
            out.emit(Copier::COPIES, item.copied(copy));
        }
        if item.copies == 0 {
            out.emit(Copier::NONE, item.number);
        }
    }
}

ring_device::ring_kernel! {
    /// The same by a warp, whose threads together find the sum of the numbers below ten: the copies have counted so many. Every
    /// other copy is placed, and made by all threads side by side, without the rest.
    pub struct WarpCopier {
        name: "warp copier",
        ports: {
            /// The copies.
            COPIES: [Item; 3] by |item| item.key,
            /// The numbers of those messages of which there was no copy.
            NONE: [u64; 1],
        },
    }

    fn handle(ctx: &WarpContext, item: &Item, out: &mut Ports) {
        assert_ne!(item.copies, TOO_MUCH, "a message that the handler cannot bear");
        let own = (ctx.thread() as u64..10).step_by(ctx.threads()).sum();
        let counted = ctx.sum(own);
        for copy in 0..item.copies.min(5) {
            let item = Item { counted, ..item.copied(copy) };
            if copy % 2 == 0 {
                out.emit(WarpCopier::COPIES, item);
                continue;
            }
            let placed = out.place(WarpCopier::COPIES);
            for i in (ctx.thread()..WORDS).step_by(ctx.threads()) {
                placed.set(0, i, item.word(i));
            }
        }
        if item.copies == 0 {
            out.emit(WarpCopier::NONE, item.number);
        }
    }
}

ring_device::ring_kernel! {
    /// The same by a whole block: its last threads make what is placed. Of a message that the handler cannot bear only the very last
    /// one takes note.
    pub struct BlockCopier {
        name: "block copier",
        ports: {
            /// The copies.
            COPIES: [Item; 3] by |item| item.key,
            /// The numbers of those messages of which there was no copy.
            NONE: [u64; 1],
        },
    }

    fn handle(ctx: &BlockContext, item: &Item, out: &mut Ports) {
        let own = ctx.threads() - 1 - ctx.thread();
        assert!(item.copies != TOO_MUCH || own > 0, "a message that the handler cannot bear");
        for copy in 0..item.copies.min(5) {
            let item = item.copied(copy);
            if copy % 2 == 0 {
                out.emit(BlockCopier::COPIES, item);
                continue;
            }
            let placed = out.place(BlockCopier::COPIES);
            for i in (own..WORDS).step_by(ctx.threads()) {
                placed.set(0, i, item.word(i));
            }
        }
        if item.copies == 0 {
            out.emit(BlockCopier::NONE, item.number);
        }
    }
}

ring_device::ring_kernel! {
    /// Counts the messages of each channel, and passes each on with the count.
    pub struct Tally {
        name: "tally",
        ports: {
            /// The messages.
            COUNTED: [Item; 1] by |item| item.key,
        },
    }

    fn handle(count: &mut u64, item: &Item, out: &mut Ports) {
        *count = count.wrapping_add(1);
        out.emit(Tally::COUNTED, Item { counted: *count, ..item.passed() });
    }
}

ring_device::ring_kernel! {
    /// Passes each message on, and replies how many messages the channel has had; to those that want no copies zero.
    pub struct Counter {
        name: "counter",
        ports: {
            /// The messages.
            ON: [Item; 1] by |item| item.key,
        },
    }

    fn handle(count: &mut u64, item: &Item, out: &mut Ports) -> u64 {
        *count = count.wrapping_add(1);
        out.emit(Counter::ON, item.passed());
        if item.copies == 0 {
            return 0;
        }
        *count
    }
}

/// What an [`Absorber`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Absorbed {
    /// Messages.
    pub count: u64,
    /// The sum of their numbers, wrapping.
    pub numbers: u64,
}

ring_device::ring_kernel! {
    /// Keeps a sum of what it gets, and sends nothing.
    pub struct Absorber { name: "absorber", }

    fn handle(state: &mut Absorbed, item: &Item) {
        state.count = state.count.wrapping_add(1);
        state.numbers = state.numbers.wrapping_add(item.number);
    }
}

ring_device::ring_kernel! {
    /// Takes messages, and does nothing with them.
    pub struct Discard { name: "discard", }

    fn handle(_: &Item, _: &mut Ports) {}
}

/// Streams that a [`Verifier`] tells apart: two sources, 16 keys, and 16 lineages.
pub const STREAMS: usize = 512;

/// What a [`Verifier`] keeps.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Verified {
    /// Messages.
    pub count: u64,
    /// Those whose number was not the next of their stream.
    pub wrong: u64,
    /// The next number of each stream.
    pub next: [u64; STREAMS],
}

ring_device::ring_kernel! {
    /// Checks that the messages of each stream come in the order of their numbers, with none left out: the stream is told by the
    /// source, the first of the rest, which is below 16, and the lineage.
    pub struct Verifier { name: "verifier", }

    fn handle(state: &mut Verified, item: &Item) {
        state.count = state.count.wrapping_add(1);
        let stream = (item.source & 1) << 8 | (item.rest[0] & 15) << 4 | item.lineage & 15;
        if let Some(next) = state.next.get_mut(stream as usize) {
            state.wrong = state.wrong.wrapping_add(u64::from(*next != item.number));
            *next = item.number.wrapping_add(1);
        }
    }
}
