//! The clone and its target folder; reading and writing files.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use fs_err as fs;

use crate::Result;
use crate::pins::Module;

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
            Some(dir) => std::path::absolute(dir).context("CARGO_TARGET_DIR")?,
            None => root.join("target"),
        };
        Self::at(root, target)
    }

    /// The workspace at `root`, building into `target`.
    ///
    /// # Errors
    /// When `root` holds no Cargo.toml.
    pub fn at(root: PathBuf, target: PathBuf) -> Result<Self> {
        ensure!(
            root.join("Cargo.toml").is_file(),
            "no Cargo.toml in {}\n  try: run it as `cargo xtask` inside the clone",
            root.display()
        );
        Ok(Self { root, target })
    }

    /// The clone's root.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds this workspace.
    #[must_use]
    pub fn outputs(&self) -> &Path {
        &self.target
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

    /// Its checked-in cubin for an architecture, beside the PTX: `kernels.sm_90.cubin`.
    #[must_use]
    pub fn cubin(&self, module: &Module, arch: u32) -> PathBuf {
        self.ptx(module).with_extension(format!("sm_{arch}.cubin"))
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
    Ok(fs::read_to_string(path)?.replace("\r\n", "\n"))
}

/// The files below a folder, as paths from there, sorted; none if there is no such folder.
///
/// # Errors
/// When a folder cannot be read.
pub fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(at) = folders.pop() {
        let Ok(entries) = fs::read_dir(root.join(&at)) else { continue };
        for entry in entries {
            let entry = entry?;
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
pub fn write<T: AsRef<[u8]> + ?Sized>(path: &Path, contents: &T) -> Result {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    Ok(fs::write(path, contents)?)
}

/// Removes a folder with all that is in it, if it is there.
///
/// # Errors
/// When it cannot be removed; the error names what cannot.
pub fn remove(folder: &Path) -> Result {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
