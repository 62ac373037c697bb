//! `cargo xtask semver`: whether what users wrote against the last version still compiles, by cargo-semver-checks.

use std::process::Command;

use crate::{Result, Workspace, pins, shell};

/// The packages that users depend on.
const LIBRARIES: [&str; 5] =
    ["ring-shared", "ring-ptx", "ring-device", "ring-host", "ring-builder"];

/// Compares the public interfaces with those of the last version. A break needs a new minor version in Cargo.toml, while the
/// first number is 0.
///
/// # Errors
/// When cargo-semver-checks cannot be installed, or finds a break that the version does not tell.
pub fn run(ws: &Workspace) -> Result {
    let Some(version) = last_version(ws) else {
        println!(
            "semver: this clone has neither a tag v* nor {}: NOTHING was compared\n  try: git fetch --tags --unshallow",
            pins::LAST_VERSION
        );
        return Ok(());
    };
    let mut checks = shell::command(pins::CARGO_SEMVER_CHECKS.program(ws)?);
    checks.current_dir(ws.root()).args(["semver-checks", "--baseline-rev", &version]);
    for name in LIBRARIES {
        checks.args(["--package", name]);
    }
    checks.env("CARGO_TARGET_DIR", ws.target("semver"));
    shell::show_and_run(&mut checks)
}

/// The last tag, or where tags did not come with the clone the commit of the last version.
fn last_version(ws: &Workspace) -> Option<String> {
    let git = |args: &[&str]| {
        let mut git: Command = shell::command("git");
        shell::output(git.current_dir(ws.root()).args(args)).ok().map(|said| said.trim().to_owned())
    };
    let tag = git(&["describe", "--tags", "--match", "v*", "--abbrev=0"]);
    let commit = || {
        let object = format!("{}^{{commit}}", pins::LAST_VERSION);
        git(&["cat-file", "-e", &object]).map(|_| pins::LAST_VERSION.to_owned())
    };
    tag.or_else(commit)
}
