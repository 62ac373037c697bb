//! `cargo xtask deny`: licences, versions and origins of all dependencies, by cargo-deny.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::{Result, Workspace, shell};

/// The cargo-deny that is installed and run.
const VERSION: &str = "0.20.2";

/// Workspaces besides the root's. That of `rust-cuda` takes crates from git, so it is left out; the
/// releases that it replaces are optional dependencies of the root's workspace.
const OTHERS: [&str; 1] = ["examples/04-own-kernel"];

/// Optional crates of 2022 with dependencies of that time. Their licences and origins are checked, but not
/// that the whole tree has one version of each crate.
const OF_RUST_CUDA: [&str; 2] = ["cuda_std", "cuda_builder"];

/// Checks the trees of dependencies against `deny.toml`; with `advisories` also against the database of
/// known vulnerabilities and unmaintained crates, which is fetched from GitHub.
///
/// # Errors
/// When cargo-deny cannot be installed or the database not be fetched, and whatever is found.
pub fn run(ws: &Workspace, advisories: bool) -> Result {
    let deny = installed(ws)?;
    let mut manifests = vec![ws.root().join("Cargo.toml")];
    manifests.extend(OTHERS.iter().map(|folder| ws.root().join(folder).join("Cargo.toml")));
    for manifest in manifests {
        let command = || {
            let mut command = shell::command(&deny);
            command.current_dir(ws.root()).arg("--manifest-path").arg(&manifest);
            command.args(["--all-features", "--config"]).arg(ws.root().join("deny.toml"));
            command
        };
        let mut what = vec!["licenses", "sources"];
        what.extend(advisories.then_some("advisories"));
        show_and_run(command().args(["check", "--hide-inclusion-graph"]).args(what))?;
        let without = OF_RUST_CUDA.iter().flat_map(|name| ["--exclude", name]);
        show_and_run(command().args(without).args(["check", "bans"]))?;
    }
    if !advisories {
        println!(
            "deny: known vulnerabilities and unmaintained crates were NOT looked up; \
             `cargo xtask deny --advisories` does, where GitHub can be reached"
        );
    }
    Ok(())
}

/// The pinned cargo-deny, installed into the target folder if it is not there.
fn installed(ws: &Workspace) -> Result<PathBuf> {
    let program =
        ws.tools().join("bin").join("cargo-deny").with_extension(std::env::consts::EXE_EXTENSION);
    let found = shell::output(shell::command(&program).arg("--version"));
    if found.is_ok_and(|said| said.split_whitespace().any(|word| word == VERSION)) {
        return Ok(program);
    }
    let begun = Instant::now();
    println!("deny: installing cargo-deny {VERSION} into {}", ws.tools().display());
    let mut cargo = shell::stable_cargo(ws.root());
    // What it does takes seconds either way, and to optimise it takes minutes.
    cargo.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--quiet"]);
    cargo.args(["--no-default-features", "--root"]).arg(ws.tools());
    cargo.arg("--target-dir").arg(ws.target("deny"));
    shell::run(&mut cargo)?;
    println!("deny: installed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(program)
}

fn show_and_run(command: &mut Command) -> Result {
    println!("running {}", shell::words(command));
    shell::run(command)
}
