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

/// A string of TOML on one line, which has no control characters but by their number.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Where a package comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A folder.
    Path(PathBuf),
    /// A repository, and the branch, tag or revision of it, if one was named.
    Git(String, Option<(String, String)>),
    /// The registry, and the version.
    Registry(String),
}

impl Origin {
    /// What a dependency says of it in Cargo.toml.
    #[must_use]
    pub fn toml(&self) -> String {
        match self {
            Origin::Path(path) => format!("path = {}", quoted(&path.to_string_lossy())),
            Origin::Git(url, None) => format!("git = {}", quoted(url)),
            Origin::Git(url, Some((kind, name))) => {
                format!("git = {}, {kind} = {}", quoted(url), quoted(name))
            }
            Origin::Registry(version) => format!("version = \"={version}\""),
        }
    }

    /// As cargo's metadata says it of a package.
    fn of(package: &Value) -> Origin {
        let source = package["source"].as_str().unwrap_or_default();
        if let Some(git) = source.strip_prefix("git+") {
            let named = git.split('#').next().unwrap_or_default();
            let (url, reference) = named.split_once('?').unwrap_or((named, ""));
            let reference = reference.split_once('=');
            let reference = reference.map(|(kind, name)| (kind.to_owned(), name.to_owned()));
            Origin::Git(url.to_owned(), reference)
        } else if source.is_empty() {
            Origin::Path(folder(package))
        } else {
            Origin::Registry(text(&package["version"]))
        }
    }
}

/// Where the package of that name in `manifest` takes its dependency from, if it has it.
///
/// # Errors
/// When cargo does not take the file, or cannot resolve its dependencies; what it says.
pub fn dependency(manifest: &Path, package: &str, name: &str) -> Result<Option<Origin>, String> {
    let found = ask(manifest, &[])?;
    let packages = || found["packages"].as_array().into_iter().flatten();
    let ours = packages()
        .find(|one| one["name"] == package && manifest.parent() == Some(folder(one).as_path()));
    let Some(ours) = ours else { return Ok(None) };
    let mut nodes = found["resolve"]["nodes"].as_array().into_iter().flatten();
    let node = nodes.find(|node| node["id"] == ours["id"]);
    let mut ids = node.and_then(|node| node["dependencies"].as_array()).into_iter().flatten();
    let of_name = |id: &Value| packages().find(|one| one["id"] == *id && one["name"] == name);
    Ok(ids.find_map(of_name).map(Origin::of))
}

/// The members of a workspace. Asks cargo, and no registry.
///
/// # Errors
/// When cargo does not take the file; what it says.
pub fn metadata(manifest: &Path) -> Result<Metadata, String> {
    let found = ask(manifest, &["--no-deps", "--offline"])?;
    let packages = found["packages"].as_array().into_iter().flatten();
    let packages = packages.map(|package| (text(&package["name"]), folder(package)));
    Ok(Metadata { packages: packages.collect(), root: text(&found["workspace_root"]).into() })
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The folder of a package.
fn folder(package: &Value) -> PathBuf {
    let manifest = PathBuf::from(text(&package["manifest_path"]));
    manifest.parent().unwrap_or(&manifest).to_owned()
}

fn ask(manifest: &Path, options: &[&str]) -> Result<Value, String> {
    let mut cargo = command();
    cargo.args(["metadata", "--format-version", "1", "--quiet"]).args(options);
    cargo.arg("--manifest-path");
    // Kernels are compiled by a nightly, whose features their Cargo.toml may use; it is only read here.
    cargo.arg(manifest).env("RUSTC_BOOTSTRAP", "1");
    let output = cargo.output().map_err(|error| format!("cargo did not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_named_as_cargo_read_it() {
        let of = |source: &str| {
            let manifest = "/a/b/Cargo.toml";
            let package = serde_json::json!({ "source": source, "version": "1.2.3", "manifest_path": manifest });
            Origin::of(&package).toml()
        };
        assert_eq!(of(""), "path = \"/a/b\"");
        // A folder's name may have characters that TOML and Rust write differently.
        let path = PathBuf::from("/a\u{200b}\t/b");
        assert_eq!(Origin::Path(path).toml(), "path = \"/a\u{200b}\\u0009/b\"");
        assert_eq!(of("registry+https://index"), "version = \"=1.2.3\"");
        assert_eq!(of("git+https://host/x#abc"), "git = \"https://host/x\"");
        let branch = "git = \"https://host/x\", branch = \"main\"";
        assert_eq!(of("git+https://host/x?branch=main#abc"), branch);
    }

    #[test]
    fn a_dependency_is_found_where_cargo_resolved_it() {
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        let found = |name| dependency(&own.join("Cargo.toml"), "ring-builder", name).unwrap();
        assert_eq!(found("ring-ptx"), Some(Origin::Path(own.with_file_name("ring-ptx"))));
        assert!(
            matches!(found("sha2"), Some(Origin::Registry(version)) if version.starts_with("0.10"))
        );
        assert_eq!(found("ring-host"), None);
    }
}
