//! What the built-in PTX module exports. One kernel, one parameter: an address.

use crate::{Echo, VectorAdd, enter};
use ring_shared::layout::{ControlBlock, TABLE_LEN, table};

/// [`ring_shared::ABI_VERSION`], to be read from the PTX before it is loaded.
#[unsafe(no_mangle)]
pub static RING_ABI_VERSION: u32 = ring_shared::ABI_VERSION;

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
    let table = table();
    let mut i = 0;
    while i < TABLE_LEN {
        // SAFETY: the caller's room.
        unsafe { out.add(i).write(table[i]) };
        i += 1;
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: stops the kernel with an error the host sees. Nothing here panics (a test reads the
    // PTX), but a module must have a handler.
    unsafe { core::arch::asm!("trap;", options(noreturn)) }
}
