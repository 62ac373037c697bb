//! `cargo xtask hosts`: machines that are another than this one.
//!
//! The host's code is checked for 64-bit Arm under Linux (Grace, Jetson) and for Windows. The ring and the CPU device run
//! on an emulated Arm processor. The emulator's own processor may order memory more strictly than Arm does: what a weak order
//! allows is what the models are for, and what is run here is the other instructions that atomics compile to.

use crate::sanitize::HOST;
use crate::setup::{self, debian};
use crate::{Result, Workspace, shell, workspace};

/// The hosts that the code is checked for.
const CHECKED: [&str; 2] = ["aarch64-unknown-linux-gnu", "x86_64-pc-windows-gnu"];

/// The host whose programs the emulator runs. They are linked by Rust's own linker, statically, so that neither a
/// toolchain for C nor that host's libraries are needed.
const EMULATED: &str = "aarch64-unknown-linux-musl";

/// What runs there: all tests of the ring, and the channels of the CPU device.
const TESTS: [&str; 2] =
    ["-p ring-shared --tests", "-p ring-device --test scopes --test stream --test hostile_links"];

/// The CPU device under the host runtime, which takes long: not in CI.
const SUITE: &str = "-p ring-tests --test suite";

/// Tests that judge by the size of the process, which is the emulator's.
const UNFIT: [&str; 1] = ["a_thousand_cycles_grow_nothing"];

/// States explored by one thread, which is the same on every processor and takes minutes there: not in CI.
const SLOW: [&str; 1] = ["every_order_of_accesses_takes_each_message_once"];

/// Checks the workspace for the other hosts without a warning, and runs the tests on the emulated one: those that a run in CI has
/// time for, or `all`.
///
/// # Errors
/// When anything is warned of, a test fails, or a target or the emulator cannot be had.
pub fn run(ws: &Workspace, all: bool) -> Result {
    setup::targets(ws, &CHECKED)?;
    for host in CHECKED {
        let mut cargo = shell::stable_cargo(ws.root());
        cargo.args(["clippy", "--workspace", "--all-targets", "--target", host, "--target-dir"]);
        cargo.arg(ws.target("hosts")).args(["--", "-D", "warnings"]);
        shell::show_and_run(&mut cargo)?;
    }
    if !cfg!(target_os = "linux") {
        println!("hosts: the emulator runs under Linux, as on {HOST}; no test was run");
        return Ok(());
    }
    setup::targets(ws, &[EMULATED])?;
    let emulator = debian::emulator(ws)?;
    // What looks for the driver asks the linker for a library that this host has as a part of another.
    let libraries = ws.target("hosts").join("libraries");
    workspace::write(&libraries.join("libdl.a"), "!<arch>\n")?;
    let flags = format!("-Lnative={}", libraries.display());
    for tests in TESTS.into_iter().chain(all.then_some(SUITE)) {
        let mut cargo = shell::stable_cargo(ws.root());
        cargo.args(["test", "--target", EMULATED]).args(tests.split_whitespace());
        cargo.arg("--target-dir").arg(ws.target("hosts"));
        let slow = if all { &[][..] } else { &SLOW };
        cargo.arg("--").args(UNFIT.iter().chain(slow).flat_map(|name| ["--skip", name]));
        cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER", "rust-lld");
        cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER", &emulator);
        cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS", &flags);
        cargo.env("RING_TEST_RUNNER", &emulator);
        // Emulated, code that is not optimised at all takes several times as long.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_DEBUG", "none");
        cargo.env("CARGO_PROFILE_DEV_LTO", "off"); // no thin LTO between units of a package: as in `sanitize`
        shell::show_and_run(&mut cargo)?;
    }
    Ok(())
}
