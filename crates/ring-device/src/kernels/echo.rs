use crate::ring_kernel;
use bytemuck::{Pod, Zeroable};

/// 64 bytes, the size that latencies are quoted for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct EchoMessage {
    /// Any eight words.
    pub words: [u64; 8],
}

impl EchoMessage {
    /// The message whose words all depend on `seed`.
    #[inline]
    pub fn from_seed(seed: u64) -> EchoMessage {
        let word = |k: u64| seed.wrapping_add(k).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        EchoMessage { words: [0, 1, 2, 3, 4, 5, 6, 7].map(word) }
    }

    /// The answer that [`Echo`] gives.
    #[inline]
    pub fn answer(&self) -> EchoMessage {
        EchoMessage { words: self.words.map(|w| w.wrapping_add(1)) }
    }
}

ring_kernel! {
    /// Answers each message with its words, each increased by one: a round trip whose answer shows
    /// that the device read the request.
    pub struct Echo {
        name: "echo",
        entry: "ring_echo",
        entry_if: feature = "entries",
    }

    fn handle(request: &EchoMessage) -> EchoMessage {
        request.answer()
    }
}
