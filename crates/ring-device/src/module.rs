//! What every PTX module needs once, whoever's kernels are in it.

use crate::block::intrinsics::exit;
use crate::dispatch::panicked;
use crate::thread_block::ThreadBlock;

/// [`ring_shared::ABI_VERSION`], to be read from the PTX before it is loaded.
#[unsafe(no_mangle)]
pub static RING_ABI_VERSION: u32 = ring_shared::ABI_VERSION;

/// A handler that panics ends its channel, and the host gets `DeviceFault::HandlerPanicked`; a trap would end
/// all that the process has on the GPU, for good. For kernels entered by [`enter`](crate::enter).
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: handlers are called by threads of a block in `run`, which nothing else that panics is.
    unsafe { panicked(ThreadBlock::of_block()) };
    exit()
}
