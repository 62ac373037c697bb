//! What the PTX is made from, digested: sources, manifests, profile, registry crates, toolchain, flags.

use std::path::{Path, PathBuf};

use anyhow::Context;
use ring_builder::digest;
use toml_edit::{DocumentMut, Item};

use crate::pins::{self, Module};
use crate::{Result, Workspace, lock, workspace};

/// Profiles of the root Cargo.toml that reach the device build.
const PROFILES: [&str; 2] = ["release", "device"];

/// The inputs as `name`, `sha256` pairs in a fixed order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// One pair an input. File names are relative to the root, with `/`.
    pub digests: Vec<(String, String)>,
}

impl Inputs {
    /// Digests a module's inputs as they are in the clone.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub fn of(ws: &Workspace, module: &Module) -> Result<Self> {
        let root = ws.root();
        let mut digests = Vec::new();
        for file in files(root, module)? {
            let digest = digest::sha256(&workspace::read(&root.join(&file))?);
            digests.push((file, digest));
        }
        let cargo_toml = parsed(&root.join("Cargo.toml"))?;
        for name in PROFILES {
            let profile = cargo_toml.get("profile").and_then(|profiles| profiles.get(name));
            let text = profile.map(plain).unwrap_or_default();
            digests.push((format!("Cargo.toml[profile.{name}]"), digest::sha256(&text)));
        }
        let names = dependencies(root, module)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let shared = digest::sha256(&shared_lines(&cargo_toml, &names));
        digests.push(("Cargo.toml[workspace]".into(), shared));
        let lock = workspace::read(&root.join("Cargo.lock"))?;
        let registry = lock::closure(&lock, &names)?.join("\n");
        digests.push(("Cargo.lock".into(), digest::sha256(&registry)));
        Ok(Self { digests })
    }

    /// One digest of all inputs and of the pinned toolchain and flags.
    #[must_use]
    pub fn combined(&self, module: &Module) -> String {
        let mut all = vec![
            pins::RUSTC_COMMIT.to_owned(),
            pins::rustflags(pins::ARCH).join(" "),
            module.cargo_args().join(" "),
        ];
        all.extend(self.digests.iter().map(|(name, digest)| format!("{name} = {digest}")));
        digest::sha256(&all.join("\n"))
    }

    /// The names of inputs that differ between `self` and `other`, in either direction.
    #[must_use]
    pub fn changed(&self, other: &Self) -> Vec<String> {
        let missing = |a: &Self, b: &Self| -> Vec<String> {
            a.digests
                .iter()
                .filter(|pair| !b.digests.contains(pair))
                .map(|pair| pair.0.clone())
                .collect()
        };
        let mut names = missing(self, other);
        names.extend(missing(other, self));
        names.sort();
        names.dedup();
        names
    }
}

/// Cargo.toml, build.rs and src of the device's crates, sorted. Tests and benches do not reach the PTX.
fn files(root: &Path, module: &Module) -> Result<Vec<String>> {
    let mut found: Vec<PathBuf> = Vec::new();
    for name in module.crates {
        let folder = Path::new(name);
        let beside = ["Cargo.toml", "build.rs"].map(|file| folder.join(file));
        found.extend(beside.into_iter().filter(|file| root.join(file).is_file()));
        let sources = workspace::files(&root.join(name).join("src"))?;
        let sources = sources.iter().filter(|file| file.extension().is_some_and(|e| e == "rs"));
        found.extend(sources.map(|file| folder.join("src").join(file)));
    }
    let mut names: Vec<String> =
        found.iter().map(|path| path.to_string_lossy().replace('\\', "/")).collect();
    names.sort();
    Ok(names)
}

fn parsed(path: &Path) -> Result<DocumentMut> {
    workspace::read(path)?.parse().with_context(|| path.display().to_string())
}

/// A value of TOML with all tables below it, one `key = value` a line, without comments and spaces around.
fn plain(item: &Item) -> String {
    match item.as_table_like() {
        Some(table) => {
            table.iter().map(|(key, item)| format!("{key}: {{\n{}}}\n", plain(item))).collect()
        }
        None => format!(
            "{}\n",
            item.clone().into_value().map_or_else(
                |_| String::new(),
                |mut value| {
                    value.decor_mut().clear();
                    value.to_string()
                }
            )
        ),
    }
}

/// Direct dependencies of the device's crates: the plain table and those for the device's architecture.
fn dependencies(root: &Path, module: &Module) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in module.crates {
        let toml = parsed(&root.join(name).join("Cargo.toml"))?;
        let targets = toml.get("target").and_then(Item::as_table_like).into_iter();
        let device = targets.flat_map(|targets| targets.iter());
        let device = device.filter(|(target, _)| target.contains("nvptx")).map(|(_, item)| item);
        let tables = [toml.as_item()].into_iter().chain(device);
        for table in tables.filter_map(|item| item.get("dependencies")?.as_table_like()) {
            names.extend(table.iter().map(|(name, _)| name.to_owned()));
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// What the crates inherit of the root Cargo.toml: the edition and their dependencies.
fn shared_lines(cargo_toml: &DocumentMut, names: &[&str]) -> String {
    let of = |table: &str, key: &str| {
        let found = cargo_toml.get("workspace")?.get(table)?.get(key)?;
        Some(format!("{key} = {}", plain(found)))
    };
    let dependencies = names.iter().filter_map(|name| of("dependencies", name));
    of("package", "edition").into_iter().chain(dependencies).collect()
}
