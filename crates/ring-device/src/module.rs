//! What every PTX module needs once, whoever's kernels are in it.

/// [`ring_shared::ABI_VERSION`], to be read from the PTX before it is loaded.
#[unsafe(no_mangle)]
pub static RING_ABI_VERSION: u32 = ring_shared::ABI_VERSION;

/// A handler that panics stops the kernel; the host gets a `DeviceFault` that names it.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: stops the kernel with an error that the host sees.
    unsafe { core::arch::asm!("trap;", options(noreturn)) }
}
