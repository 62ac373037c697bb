//! The crate that is compiled.

use crate::{BuildError, text};
use std::fs;
use std::path::{Path, PathBuf};

/// A package and where it lies.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its folder, absolute.
    pub folder: PathBuf,
}

impl Package {
    /// The package in `folder`.
    pub fn at(folder: &Path) -> Result<Package, BuildError> {
        let folder = std::path::absolute(folder).map_err(BuildError::io(folder))?;
        if !folder.is_dir() {
            return Err(BuildError::NoFolder(folder));
        }
        let file = folder.join("Cargo.toml");
        if !file.is_file() {
            return Err(BuildError::NoCargoToml(folder));
        }
        let toml = fs::read_to_string(&file).map_err(BuildError::io(&file))?;
        let package = text::section(&toml, "package");
        let name = package.into_iter().find(|line| text::key(line) == "name");
        match name.and_then(text::quoted) {
            Some(name) => Ok(Package { name: name.to_owned(), folder }),
            None => Err(BuildError::NoPackage(file)),
        }
    }

    /// The folder of its workspace: the next one up with a Cargo.lock, which a build leaves there.
    pub fn workspace(&self) -> &Path {
        let locked = |folder: &&Path| folder.join("Cargo.lock").is_file();
        self.folder.ancestors().find(locked).unwrap_or(&self.folder)
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
        scratch.put("virtual/Cargo.toml", "[workspace]\nname = \"x\"\n");
        assert!(said("virtual").contains("no [package]"), "{}", said("virtual"));
    }

    #[test]
    fn name_and_workspace_are_found() {
        let scratch = Scratch::new("package-found");
        scratch.put("Cargo.lock", "");
        scratch.put("a/b/Cargo.toml", "[package] # ours\nversion = \"1\"\nname = \"my-kernels\"\n");
        let package = Package::at(&scratch.0.join("a/b")).unwrap();
        assert_eq!(package.name, "my-kernels");
        assert_eq!(package.workspace(), scratch.0);
    }
}
