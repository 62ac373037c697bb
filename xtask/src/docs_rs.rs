//! `cargo xtask docs`: the documentation, as docs.rs builds it.

use crate::{Result, Workspace, package, shell, toolchain};

/// Documents the whole workspace by the nightly, with the features that each published package names for docs.rs.
///
/// # Errors
/// When rustdoc warns of anything.
pub fn run(ws: &Workspace) -> Result {
    let mut features = Vec::new();
    for package in package::of(ws)? {
        features
            .extend(package.documented.iter().map(|feature| format!("{}/{feature}", package.name)));
    }
    let mut cargo = toolchain::find(ws)?.cargo(ws.root());
    cargo.args(["doc", "--workspace", "--no-deps", "--features"]).arg(features.join(","));
    cargo.arg("--target-dir").arg(ws.target("docs"));
    // What [package.metadata.docs.rs] passes too.
    cargo.env("RUSTDOCFLAGS", "--cfg docsrs -D warnings");
    shell::show_and_run(&mut cargo)
}
