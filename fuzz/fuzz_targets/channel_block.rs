//! Channels that bring windows of messages (scopes `Block` and `InOrder`), with payload and state, against
//! a host that keeps no rule and messages that refer to memory that is not there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ring_device::VectorAdd;
use ring_fuzz::kernels::{ByBlock, Counter, Stateless};
use ring_fuzz::rig::{Input, launches};

fuzz_target!(|input: (u8, Input)| {
    let (kernel, input) = input;
    match kernel % 4 {
        0 => launches::<VectorAdd>(input),
        1 => launches::<ByBlock>(input),
        2 => launches::<Counter>(input),
        _ => launches::<Stateless>(input),
    }
});
