//! The same handler alone and as one of several: what choosing among them costs.

use ring_device::bytemuck::{Pod, Zeroable};

/// A message that takes a doorbell line, and does so with a tag, too.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Eight(pub [u64; 8]);

impl Eight {
    /// The message with each word so much greater.
    #[inline(always)]
    pub fn plus(&self, n: u64) -> Eight {
        Eight(self.0.map(|word| word.wrapping_add(n)))
    }
}

ring_device::ring_kernel! {
    /// A single handler.
    pub struct OneHandler;

    fn handle(request: &Eight) -> Eight {
        request.plus(1)
    }
}

ring_device::ring_kernel! {
    /// Two handlers of the same messages.
    pub struct TwoHandlers;

    /// Adds 1.
    fn plus_one(request: &Eight) -> Eight {
        request.plus(1)
    }

    /// Adds 2.
    fn plus_two(request: &Eight) -> Eight {
        request.plus(2)
    }
}

/// As large a message as one with a tag.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Nine(pub Eight, pub u64);

ring_device::ring_kernel! {
    /// A single handler of messages as large as those with a tag.
    pub struct NineHandler;

    fn handle(request: &Nine) -> Nine {
        Nine(request.0.plus(1), request.1)
    }
}
