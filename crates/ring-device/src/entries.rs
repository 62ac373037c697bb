//! The layout probe, which the built-in PTX module exports beside the kernels.

use ring_shared::layout::{TABLE_LEN, table};

/// Writes [`table`] as this compiler sees the layouts, and ends.
///
/// # Safety
/// `out` has room for [`TABLE_LEN`] numbers.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn ring_layout_probe(out: *mut u64) {
    static TABLE: [u64; TABLE_LEN] = table();
    for (i, number) in TABLE.iter().enumerate() {
        // SAFETY: the caller's room.
        unsafe { out.add(i).write(*number) };
    }
}
