//! The crate that is compiled.

use crate::{BuildError, cargo};
use std::path::{Path, PathBuf};

/// A package and where it lies.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder, absolute.
    pub folder: PathBuf,
    /// The folder of its workspace.
    pub workspace: PathBuf,
}

impl Package {
    /// The package in `folder`.
    pub fn at(folder: &Path) -> Result<Package, BuildError> {
        let folder = std::path::absolute(folder).map_err(BuildError::io(folder))?;
        if !folder.is_dir() {
            return Err(BuildError::NoFolder(folder));
        }
        let path = folder.join("Cargo.toml");
        if !path.is_file() {
            return Err(BuildError::NoCargoToml(folder));
        }
        let found = match cargo::metadata(&path) {
            Ok(found) => found,
            Err(said) => return Err(BuildError::Cargo { path, said }),
        };
        // Cargo says where a folder is, whatever links lead there.
        let same = |other: &Path| {
            other == folder || other.canonicalize().ok() == folder.canonicalize().ok()
        };
        match found.packages.into_iter().find(|(_, other)| same(other)) {
            Some((name, _)) => Ok(Package { name, folder, workspace: found.root }),
            None => Err(BuildError::NoPackage(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn what_is_missing_is_named() {
        let scratch = Scratch::new("package");
        let said = |name: &str| Package::at(&scratch.0.join(name)).unwrap_err().to_string();
        assert!(said("absent").contains("there is no folder") && said("absent").contains("absent"));
        scratch.put("empty/x", "");
        assert!(said("empty").contains("no Cargo.toml in"), "{}", said("empty"));
        scratch.put("virtual/Cargo.toml", "[workspace]\nresolver = \"3\"\n");
        assert!(said("virtual").contains("no [package]"), "{}", said("virtual"));
        scratch.put("broken/Cargo.toml", "[package\n");
        assert!(said("broken").contains("cargo does not take"), "{}", said("broken"));
    }

    #[test]
    fn name_and_workspace_are_found() {
        let scratch = Scratch::new("package-found");
        scratch.put("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"a/*\"]\n");
        scratch.put("a/b/src/lib.rs", "");
        scratch
            .put("a/b/Cargo.toml", "[package] # ours\nversion = \"1.0.0\"\nname = 'my-kernels'\n");
        let package = Package::at(&scratch.0.join("a/b")).unwrap();
        assert_eq!(package.name, "my-kernels");
        assert_eq!(package.workspace.canonicalize().unwrap(), scratch.0.canonicalize().unwrap());
    }
}
