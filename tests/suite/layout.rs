//! One definition of every shared struct, as three compilers see it: the host's, the device's at
//! run time, and the device's as written in the PTX.

use ring_host::Kernels;
use ring_shared::layout::{ROWS, table};
use ring_tests::on_each_device;

#[test]
fn device_and_host_agree() {
    on_each_device(|runtime| {
        let theirs = runtime.layout_on_device().unwrap();
        for ((row, ours), theirs) in ROWS.iter().zip(table()).zip(theirs) {
            assert_eq!(ours, theirs, "{row} on {}", runtime.device().name);
        }
    });
}

/// The numbers of the table that the PTX of `ring_layout_probe` copies, as its bytes say.
fn table_in_the_ptx() -> Vec<u64> {
    let table = ring_ptx::statements(Kernels::BUILT_IN.ptx())
        .find(|statement| statement.directive(".global") && statement.text.contains("5TABLE["));
    let bytes = ring_ptx::bytes(table.expect("the table").text);
    let mut bytes: Vec<u8> = bytes.map(|byte| byte.expect("a byte")).collect();
    bytes.resize(bytes.len().next_multiple_of(8), 0); // zeros at the end are left out
    bytes.chunks(8).map(|b| u64::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn ptx_and_host_agree() {
    assert_eq!(table_in_the_ptx(), table());
}
