//! A state of stricter alignment than the device's memory is allocated with, and one that is too large.

use ring_device::bytemuck::{Pod, Zeroable};

#[repr(C, align(256))]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Strict([u8; 256]);

ring_device::ring_kernel! {
    /// Aligned to two lines.
    pub struct Aligned;

    fn handle(state: &mut Strict, request: &u32) -> u32 {
        state.0[0] as u32 + *request
    }
}

ring_device::ring_kernel! {
    /// Larger than any channel's.
    pub struct Large;

    fn handle(state: &mut [u64; 1 << 22], request: &u32) -> u32 {
        state[0] as u32 + *request
    }
}

fn main() {}
