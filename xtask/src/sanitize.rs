//! Model checking and sanitizers: the algorithm that runs on CPU and GPU, and the CPU device under load.

use crate::{Error, Result, Workspace, shell, toolchain};

/// The target of the sanitizers; rustc has their runtimes for it.
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";

/// Slots are moved by atomics, which sanitizers see, and not by assembly.
pub(crate) const ATOMIC_SLOTS: &str = "--cfg ring_atomic_slots";

/// The crates whose interleavings are explored by a test `loom` each; those of ring-host are in the crate.
const MODELS: [&str; 2] = ["ring-shared", "ring-device"];

/// What runs under a sanitizer: packages with their tests, and of the last what is left out.
struct Load {
    packages: &'static [&'static str],
    tests: &'static [&'static str],
    /// Words in the names of tests that take long: not in CI.
    slow: &'static [&'static str],
    /// Those of tests that judge by times and sizes, which are not what they are without a sanitizer.
    unfit: &'static [&'static str],
}

/// The ring, and the channels of the CPU device, by tests that know no host.
const CHANNELS: Load = Load {
    packages: &["ring-shared", "ring-device"],
    tests: &[
        "hostile",
        "properties",
        "threads", // of ring-shared
        "beside",
        "budgets",
        "clock",
        "resume",
        "scopes",
        "stream",
        "telemetry", // of ring-device
    ],
    slow: &[],
    unfit: &[],
};

/// The CPU device under the host runtime: messages, modes, faults, states, life cycles and sequences of
/// all that, from several threads.
const RUNTIME: Load = Load {
    packages: &["ring-tests"],
    tests: &["suite"],
    slow: &[
        // Or more of the same.
        "quirks::",
        "bad_input::",
        "one_at_a_time",
        "every_depth_and_capacity",
        // They open a device for each of thousands of sequences, and are many by themselves.
        "on_emulated_platforms",
        "while_operations_fail",
        "whatever_a_device_writes",
    ],
    unfit: &[
        "a_thousand_cycles_grow_nothing",
        "sixteen_resident_at_once",
        "small_arenas_do_not_spoil_the_probe",
        "the_environment_forces",
    ],
};

/// Tests that open some hundred devices: AddressSanitizer takes seconds for them, ThreadSanitizer minutes.
const OF_MANY_DEVICES: &str = "is_refused_is";

/// Every interleaving of the accesses to what host and channel share, and threads of the host, up to a few
/// forced switches of thread.
///
/// # Errors
/// When a model fails.
pub fn loom(ws: &Workspace) -> Result {
    let cargo = || {
        let mut cargo = shell::stable_cargo(ws.root());
        cargo.args(["test", "--release", "--target-dir"]).arg(ws.target("loom"));
        cargo.env("RUSTFLAGS", "--cfg loom");
        cargo
    };
    let mut channels = cargo();
    channels.args(["--test", "loom"]);
    for package in MODELS {
        channels.args(["-p", package]);
    }
    shell::show_and_run(&mut channels)?;
    // The host's other tests are not for loom.
    let host = ["-p", "ring-host", "--no-default-features", "--lib", "--", "models::"];
    shell::show_and_run(cargo().args(host))
}

/// The tests under the sanitizer `name`, `address` or `thread`: those that a run in CI has time for, or
/// `all`.
///
/// ThreadSanitizer takes std for racing unless std is instrumented too, so std is built with it.
///
/// # Errors
/// When the host has no sanitizers, the toolchain is missing, or a test fails.
pub fn sanitizer(ws: &Workspace, name: &str, all: bool) -> Result {
    supported(name)?;
    let toolchain = toolchain::find(ws)?;
    for load in [CHANNELS, RUNTIME] {
        let mut cargo = toolchain.cargo(ws.root());
        cargo.args(["test", "--lib", "--target", HOST, "--target-dir"]).arg(ws.target(name));
        for package in load.packages {
            cargo.args(["-p", package]);
        }
        for test in load.tests {
            cargo.args(["--test", test]);
        }
        let flags = format!("-Zsanitizer={name} {ATOMIC_SLOTS}");
        cargo.env("RUSTFLAGS", flags);
        if name == "address" {
            // What is forgotten on purpose is named there; any other leak is an error.
            let known = ws.root().join("xtask/lsan.supp");
            let options = format!("print_suppressions=0:suppressions={}", known.display());
            cargo.env("LSAN_OPTIONS", options);
        }
        if name == "thread" {
            cargo.args(["-Zbuild-std", "--release"]);
        }
        let mut skipped = load.unfit.to_vec();
        if !all {
            cargo.env("RING_SEQUENCES", "0.03");
            skipped.extend(load.slow);
            skipped.extend((name == "thread").then_some(OF_MANY_DEVICES));
        }
        cargo.arg("--").args(skipped.iter().flat_map(|name| ["--skip", name]));
        shell::show_and_run(&mut cargo)?;
    }
    Ok(())
}

/// Whether this machine has sanitizers.
///
/// # Errors
/// When it has none.
pub(crate) fn supported(name: &str) -> Result {
    if cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")) {
        return Ok(());
    }
    Err(Error::new(format!("the {name} sanitizer is run on {HOST} only")))
}
