//! One definition of every shared struct, as three compilers see it: the host's, the device's at
//! run time, and the device's as written in the PTX.

use ring_host::image::BUILT_IN;
use ring_shared::layout::{TABLE_NAMES, table};
use ring_tests::on_each_device;

#[test]
fn device_and_host_agree() {
    on_each_device(|runtime| {
        let theirs = runtime.layout_on_device().unwrap();
        for ((name, ours), theirs) in TABLE_NAMES.iter().zip(table()).zip(theirs) {
            assert_eq!(ours, theirs, "{name} on {}", runtime.device().name);
        }
    });
}

/// The numbers that the PTX of `ring_layout_probe` stores, in the order of its addresses.
fn stored_by_the_probe() -> Vec<u64> {
    let body = BUILT_IN.split(".entry ring_layout_probe").nth(1).expect("the probe's entry");
    let body = body.split("\n}").next().unwrap();
    let mut stores: Vec<(u64, u64)> = Vec::new();
    for line in body.lines().map(str::trim).filter(|l| l.starts_with("st.global")) {
        let (address, values) = line.split_once('[').unwrap().1.split_once("],").unwrap();
        let offset = address.split_once('+').map_or(0, |(_, o)| o.parse().unwrap());
        let values = values.trim().trim_end_matches(';').trim_matches(['{', '}']);
        for (k, value) in values.split(',').enumerate() {
            stores.push((offset + 8 * k as u64, value.trim().parse().unwrap()));
        }
    }
    stores.sort_unstable();
    stores.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn ptx_and_host_agree() {
    assert_eq!(stored_by_the_probe(), table());
}
