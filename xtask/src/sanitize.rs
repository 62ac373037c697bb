//! Model checking and sanitizers: the algorithm that runs on CPU and GPU, and the CPU device under load.

use anyhow::ensure;

use crate::{Result, Workspace, shell, toolchain};

/// The target of the sanitizers; rustc has their runtimes for it.
pub(crate) const HOST: &str = "x86_64-unknown-linux-gnu";

/// Slots are moved by atomics, which sanitizers see, and not by assembly.
pub(crate) const ATOMIC_SLOTS: &str = "--cfg ring_atomic_slots";

/// A setting of cargo: units of a package are compiled without thin LTO between them, which takes a third of the time.
const SEPARATE_UNITS: (&str, &str) = ("CARGO_PROFILE_RELEASE_LTO", "off");

/// What runs under a sanitizer.
struct Load {
    /// Arguments of `cargo test`, as they are typed: packages and their tests.
    tests: &'static str,
    /// Words in the names of tests that take long: not in CI.
    slow: &'static str,
    /// Those of tests that judge by times and sizes, which are not what they are without a sanitizer.
    unfit: &'static str,
}

/// The ring, and the channels of the CPU device, by tests that know no host: three files of ring-shared's,
/// the others ring-device's.
const CHANNELS: Load = Load {
    tests: "-p ring-shared -p ring-device --test hostile --test properties --test threads --test beside \
            --test budgets --test clock --test resume --test scopes --test stream --test telemetry \
            --test hostile_links",
    // Models that explore states, by one thread and without unsafe code.
    slow: "_model::",
    unfit: "",
};

/// The CPU device under the host runtime: messages, modes, faults, states, life cycles and sequences of
/// all that, from several threads.
const RUNTIME: Load = Load {
    tests: "-p ring-tests --test suite --test graphs",
    // Or more of the same. The last three open a device for each of thousands of sequences, and are many by
    // themselves.
    slow: "quirks:: bad_input:: one_at_a_time every_depth_and_capacity recoveries_need_no_more_memory \
           a_device_that_goes_astray on_emulated_platforms while_operations_fail whatever_a_device_writes",
    unfit: "a_thousand_cycles_grow_nothing sixteen_resident_at_once small_arenas_do_not_spoil_the_probe \
            the_environment_forces",
};

/// Tests that AddressSanitizer takes seconds for and ThreadSanitizer minutes: of one thread, or of some hundred devices
/// that are opened one after the other.
const LITTLE_OF_THREADS: &str =
    "a_ring_is_a_queue a_ring_of_ a_hostile_ is_refused_is grids_that_cannot_be";

/// Every interleaving of the accesses to what host and channel share, and threads of the host, up to a few
/// forced switches of thread.
///
/// # Errors
/// When a model fails.
pub fn loom(ws: &Workspace) -> Result {
    // The host's models are among its unit tests, and the others are not for loom. Both build the same
    // packages with the same features, so that each is compiled once.
    for tests in ["--test loom", "--lib -- models::"] {
        let mut cargo = shell::stable_cargo(ws.root());
        cargo.args(["test", "--release", "--target-dir"]).arg(ws.target("loom"));
        cargo.args(["-p", "ring-shared", "-p", "ring-device"]);
        cargo.args(["-p", "ring-host", "--no-default-features"]);
        cargo.args(tests.split_whitespace()).env("RUSTFLAGS", "--cfg loom");
        cargo.envs([SEPARATE_UNITS]);
        shell::show_and_run(&mut cargo)?;
    }
    Ok(())
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
    // In CI the host runtime is for ThreadSanitizer, which sees what several threads do, and for Miri: it has no time for all three.
    let has_time = all || name == "thread";
    for load in [CHANNELS].into_iter().chain(has_time.then_some(RUNTIME)) {
        let mut cargo = toolchain.cargo(ws.root());
        cargo.args(["test", "--lib", "--target", HOST, "--target-dir"]).arg(ws.target(name));
        cargo.args(load.tests.split_whitespace());
        cargo.env("RUSTFLAGS", format!("-Zsanitizer={name} {ATOMIC_SLOTS}"));
        // Reports name lines and no variables; and CI builds each crate once.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only").env("CARGO_INCREMENTAL", "0");
        if name == "address" {
            // What is forgotten on purpose is named there; any other leak is an error.
            let known = ws.root().join("xtask/lsan.supp");
            let options = format!("print_suppressions=0:suppressions={}", known.display());
            cargo.env("LSAN_OPTIONS", options);
        }
        if name == "thread" {
            cargo.args(["-Zbuild-std", "--release"]).envs([SEPARATE_UNITS]);
        }
        let mut skipped: Vec<&str> = load.unfit.split_whitespace().collect();
        if !all {
            cargo.env("RING_SEQUENCES", "0.03");
            skipped.extend(load.slow.split_whitespace());
            if name == "thread" {
                skipped.extend(LITTLE_OF_THREADS.split_whitespace());
            }
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
    let is_host = cfg!(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"));
    ensure!(is_host, "the {name} sanitizer is run on {HOST} only");
    Ok(())
}
