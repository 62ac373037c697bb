//! Pinned memory: pages of the process's own, registered with the driver. When another user of the process
//! resets the device, the driver takes back what it had allocated, and a look at a kernel's lines would
//! end the process; pages of our own stay. Where the driver registers none, it allocates them.

use super::api;
use super::call::{Context, SUCCESS, check};
#[cfg(target_os = "linux")]
use super::mapping::{self, Mapping};
use crate::device::{Mapped, pages};
use crate::error::{DriverError, DriverReason};
use cudarc::driver::sys;
use std::ptr::NonNull;

/// Allocates pinned memory, zeroed; `maps`: kernels are to see it. A context must be bound.
pub(super) fn alloc(bytes: usize, maps: bool) -> Result<Mapped, DriverError> {
    let (host, registered) = match allocate_pages(bytes, maps) {
        Ok(host) => (host, true),
        Err(error) => {
            tracing::debug!(%error, "the driver is to allocate pinned memory");
            (allocate(bytes, maps)?, false)
        }
    };
    let found = device_address(host);
    let device = if maps { found.unwrap_or(0) } else { 0 }; // pinned all the same
    Ok(Mapped { host, device, bytes, quick: 0, registered })
}

/// Makes pinned memory, which kernels are to see, of pages of which the last are quick: so many bytes. A context must
/// be bound.
#[cfg(target_os = "linux")]
pub(super) fn of_mapping(
    pages: Mapping,
    bytes: usize,
    quick: usize,
) -> Result<Mapped, DriverError> {
    let host = pages.page(0);
    register(host, pages::whole(bytes) + quick, true)?;
    let found = device_address(host);
    // SAFETY: registered above, and nothing uses it.
    if found.is_ok() || unsafe { api::cuMemHostUnregister(host.as_ptr().cast()) } != SUCCESS {
        pages.keep();
    }
    found.map(|device| Mapped { host, device, bytes, quick, registered: true })
}

fn allocate_pages(bytes: usize, maps: bool) -> Result<NonNull<u8>, DriverError> {
    let host = pages::alloc(bytes)?;
    let done = register(host, bytes, maps);
    if done.is_err() {
        // SAFETY: taken above; the driver has refused them.
        unsafe { pages::free(host, bytes) };
    }
    done.map(|()| host)
}

/// Registers whole pages of the process's own. A context must be bound.
pub(super) fn register(host: NonNull<u8>, bytes: usize, maps: bool) -> Result<(), DriverError> {
    let maps = if maps { sys::CU_MEMHOSTREGISTER_DEVICEMAP } else { 0 };
    let flags = sys::CU_MEMHOSTREGISTER_PORTABLE | maps; // for all devices of the process
    // SAFETY: whole pages of ours, as many bytes.
    let done = unsafe { api::cuMemHostRegister_v2(host.as_ptr().cast(), bytes, flags) };
    check("cuMemHostRegister", done)?;
    shared_with_forks(host, bytes, false);
    Ok(())
}

/// Where the device sees pinned memory. A context must be bound.
pub(super) fn device_address(host: NonNull<u8>) -> Result<u64, DriverError> {
    let mut device = 0;
    // SAFETY: the pointer is to a local; an address that is not pinned is refused.
    let found = unsafe { api::cuMemHostGetDevicePointer_v2(&mut device, host.as_ptr().cast(), 0) };
    check("cuMemHostGetDevicePointer", found).map(|()| device)
}

fn allocate(bytes: usize, maps: bool) -> Result<NonNull<u8>, DriverError> {
    let maps = if maps { sys::CU_MEMHOSTALLOC_DEVICEMAP } else { 0 };
    let flags = sys::CU_MEMHOSTALLOC_PORTABLE | maps;
    let mut host = std::ptr::null_mut();
    // SAFETY: the pointer is to a local; the memory is new, and as long as asked for.
    unsafe {
        check("cuMemHostAlloc", api::cuMemHostAlloc(&mut host, bytes, flags))?;
        host.cast::<u8>().write_bytes(0, bytes);
    }
    let none = || DriverError { call: "cuMemHostAlloc", code: 0, reason: DriverReason::NoAddress };
    NonNull::new(host.cast()).ok_or_else(none)
}

/// Whether a fork of the process has these pages too. Without them it cannot come to have the ones that the
/// device knows, and leave us copies: kernels before 5.11 did so.
#[cfg(target_os = "linux")]
fn shared_with_forks(host: NonNull<u8>, bytes: usize, shared: bool) {
    let advice = if shared { libc::MADV_DOFORK } else { libc::MADV_DONTFORK };
    // SAFETY: whole pages of ours; it changes nothing in this process.
    let _ = unsafe { libc::madvise(host.as_ptr().cast(), pages::whole(bytes), advice) };
}

#[cfg(not(target_os = "linux"))]
fn shared_with_forks(_: NonNull<u8>, _: usize, _: bool) {}

/// Frees it. The context must be bound, if it was not reset; pages that the driver does not let go
/// stay for the life of the process.
///
/// # Safety
/// From [`alloc`] or `of_mapping` in that context, and nothing uses it any more.
pub(super) unsafe fn free(memory: Mapped, context: Context) {
    let at = memory.host.as_ptr();
    // SAFETY: the caller's promise. A reset has ended the registration of pages, and has taken back
    // what the driver had allocated.
    unsafe {
        let free = match (context.is_reset(), memory.registered) {
            (true, registered) => registered,
            (false, true) => api::cuMemHostUnregister(at.cast()) == SUCCESS,
            (false, false) => {
                let _ = api::cuMemFreeHost(at.cast());
                false
            }
        };
        match free {
            #[cfg(target_os = "linux")]
            true if memory.quick > 0 => mapping::unmap(memory.host, memory.all()),
            true => {
                shared_with_forks(memory.host, memory.bytes, true);
                pages::free(memory.host, memory.bytes);
            }
            false => {}
        }
    }
}
