//! A scope, and a word of the payload arena, of one's own: what they promise of memory, others rely on.

use ring_device::{Kernel, Scope, Word};

struct Wide;

impl<K: Kernel> Scope<K> for Wide {
    const STATE_BYTES: usize = 0;
}

#[repr(C)]
#[derive(Clone, Copy, ring_device::bytemuck::Pod, ring_device::bytemuck::Zeroable)]
struct Long([u64; 2]);

impl Word for Long {}

fn main() {}
