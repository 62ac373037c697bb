//! The pinned nightly with its source: rustup's, or a linked copy of it that `setup` made.

use anyhow::bail;
use ring_builder::Toolchain;

use crate::{Result, Workspace, pins, setup};

pub use ring_builder::toolchain::installed;

/// The toolchain at `sysroot`, when its rustc is of the pinned commit.
#[must_use]
pub fn at(sysroot: &std::path::Path) -> Option<Toolchain> {
    Toolchain::at(sysroot).ok().filter(Toolchain::is_pinned)
}

/// Which `rust-src` it holds, for the manifest.
#[must_use]
pub fn source_version(toolchain: &Toolchain) -> String {
    let note = toolchain.sysroot().join(setup::linked::NOTE);
    std::fs::read_to_string(note).map_or_else(
        |_| format!("rustup {}", pins::NIGHTLY),
        |version| format!("debian {}", version.trim()),
    )
}

/// The pinned nightly with its source, ready to compile device code.
///
/// # Errors
/// When there is none yet; the error says what is missing and how to get it.
pub fn find(ws: &Workspace) -> Result<Toolchain> {
    let linked = at(&setup::linked::folder(ws));
    if let Some(ready) = installed().chain(linked).find(Toolchain::has_source) {
        return Ok(ready);
    }
    let missing = match installed().next() {
        None => {
            format!(
                "no installed toolchain is rustc {} ({})",
                pins::RUSTC_RELEASE,
                pins::RUSTC_COMMIT
            )
        }
        Some(found) => format!(
            "the pinned nightly ({}) is installed without rust-src, in {}",
            pins::NIGHTLY,
            found.sysroot().display()
        ),
    };
    bail!(
        "{missing}\n  try: cargo xtask setup\n   or: rustup toolchain install {} --profile minimal \
         --component rust-src",
        pins::NIGHTLY
    )
}
