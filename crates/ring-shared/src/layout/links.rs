use crate::atomics::{AtomicU32, AtomicU64};
use crate::layout::RingDescriptor;

/// Most ports of a kernel.
pub const MAX_PORTS: usize = 8;

shared_struct! {
    /// What a channel of a kernel with ports takes messages from and sends them to. Written by the host before the launch;
    /// right behind it lie the [`Link`]s of its inputs, then those of its outputs, in the order of their ports.
    pub struct Links: size 128, align 128 {
        /// Rings that it takes messages from.
        pub inputs @ 0: AtomicU32,
        /// Rings that it sends messages to.
        pub outputs @ 4: AtomicU32,
        pad @ 8: AtomicU64,
        /// A [`PortLinks`] for each port.
        pub ports @ 16: [AtomicU64; MAX_PORTS],
        pad_2 @ 80: [AtomicU64; 6],
    }
}

shared_struct! {
    /// One end of a ring. The host writes it before the launch, and then the channel the second half alone: now and then, and
    /// exactly before it says that it is inactive or has left.
    pub struct Link: size 128, align 64 {
        /// Where the ring lies.
        pub ring @ 0: RingDescriptor,
        /// Number of a [`Far`].
        pub far @ 48: AtomicU32,
        pad @ 52: AtomicU32,
        pad_2 @ 56: AtomicU64,
        /// Index of the next message at this end. Of a host's ring it begins where that does, and else at 0.
        pub next @ 64: AtomicU64,
        /// Of an output: how often the launch's channel had a message to handle, none under way, and no room in the ring for what the
        /// handler may emit. Those until it sends something there count as one.
        pub stalls @ 72: AtomicU64,
        pad_3 @ 80: [AtomicU64; 6],
    }
}

impl Link {
    /// How far behind the beginning of a [table](Links) link `k` lies, the inputs first.
    #[inline(always)]
    pub const fn offset(k: usize) -> usize {
        size_of::<Links>() + k * size_of::<Link>()
    }
}

/// Who has the other end of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// A channel of the same device: the ring is in its memory.
    Channel,
    /// The host, or a channel of another device that is reached through the host's memory: the ring is there.
    Host,
    /// A channel of another device: the line and the slots are in the consumer's memory, and the credit line in the producer's.
    Peer,
}

impl Far {
    /// The number that lies in memory.
    pub const fn to_u32(self) -> u32 {
        self as u32
    }

    /// What that number means: the host, unless it says otherwise.
    pub const fn from_u32(n: u32) -> Far {
        match n {
            0 => Far::Channel,
            2 => Far::Peer,
            _ => Far::Host,
        }
    }

    /// Whether the slots are in the memory of a device. There they are accessed by GPU scope also from another device: a fence of
    /// system scope orders them, and single accesses of that scope take a warp several times as long.
    #[inline(always)]
    pub const fn is_on_device(self) -> bool {
        !matches!(self, Far::Host)
    }
}

/// To which of its rings a port sends a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// To each of them.
    All,
    /// To that of the message's key, modulo their number.
    ByKey,
    /// To that whose number is the message's key; if there is none, the channel faults.
    ByIndex,
}

/// Which outputs of a channel are those of one port, and how they are chosen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLinks {
    /// The first.
    pub first: u16,
    /// How many.
    pub count: u16,
    /// How.
    pub routing: Routing,
}

impl PortLinks {
    /// The word that lies in memory.
    pub const fn to_word(self) -> u64 {
        self.first as u64 | (self.count as u64) << 16 | (self.routing as u64) << 32
    }

    /// What the word means.
    pub const fn from_word(word: u64) -> PortLinks {
        let routing = match word >> 32 {
            0 => Routing::All,
            1 => Routing::ByKey,
            _ => Routing::ByIndex,
        };
        PortLinks { first: word as u16, count: (word >> 16) as u16, routing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive() {
        for routing in [Routing::All, Routing::ByKey, Routing::ByIndex] {
            let links = PortLinks { first: 7, count: u16::MAX, routing };
            assert_eq!(PortLinks::from_word(links.to_word()), links);
        }
        for far in [Far::Channel, Far::Host, Far::Peer] {
            assert_eq!(Far::from_u32(far.to_u32()), far);
        }
    }
}
