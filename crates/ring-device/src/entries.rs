//! What the built-in PTX module exports. One kernel, one parameter: an address.

use crate::{Echo, VectorAdd, enter};
use ring_shared::layout::{ControlBlock, TABLE_LEN, table};

/// Entry of [`Echo`].
///
/// # Safety
/// As for [`enter`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn ring_echo(control: *const ControlBlock) {
    // SAFETY: the caller's promise.
    unsafe { enter::<Echo>(control) }
}

/// Entry of [`VectorAdd`].
///
/// # Safety
/// As for [`enter`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn ring_vector_add(control: *const ControlBlock) {
    // SAFETY: the caller's promise.
    unsafe { enter::<VectorAdd>(control) }
}

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
