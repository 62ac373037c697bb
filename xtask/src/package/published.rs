//! Which packages of the workspace are published, and what they say of themselves.

use std::path::PathBuf;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::{Result, Workspace, shell};

/// A package that may be published.
#[derive(Clone, Debug)]
pub struct Published {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its features on docs.rs, by which its documentation is built there.
    pub documented: Vec<String>,
    /// All that `cargo metadata` says of it.
    pub said: Value,
}

impl Published {
    /// The name of its file.
    #[must_use]
    pub fn file(&self) -> String {
        format!("{}-{}.crate", self.name, self.version)
    }
}

/// The packages of the workspace that do not say `publish = false`.
///
/// # Errors
/// When cargo cannot read the workspace.
pub fn of(ws: &Workspace) -> Result<Vec<Published>> {
    let mut cargo = shell::stable_cargo(ws.root());
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--quiet"]);
    let said: Value =
        serde_json::from_str(&shell::output(&mut cargo)?).context("cargo metadata")?;
    let packages = said["packages"].as_array().context("cargo metadata names no packages")?;
    let published: Vec<Published> =
        packages.iter().filter(|said| said["publish"].is_null()).map(one).collect::<Result<_>>()?;
    ensure!(!published.is_empty(), "no package is published");
    Ok(published)
}

fn one(said: &Value) -> Result<Published> {
    let text = |key: &str| {
        let text = said[key].as_str().map(str::to_owned);
        text.with_context(|| format!("cargo metadata says no {key} of {}", said["name"]))
    };
    let mut folder = PathBuf::from(text("manifest_path")?);
    folder.pop();
    let features = said.pointer("/metadata/docs/rs/features").and_then(Value::as_array);
    let documented = features.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    Ok(Published {
        name: text("name")?,
        version: text("version")?,
        folder,
        documented: documented.collect(),
        said: said.clone(),
    })
}
