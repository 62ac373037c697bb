//! Undefined behaviour: Miri, and what stands in for it where it is missing.
//!
//! `ring-shared` holds to strict provenance. Device addresses are integers in memory, though, and the CPU
//! device's are those of the host, so from `ring-device` up provenance is exposed, and Miri is told so.

use std::path::PathBuf;
use std::process::Command;

use anyhow::anyhow;

use crate::installed::Tool;
use crate::sanitize::{ATOMIC_SLOTS, HOST};
use crate::{Result, Workspace, pins, shell, toolchain};

/// What Miri interprets in minutes; asan and tsan run the rest too.
const INTERPRETED: [Interpreted; 3] = [
    Interpreted {
        what: "ring-shared, strict provenance",
        test: "-p ring-shared --lib --test threads",
        flags: "-Zmiri-strict-provenance -Zmiri-disable-isolation",
        names: "",
    },
    Interpreted {
        what: "ring-device, exposed provenance",
        test: "-p ring-device --lib --test resume",
        flags: "-Zmiri-permissive-provenance",
        names: "tests:: commands_reach refused ends_the_channel is_answered_before credit_of",
    },
    Interpreted {
        what: "the CPU device under ring-host, exposed provenance",
        test: "-p ring-host --lib",
        // Time is Miri's own; files that tell of the platform are not to be had; the thread that renews
        // leases outlives the tests, and to Miri that is a leak. No probe ends in its time.
        flags: "-Zmiri-permissive-provenance -Zmiri-isolation-error=hide -Zmiri-ignore-leaks \
                -Zmiri-env-set=RING_MODE=persistent",
        names: "panics_lose_nothing the_kernel_is_told_at_once_of",
    },
];

struct Interpreted {
    what: &'static str,
    /// Arguments of `cargo miri test`, as they are typed.
    test: &'static str,
    flags: &'static str,
    /// Tests of these names only, if any.
    names: &'static str,
}

/// What the stand-ins run.
const NATIVE: &str = "ring-shared and ring-device";

/// Its arguments of `cargo test`.
const NATIVE_TESTS: &str = "-p ring-shared -p ring-device --lib --test hostile --test threads --test resume \
                            --test stream";

/// Miri, or where it is missing what can be had of the others; says at the end which of them ran.
///
/// # Errors
/// When a test fails; and when nothing is installed, unless `if_available`.
pub fn miri(ws: &Workspace, if_available: bool) -> Result {
    let mut ran = Vec::new();
    match interpreter() {
        Some(toolchain) => {
            for part in INTERPRETED {
                let mut cargo = toolchain.cargo(ws.root());
                cargo.args(["miri", "test"]).args(part.test.split_whitespace()).arg("--target-dir");
                cargo.arg(ws.target("miri")).arg("--").args(part.names.split_whitespace());
                // cargo-miri brings its own driver, and warns of another.
                cargo.env_remove("RUSTC").env("MIRIFLAGS", part.flags);
                cargo.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
                cargo.env("PROPTEST_CASES", "32"); // of 256
                shell::show_and_run(&mut cargo)?;
                ran.push(format!("Miri over {}", part.what));
            }
        }
        None => {
            ran.extend(careful(ws)?);
            ran.extend(valgrind(ws)?);
        }
    }
    if !ran.is_empty() {
        println!("undefined behaviour was looked for by {}", ran.join("; "));
        return Ok(());
    }
    let missing = anyhow!(
        "neither Miri nor cargo-careful nor valgrind is there\n  try: cargo xtask setup --miri\n   or: \
         rustup toolchain install {} --profile minimal --component miri --component rust-src",
        pins::NIGHTLY
    );
    if if_available {
        println!("undefined behaviour was looked for by nothing: {missing}");
        return Ok(());
    }
    Err(missing)
}

/// The pinned nightly, if it can interpret.
fn interpreter() -> Option<ring_builder::Toolchain> {
    toolchain::installed().find(|t| t.has_source() && t.has_program("cargo-miri"))
}

/// The tests by cargo-careful, which is installed if it can be; what ran, or `None` after a word why not.
///
/// # Errors
/// When a test fails.
pub fn careful(ws: &Workspace) -> Result<Option<String>> {
    let Tool { name, version, .. } = pins::CARGO_CAREFUL;
    let found = toolchain::find(ws).and_then(|found| Ok((found, pins::CARGO_CAREFUL.program(ws)?)));
    let (toolchain, program) = match found {
        Ok(found) => found,
        Err(error) => return Ok(skipped(name, &error)),
    };
    let mut cargo = toolchain.cargo(ws.root());
    let paths = cargo.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path);
    let mut paths: Vec<PathBuf> = paths.map(std::env::split_paths).into_iter().flatten().collect();
    paths.extend(program.parent().map(PathBuf::from));
    if let Ok(paths) = std::env::join_paths(paths) {
        cargo.env("PATH", paths);
    }
    cargo.args(["careful", "test"]).args(NATIVE_TESTS.split_whitespace()).arg("--target-dir");
    shell::show_and_run(cargo.arg(ws.target("careful")))?;
    Ok(Some(format!("{name} {version} over {NATIVE}")))
}

/// The tests under valgrind's memcheck; what ran, or `None` after a word why not.
///
/// # Errors
/// When a test fails, or memory is used that may not be.
pub fn valgrind(ws: &Workspace) -> Result<Option<String>> {
    let version = match Command::new("valgrind").arg("--version").output() {
        Ok(version) => String::from_utf8_lossy(&version.stdout).trim().to_owned(),
        Err(error) => return Ok(skipped("valgrind", &error)),
    };
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["test", "--release", "--target", HOST]).args(NATIVE_TESTS.split_whitespace());
    // Threads take turns there, and channels spin.
    let runner = "valgrind --quiet --error-exitcode=99 --fair-sched=yes --leak-check=no";
    cargo.arg("--target-dir").arg(ws.target("valgrind"));
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    cargo.env("RUSTFLAGS", ATOMIC_SLOTS); // fewer messages too
    cargo.args(["--", "--test-threads=2"]);
    // They are slow.
    cargo.args(["--skip", "each_message_once", "--skip", "one_at_a_time"]);
    shell::show_and_run(&mut cargo)?;
    Ok(Some(format!("{version} over {NATIVE}")))
}

fn skipped(what: &str, why: &dyn std::fmt::Display) -> Option<String> {
    println!("{what}: skipped. {why:#}");
    None
}
