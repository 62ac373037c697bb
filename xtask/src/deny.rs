//! `cargo xtask deny`: licences, versions and origins of all dependencies, by cargo-deny.

use crate::{Result, Workspace, pins, shell};

/// Workspaces besides the root's.
const OTHERS: [&str; 1] = ["examples/04-own-kernel"];

/// An optional crate of 2022 with dependencies of that time, in whose place a revision from git is compiled. Its
/// licence and origin are checked, but not that the whole tree has one version of each crate.
const OF_RUST_CUDA: &str = "cuda_std";

/// Checks the trees of dependencies against `deny.toml`; with `advisories` also against the database of
/// known vulnerabilities and unmaintained crates, which is fetched from GitHub.
///
/// # Errors
/// When cargo-deny cannot be installed or the database not be fetched, and whatever is found.
pub fn run(ws: &Workspace, advisories: bool) -> Result {
    let deny = pins::CARGO_DENY.program(ws)?;
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
        shell::show_and_run(command().args(["check", "--hide-inclusion-graph"]).args(what))?;
        let bans = ["--exclude", OF_RUST_CUDA, "check", "bans"];
        shell::show_and_run(command().args(bans))?;
    }
    if !advisories {
        println!(
            "deny: known vulnerabilities and unmaintained crates were NOT looked up; \
             `cargo xtask deny --advisories` does, where GitHub can be reached"
        );
    }
    Ok(())
}
