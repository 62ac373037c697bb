//! Messages of no bytes, and of stricter alignment than a slot has.

use ring_device::bytemuck::{Pod, Zeroable};

#[repr(C, align(32))]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct Strict([u8; 32]);

ring_device::ring_kernel! {
    /// Sends nothing.
    pub struct Empty;

    fn handle(request: &[u8; 0]) -> u32 {
        request.len() as u32
    }
}

ring_device::ring_kernel! {
    /// Asks for more than a slot has.
    pub struct Aligned;

    fn handle(request: &u32) -> Strict {
        Strict([*request as u8; 32])
    }
}

fn main() {}
