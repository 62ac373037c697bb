//! The pinned toolchain and flags of device code.

use crate::Arch;

/// The name under which rustup knows the pinned nightly.
pub const NIGHTLY: &str = "nightly-2026-05-20";
/// Its version, as `rustc -vV` says it.
pub const RUSTC_RELEASE: &str = "1.97.0-nightly";
/// Its commit: any installed toolchain of this commit is the pinned one.
pub const RUSTC_COMMIT: &str = "e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a";

/// The target triple of the device.
pub const TARGET: &str = "nvptx64-nvidia-cuda";

/// Flags of every crate in a device build, `core` included.
///
/// None of them names a folder: a path in a flag would enter the crates' hashes and so the symbols.
/// `location-detail=none` leaves no source path to embed. The linker is a no-op because `--emit=asm`
/// after fat LTO already is the whole module.
#[must_use]
pub fn rustflags(arch: Arch) -> Vec<String> {
    let cpu = format!("target-cpu={arch}");
    let feature = format!("target-feature={}", arch.feature());
    ["-C", &cpu, "-C", &feature, "-C", "linker=true", "-Z", "location-detail=none"]
        .map(str::to_owned)
        .to_vec()
}
