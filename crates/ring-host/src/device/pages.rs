//! Whole pages of the process's own memory, zeroed.

use crate::error::DriverError;
use std::alloc::Layout;
use std::ptr::NonNull;

/// Where pages begin.
const PAGE: usize = 4096;

/// So many bytes, rounded up to whole pages; nobody else's are among them.
pub(crate) fn whole(bytes: usize) -> usize {
    bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX)
}

fn layout(bytes: usize) -> Result<Layout, DriverError> {
    let refused =
        |reason: &str| DriverError { call: "allocate", code: 0, reason: reason.to_owned() };
    match Layout::from_size_align(whole(bytes), PAGE) {
        Ok(layout) if bytes > 0 => Ok(layout),
        Ok(_) => Err(refused("no bytes were asked for")),
        Err(_) => Err(refused("more than the address space")),
    }
}

/// Takes pages with room for so many bytes.
pub(crate) fn take(bytes: usize) -> Result<NonNull<u8>, DriverError> {
    // SAFETY: `layout` refuses a size of zero.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout(bytes)?) }).ok_or_else(|| DriverError {
        call: "allocate",
        code: 0,
        reason: format!("out of memory ({bytes} bytes)"),
    })
}

/// Gives them back.
///
/// # Safety
/// From [`take`] with that size, and nothing uses them any more.
pub(crate) unsafe fn give(pages: NonNull<u8>, bytes: usize) {
    if let Ok(layout) = layout(bytes) {
        // SAFETY: the caller's promise.
        unsafe { std::alloc::dealloc(pages.as_ptr(), layout) };
    }
}
