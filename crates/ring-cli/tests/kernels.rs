//! `--ptx`: kernels of files in place of the shipped ones, the built binary as a user runs it.

mod common;

use common::ring;
use ring_host::{KernelFiles, Kernels};
use std::path::Path;

/// A file of that text, as an option names it.
fn file(name: &str, text: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file can be written");
    path.display().to_string()
}

#[test]
fn they_are_for_a_gpu() {
    let shipped = file("shipped.ptx", Kernels::BUILT_IN.ptx());
    for command in ["validate --messages 1000", "bench --quick --only many"] {
        let ran = ring(&format!("{command} --device cpu --ptx {shipped}")).ends(1);
        let ran = ran.complains(&[
            "--ptx",
            "the CPU device (asked for) runs handlers compiled for the host",
        ]);
        assert_eq!(ran.out, "", "nothing was opened");
    }
    // Whatever the machine has: a GPU runs them, and CPU threads were not asked for.
    let ran = ring(&format!("validate --messages 1000 --ptx {shipped}"));
    match ran.status {
        Some(0) => drop(ran.says(&["kernels shipped.ptx (SHA-256 ", "passed all 5 checks"])),
        _ => drop(ran.ends(1).complains(&[
            "no GPU can be used",
            "compiled for the host",
            "--device cuda",
        ])),
    }
}

#[test]
fn files_without_a_kernel_to_run_are_named_before_a_device_is_opened() {
    let (good, version) = (Kernels::BUILT_IN.ptx(), "RING_ABI_VERSION");
    let shipped = file("good.ptx", good);
    let of_another = good.replace(".entry ring_", ".entry own_");
    let cases = [
        ("no/such.ptx".to_owned(), ["cannot read", "sources of this version"]),
        (file("rubbish.ptx", "rubbish"), ["this is not PTX", "sources of this version"]),
        (file("no-abi.ptx", &good.replace(version, "X")), [version, "sources of this version"]),
        (file("other.ptx", &of_another), ["has no kernel that this command runs", "own_echo"]),
    ];
    for command in ["validate", "bench --quick"] {
        for (path, parts) in &cases {
            let ran = ring(&format!("{command} --ptx {shipped} --ptx {path}")).ends(1);
            let ran = ran.complains(&[path]).complains(parts);
            assert_eq!(ran.out, "", "nothing was opened");
            println!("{path} was refused after {:?}", ran.time);
        }
    }
    for (command, more) in [("validate", ";"), ("bench", ", bench_echo_16")] {
        let path = &cases[3].0;
        let looks_for = format!("it looks for {}{more}", KernelFiles::BUILT_IN_ENTRY);
        ring(&format!("{command} --ptx {path}")).ends(1).complains(&[&looks_for]);
    }
}
