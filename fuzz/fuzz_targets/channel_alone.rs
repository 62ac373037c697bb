//! Channels whose warps answer alone (scopes `Thread` and `Warp`), against a host that keeps no rule.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ring_device::Echo;
use ring_fuzz::kernels::{ByWarp, Largest, Narrower, Small, Wider};
use ring_fuzz::rig::{Input, launches};

fuzz_target!(|input: (u8, Input)| {
    let (kernel, input) = input;
    match kernel % 6 {
        0 => launches::<Echo>(input),
        1 => launches::<Small>(input),
        2 => launches::<Wider>(input),
        3 => launches::<Narrower>(input),
        4 => launches::<ByWarp>(input),
        _ => launches::<Largest>(input),
    }
});
