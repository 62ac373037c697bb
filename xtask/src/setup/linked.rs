//! A copy of the nightly made of links, with the source of `core` added. The original stays as it is.
//!
//! rustc finds its sysroot from where `librustc_driver` really lies, so that library and the programs
//! must be files of the copy: hard links, or copies across file systems. All else is a symbolic link.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use ring_builder::Toolchain;

use crate::{Error, Result, Workspace, pins, toolchain, workspace};

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
    if copy.join(NOTE).is_file()
        && let Some(toolchain) = toolchain::at(&copy).filter(Toolchain::has_source)
    {
        return Ok(toolchain);
    }
    if copy.exists() {
        fs::remove_dir_all(&copy).map_err(|e| Error::io(&copy, &e))?;
    }
    let original = nightly.sysroot();
    mirror(&original.join("bin"), &copy.join("bin"), &|_| Way::File)?;
    mirror(&original.join("lib"), &copy.join("lib"), &|name| match name.to_str() {
        Some("rustlib") => Way::Skip,
        Some(name) if name.starts_with("librustc_driver") => Way::File,
        _ => Way::Link,
    })?;
    mirror(&original.join("lib/rustlib"), &copy.join("lib/rustlib"), &|name| {
        if name == "src" { Way::Skip } else { Way::Link }
    })?;
    link(library, &copy.join("lib/rustlib/src/rust/library"))?;
    workspace::write(&copy.join(NOTE), pins::DEBIAN_VERSION)?;

    let toolchain = toolchain::at(&copy).filter(Toolchain::has_source);
    toolchain
        .ok_or_else(|| Error::new(format!("the linked copy in {} does not work", copy.display())))
}

/// How an entry comes into the copy.
enum Way {
    File,
    Link,
    Skip,
}

fn mirror(from: &Path, to: &Path, way: &dyn Fn(&OsStr) -> Way) -> Result {
    fs::create_dir_all(to).map_err(|e| Error::io(to, &e))?;
    for entry in fs::read_dir(from).map_err(|e| Error::io(from, &e))?.flatten() {
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match way(&entry.file_name()) {
            Way::Skip => {}
            Way::Link => link(&source, &target)?,
            Way::File => {
                if fs::hard_link(&source, &target).is_err() {
                    fs::copy(&source, &target).map_err(|e| Error::io(&source, &e))?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(original: &Path, link: &Path) -> Result {
    if let Some(parent) = link.parent() {
        fs::create_dir_all(parent).map_err(|e| Error::io(parent, &e))?;
    }
    std::os::unix::fs::symlink(original, link).map_err(|e| Error::io(link, &e))
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> Result {
    Err(Error::new("a linked toolchain needs symbolic links").hint(format!(
        "rustup toolchain install {} --profile minimal --component rust-src",
        pins::NIGHTLY
    )))
}
