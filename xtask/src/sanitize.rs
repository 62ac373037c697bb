//! Model checking and sanitizers over ring-shared: the same algorithm that runs on CPU and GPU.

use std::process::Command;

use crate::{Error, Result, Workspace, pins, shell, toolchain};

/// The target of the sanitizers; rustc has their runtimes for it.
const HOST: &str = "x86_64-unknown-linux-gnu";
const CRATE: [&str; 2] = ["-p", "ring-shared"];

/// Every interleaving of the ring's accesses, up to three forced switches of thread.
///
/// # Errors
/// When a model fails.
pub fn loom(ws: &Workspace) -> Result {
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["test", "--release"]).args(CRATE).args(["--test", "loom", "--target-dir"]);
    cargo.arg(ws.target("loom")).env("RUSTFLAGS", "--cfg loom");
    if std::env::var_os("LOOM_MAX_PREEMPTIONS").is_none() {
        cargo.env("LOOM_MAX_PREEMPTIONS", "3");
    }
    show_and_run(&mut cargo)
}

/// The tests under the sanitizer `name`: `address` or `thread`.
///
/// ThreadSanitizer takes std for racing unless std is instrumented too, so std is built with it.
///
/// # Errors
/// When the host has no sanitizers, the toolchain is missing, or a test fails.
pub fn sanitizer(ws: &Workspace, name: &str) -> Result {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
        return Err(Error::new(format!("the {name} sanitizer is run on {HOST} only")));
    }
    let mut cargo = toolchain::find(ws)?.cargo(ws.root());
    cargo.arg("test").args(CRATE).args(["--lib", "--tests", "--target", HOST, "--target-dir"]);
    cargo
        .arg(ws.target(name))
        .env("RUSTFLAGS", format!("-Zsanitizer={name} --cfg ring_atomic_slots"));
    if name == "thread" {
        cargo.args(["-Zbuild-std", "--release"]);
    }
    show_and_run(&mut cargo)
}

/// The tests under Miri with strict provenance, fewer cases of each property.
///
/// # Errors
/// When a test fails; and when Miri is not installed, unless `if_available`.
pub fn miri(ws: &Workspace, if_available: bool) -> Result {
    let toolchain = toolchain::installed().find(|t| t.has_source() && t.has_program("cargo-miri"));
    let Some(toolchain) = toolchain else {
        let missing = Error::new(
            "Miri is not installed for the pinned nightly; `cargo xtask asan` stands in for it, \
             though it sees no aliasing and no provenance",
        )
        .hint(format!(
            "cargo xtask setup --miri\n   or: rustup component add miri rust-src --toolchain {}",
            pins::NIGHTLY
        ));
        if if_available {
            println!("miri: skipped. {missing}");
            return Ok(());
        }
        return Err(missing);
    };
    let mut cargo = toolchain.cargo(ws.root());
    cargo
        .args(["miri", "test"])
        .args(CRATE)
        // Those that interpret in minutes; asan and tsan run the others too.
        .args(["--lib", "--test", "threads", "--target-dir"])
        .arg(ws.target("miri"));
    // cargo-miri brings its own driver, and warns of another.
    cargo.env_remove("RUSTC");
    cargo.env("MIRIFLAGS", "-Zmiri-strict-provenance -Zmiri-disable-isolation");
    cargo.env("PROPTEST_CASES", "8").env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    show_and_run(&mut cargo)
}

fn show_and_run(command: &mut Command) -> Result {
    println!("running {}", shell::words(command));
    shell::run(command)
}
