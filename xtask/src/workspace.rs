//! The clone and its target folder; reading and writing files.

use std::path::{Path, PathBuf};

use crate::pins::Module;
use crate::{Error, Result};

/// The clone and its target folder.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// The workspace that this xtask was built in, with `CARGO_TARGET_DIR` respected.
    ///
    /// # Errors
    /// When the folder above xtask holds no Cargo.toml.
    pub fn locate() -> Result<Self> {
        let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest_dir.parent().unwrap_or(&manifest_dir).to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(dir) => std::path::absolute(&dir).map_err(|e| Error::io(Path::new(&dir), &e))?,
            None => root.join("target"),
        };
        Self::at(root, target)
    }

    /// The workspace at `root`, building into `target`.
    ///
    /// # Errors
    /// When `root` holds no Cargo.toml.
    pub fn at(root: PathBuf, target: PathBuf) -> Result<Self> {
        if !root.join("Cargo.toml").is_file() {
            return Err(Error::new(format!("no Cargo.toml in {}", root.display()))
                .hint("run it as `cargo xtask` inside the clone"));
        }
        Ok(Self { root, target })
    }

    /// The clone's root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A target folder of its own for one kind of build, so that flags do not evict each other.
    #[must_use]
    pub fn target(&self, kind: &str) -> PathBuf {
        self.target.join("xtask").join(kind)
    }

    /// Where `setup` puts what it fetched.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.target.join("tools")
    }

    /// A module's checked-in PTX.
    #[must_use]
    pub fn ptx(&self, module: &Module) -> PathBuf {
        self.root.join(module.ptx)
    }

    /// The manifest beside it.
    #[must_use]
    pub fn manifest(&self, module: &Module) -> PathBuf {
        self.ptx(module).with_extension("manifest")
    }
}

/// Reads a text file; line ends are made `\n`, so that a checkout with `autocrlf` digests alike.
///
/// # Errors
/// When it cannot be read; the error names the file.
pub fn read(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, &e))?;
    Ok(text.replace("\r\n", "\n"))
}

/// The files below a folder, as paths from there, sorted; none if there is no such folder.
///
/// # Errors
/// When a folder cannot be read.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(at) = folders.pop() {
        let folder = root.join(&at);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let entry = entry.map_err(|e| Error::io(&folder, &e))?;
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let list = if is_folder { &mut folders } else { &mut found };
            list.push(at.join(entry.file_name()));
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a file, making its folder.
///
/// # Errors
/// When it cannot be written; the error names the file.
pub fn write(path: &Path, text: &str) -> Result {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(|e| Error::io(dir, &e))?;
    }
    std::fs::write(path, text).map_err(|e| Error::io(path, &e))
}
