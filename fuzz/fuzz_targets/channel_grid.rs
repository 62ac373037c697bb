//! Channels whose messages refer to buffers, by scope `Grid`, of one block and of two, and by scope `Thread`, against a host that
//! keeps no rule and a table of buffers that is changed meanwhile.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ring_fuzz::kernels::{ByGrid, ByGridLong, ByReference};
use ring_fuzz::rig::{Input, Tables, launches_with_buffers};

fuzz_target!(|input: (u8, Tables, Input)| {
    let (kernel, tables, input) = input;
    match kernel % 5 {
        0 => launches_with_buffers::<ByGrid>(1, tables, input),
        1 => launches_with_buffers::<ByGrid>(2, tables, input),
        2 => launches_with_buffers::<ByGridLong>(1, tables, input),
        3 => launches_with_buffers::<ByGridLong>(2, tables, input),
        _ => launches_with_buffers::<ByReference>(1, tables, input),
    }
});
