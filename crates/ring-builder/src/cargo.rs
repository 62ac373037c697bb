//! Reads packages and workspaces by `cargo metadata`.

use crate::environment;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo finds when it reads a Cargo.toml and its workspace's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The folder of the workspace: the package's own where there is none.
    pub root: PathBuf,
    /// The members of the workspace: names and folders.
    pub packages: Vec<(String, PathBuf)>,
}

/// The cargo that runs this program or build script, else the one on the path.
#[must_use]
pub fn command() -> Command {
    environment::command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Asks cargo, and no registry.
///
/// # Errors
/// When cargo does not take the file; what it says.
pub fn metadata(manifest: &Path) -> Result<Metadata, String> {
    let mut cargo = command();
    cargo.args(["metadata", "--no-deps", "--format-version", "1", "--offline", "--manifest-path"]);
    // Kernels are compiled by a nightly, whose features their Cargo.toml may use; it is only read here.
    cargo.arg(manifest).env("RUSTC_BOOTSTRAP", "1");
    let output = cargo.output().map_err(|error| format!("cargo did not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
    }
    let found: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = found["packages"].as_array().into_iter().flatten().map(|package| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        (text(&package["name"]), manifest.parent().unwrap_or(&manifest).to_owned())
    });
    Ok(Metadata { packages: packages.collect(), root: text(&found["workspace_root"]).into() })
}
