//! The workspace that a new package would belong to, if any.

use ring_builder::cargo;
use std::path::{Path, PathBuf};
use toml_edit::DocumentMut;

/// The Cargo.toml of the next workspace above a folder, whether or not the folder is for it.
pub fn workspace_above(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    let mut above = folder.ancestors().skip(1).map(|folder| folder.join("Cargo.toml"));
    above.find(|file| is_workspace(file))
}

/// Whether a Cargo.toml is the root of a workspace.
pub fn is_workspace(file: &Path) -> bool {
    let toml = std::fs::read_to_string(file).ok().and_then(|text| text.parse::<DocumentMut>().ok());
    toml.is_some_and(|toml| toml.contains_key("workspace"))
}

/// Whether the workspace above a package has it as a member, by a pattern of its own. Cargo refuses a package
/// without a `[workspace]` below one that does not.
pub fn is_member(manifest: &Path) -> bool {
    cargo::metadata(manifest).is_ok()
}
