//! What every PTX module needs once, whoever's kernels are in it.

use crate::dispatch::panicked;
use crate::team::{Team, exit};

/// [`ring_shared::ABI_VERSION`], to be read from the PTX before it is loaded.
#[unsafe(no_mangle)]
pub static RING_ABI_VERSION: u32 = ring_shared::ABI_VERSION;

/// A handler that panics ends its channel, and the host gets `DeviceFault::HandlerPanicked`; a trap would end
/// all that the process has on the GPU, for good. For kernels entered by [`enter`](crate::enter).
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: handlers are called by threads of a team in `run`, which nothing else that panics is.
    unsafe { panicked(Team::of_block()) };
    exit()
}
