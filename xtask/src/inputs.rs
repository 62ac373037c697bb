//! What the PTX is made from, digested: sources, manifests, profile, registry crates, toolchain, flags.

use std::fs;
use std::path::{Path, PathBuf};

use ring_builder::{digest, text};

use crate::pins::{self, Module};
use crate::{Error, Result, Workspace, lock, workspace};

/// Tables of the root Cargo.toml that reach the device build as a whole, with the tables below them.
const TABLES: [&str; 2] = ["profile.release", "profile.device"];

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
        let cargo_toml = workspace::read(&root.join("Cargo.toml"))?;
        let whole = |table: &&str| TABLES.iter().any(|prefix| table.starts_with(prefix));
        for table in text::sections(&cargo_toml).into_iter().filter(whole) {
            let digest = digest::sha256(&text::section(&cargo_toml, table).join("\n"));
            digests.push((format!("Cargo.toml[{table}]"), digest));
        }
        let names = dependencies(root, module)?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        digests.push((
            "Cargo.toml[workspace]".into(),
            digest::sha256(&shared_lines(&cargo_toml, &names)),
        ));
        let lock = workspace::read(&root.join("Cargo.lock"))?;
        let registry = lock::closure(&lock, &names).join("\n");
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
    let mut found = Vec::new();
    for name in module.crates {
        let folder = root.join(name);
        found.extend(
            ["Cargo.toml", "build.rs"]
                .map(|file| folder.join(file))
                .into_iter()
                .filter(|p| p.is_file()),
        );
        walk(&folder.join("src"), &mut found)?;
    }
    let relative = |path: PathBuf| {
        let path = path.strip_prefix(root).unwrap_or(&path);
        path.to_string_lossy().replace('\\', "/")
    };
    let mut names: Vec<String> = found.into_iter().map(relative).collect();
    names.sort();
    Ok(names)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result {
    for entry in fs::read_dir(folder).map_err(|e| Error::io(folder, &e))?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Direct dependencies of the device's crates: the plain table and those for the device's architecture.
fn dependencies(root: &Path, module: &Module) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for name in module.crates {
        let toml = workspace::read(&root.join(name).join("Cargo.toml"))?;
        for table in text::sections(&toml) {
            let device = table.ends_with(".dependencies") && table.contains("nvptx");
            if table == "dependencies" || device {
                names.extend(
                    text::section(&toml, table).into_iter().map(|line| text::key(line).to_owned()),
                );
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

/// Lines of the root Cargo.toml that the crates inherit: the edition and their dependencies.
fn shared_lines(cargo_toml: &str, names: &[&str]) -> String {
    let package = text::section(cargo_toml, "workspace.package");
    let dependencies = text::section(cargo_toml, "workspace.dependencies");
    let edition = package.into_iter().filter(|line| text::key(line) == "edition");
    let used = dependencies.into_iter().filter(|line| names.contains(&text::key(line)));
    edition.chain(used).collect::<Vec<_>>().join("\n")
}
