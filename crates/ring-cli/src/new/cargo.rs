//! What cargo says of a package, and of the workspace that it lies in.

use ring_builder::{environment, text};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The Cargo.toml of the next workspace above a folder, whether or not the folder is for it.
pub fn workspace_above(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    let mut above = folder.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    above.find(|file| std::fs::read_to_string(file).is_ok_and(|text| is_workspace(&text)))
}

/// Whether a Cargo.toml is the root of a workspace.
pub fn is_workspace(toml: &str) -> bool {
    let tables = text::sections(toml);
    tables.iter().any(|table| *table == "workspace" || table.starts_with("workspace."))
}

/// Whether the workspace above a package has it as a member, by a pattern of its own. Cargo refuses a package
/// without a `[workspace]` below one that does not.
pub fn is_member(manifest: &Path) -> bool {
    cargo(manifest, &["locate-project", "--workspace"]).is_ok()
}

/// The members of a package's workspace, and where that is.
pub struct Members {
    /// The folder of the workspace.
    pub root: PathBuf,
    /// Names and folders.
    pub packages: Vec<(String, PathBuf)>,
}

/// What cargo finds when it reads a Cargo.toml and its workspace's. It asks no registry.
///
/// # Errors
/// When cargo does not take it; what it says.
pub fn members(manifest: &Path) -> Result<Members, String> {
    let said = cargo(manifest, &["metadata", "--no-deps", "--format-version", "1", "--offline"])?;
    let metadata: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let packages = packages.map(|package| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        (text(&package["name"]), manifest.parent().unwrap_or(&manifest).to_owned())
    });
    Ok(Members { packages: packages.collect(), root: text(&metadata["workspace_root"]).into() })
}

fn cargo(manifest: &Path, task: &[&str]) -> Result<String, String> {
    let mut cargo = environment::command("cargo");
    cargo.args(task).arg("--manifest-path").arg(manifest);
    let output = cargo.output().map_err(|error| format!("cargo did not start: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}
