//! `ring_kernel!` where a crate has other things of the names that it uses.
#![allow(dead_code, missing_docs)]

pub struct Kernel;
pub struct Scope;
pub struct Message;
pub struct Messages;
pub struct State;

/// As constants of messages may be called.
const BYTES: usize = 24;
const ALIGN: usize = 8;
const SLOT: usize = 32;

fn size_of() {}

#[allow(unused_macros)]
macro_rules! assert {
    () => {};
}

#[allow(non_camel_case_types)]
struct str;

ring_device::ring_kernel! {
    /// Doubles.
    pub struct Thread {
        slot_bytes: 8,
    }

    fn handle(request: &u64) -> u64 {
        request.wrapping_mul(2)
    }
}

ring_device::ring_kernel! {
    /// Adds up the first bytes of a message.
    pub struct Sums {
        slot_bytes: SLOT,
    }

    fn handle(state: &mut [u64; ALIGN], request: &[u8; BYTES]) -> [u64; SLOT / ALIGN] {
        for (sum, byte) in state.iter_mut().zip(request) {
            *sum = sum.wrapping_add(u64::from(*byte));
        }
        [state[0], state[1], state[2], state[3]]
    }
}

#[test]
fn names_of_the_crate_are_left_alone() {
    assert_eq!(<Thread as ring_device::Kernel>::ENTRY, "ring_Thread");
    assert_eq!(<Sums as ring_device::Kernel>::ENTRY, "ring_Sums");
}
