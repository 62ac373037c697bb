//! Whole pages of the process's own memory, zeroed.

use crate::error::{DriverError, DriverReason};
/// Where pages begin; the page probe measures pages of the same size.
pub(crate) use ring_shared::layout::PAGE;
use std::alloc::Layout;
use std::ptr::NonNull;

/// So many bytes, rounded up to whole pages; nobody else's are among them.
pub(crate) fn whole(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

fn layout(bytes: usize) -> Result<Layout, DriverError> {
    match Layout::from_size_align(whole(bytes), PAGE) {
        Ok(layout) if bytes > 0 => Ok(layout),
        Ok(_) => Err(refused(DriverReason::NoBytes)),
        Err(_) => Err(refused(DriverReason::AddressSpace { bytes })),
    }
}

/// Allocates pages with room for so many bytes.
pub(crate) fn alloc(bytes: usize) -> Result<NonNull<u8>, DriverError> {
    // SAFETY: `layout` refuses a size of zero.
    let pages = NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)?) });
    pages.ok_or_else(|| refused(DriverReason::OutOfMemory { bytes, free: None }))
}

fn refused(reason: DriverReason) -> DriverError {
    DriverError { call: "allocate", code: 0, reason }
}

/// Frees them.
///
/// # Safety
/// From [`alloc`] with that size, and nothing uses them any more.
pub(crate) unsafe fn free(pages: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = layout(bytes) {
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(pages.as_ptr(), layout) };
    }
}
