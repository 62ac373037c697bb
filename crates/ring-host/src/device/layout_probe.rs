//! The kernel that writes the layouts of shared structs as its compiler sees them.

use super::Program;
use super::image::Image;
use ring_device::{BlockMemory, Hooks};
use ring_shared::layout::{TABLE_LEN, table};

/// Its entry; no other kernel has a parameter that is no control block.
pub(crate) const LAYOUT_PROBE: &str = "ring_layout_probe";

/// The kernel, whose parameter is the address of room for the table.
pub(crate) fn layout_probe(image: &Image) -> Program<'_> {
    Program { entry: LAYOUT_PROBE, image, shared_bytes: |_| 0, prefers_l1: false, cpu }
}

/// # Safety
/// `parameter` is the address of room for the table.
unsafe fn cpu(parameter: u64, _: (u32, u32), _: &mut BlockMemory, _: Hooks) {
    let out = std::ptr::with_exposed_provenance_mut::<[u64; TABLE_LEN]>(parameter as usize);
    // SAFETY: the caller's room.
    unsafe { out.write(table()) };
}
