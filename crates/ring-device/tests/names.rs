//! `ring_kernel!` where a crate has other things of the names that it uses.
#![allow(dead_code, missing_docs)]

pub struct Kernel;
pub struct Scope;
pub struct Message;

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

#[test]
fn names_of_the_crate_are_left_alone() {
    assert_eq!(<Thread as ring_device::Kernel>::ENTRY, "ring_Thread");
}
