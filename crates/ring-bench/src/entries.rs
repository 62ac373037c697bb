//! What the bench's PTX module exports. One kernel, one parameter: an address.

mod bare;
mod head_tail;

use crate::kernels::{Digest, Echo16, Echo64Block, Echo64Warp, Echo256, Echo1024, Echo4096};
use ring_device::enter;
use ring_shared::layout::ControlBlock;

macro_rules! rings {
    ($($entry:ident: $kernel:ty;)+) => {$(
        #[doc = concat!("Entry of [`", stringify!($kernel), "`].")]
        ///
        /// # Safety
        /// As for [`enter`].
        #[unsafe(no_mangle)]
        pub unsafe extern "ptx-kernel" fn $entry(control: *const ControlBlock) {
            // SAFETY: the caller's promise.
            unsafe { enter::<$kernel>(control) }
        }
    )+};
}
rings! {
    bench_echo_16: Echo16;
    bench_echo_64_warp: Echo64Warp;
    bench_echo_64_block: Echo64Block;
    bench_echo_256: Echo256;
    bench_echo_1024: Echo1024;
    bench_echo_4096: Echo4096;
    bench_digest: Digest;
}
