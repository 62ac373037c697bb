//! A copy of the nightly made of links, with the source of `core` added. The original stays as it is.
//!
//! rustc finds its sysroot from where `librustc_driver` really lies, so that library and the programs
//! must be files of the copy: hard links, or copies across file systems. All else is a symbolic link.

use std::path::{Path, PathBuf};

use anyhow::Context;
use fs_err as fs;
use ring_builder::Toolchain;

use crate::{Result, Workspace, pins, toolchain, workspace};

/// The file in the copy's root that says which `rust-src` it holds. Written last: it marks completion.
pub const NOTE: &str = "rust-src.version";

/// Where the copy lies.
#[must_use]
pub fn folder(ws: &Workspace) -> PathBuf {
    ws.tools().join("ring-nightly")
}

/// The linked copy of `nightly` whose `rust-src` is `library`, made anew unless it is complete.
///
/// # Errors
/// When the copy cannot be made, or its rustc does not take the copy for its sysroot.
pub fn ensure(ws: &Workspace, nightly: &Toolchain, library: &Path) -> Result<Toolchain> {
    let copy = folder(ws);
    let works = || toolchain::at(&copy).filter(Toolchain::has_source);
    if let Some(toolchain) = works().filter(|_| copy.join(NOTE).is_file()) {
        return Ok(toolchain);
    }
    workspace::remove(&copy)?;
    for part in ["bin", "lib", "lib/rustlib"] {
        fs::create_dir_all(copy.join(part))?;
        for entry in fs::read_dir(nightly.sysroot().join(part))?.flatten() {
            let (source, name) = (entry.path(), entry.file_name());
            let target = copy.join(part).join(&name);
            match (part, &*name.to_string_lossy()) {
                ("lib", "rustlib") | ("lib/rustlib", "src") => {}
                ("bin", _) => file(&source, &target)?,
                ("lib", name) if name.starts_with("librustc_driver") => file(&source, &target)?,
                _ => link(&source, &target)?,
            }
        }
    }
    fs::create_dir_all(copy.join("lib/rustlib/src/rust"))?;
    link(library, &copy.join("lib/rustlib/src/rust/library"))?;
    workspace::write(&copy.join(NOTE), pins::RUST_SRC.version)?;
    works().with_context(|| format!("the linked copy in {} does not work", copy.display()))
}

/// A file of the copy: a hard link where the file system allows it.
fn file(original: &Path, copy: &Path) -> Result {
    if fs::hard_link(original, copy).is_err() {
        fs::copy(original, copy)?;
    }
    Ok(())
}

/// Makes a symbolic link.
///
/// # Errors
/// When it cannot be made.
#[cfg(unix)]
pub fn link(original: &Path, link: &Path) -> Result {
    Ok(fs::os::unix::fs::symlink(original, link)?)
}

/// Makes none: symbolic links are Unix's.
///
/// # Errors
/// Always.
#[cfg(not(unix))]
pub fn link(_: &Path, link: &Path) -> Result {
    anyhow::bail!(
        "{} needs symbolic links\n  try: rustup toolchain install {} --profile minimal --component rust-src, \
         or CUDA_PATH=FOLDER of a CUDA toolkit",
        link.display(),
        pins::NIGHTLY
    )
}
