//! Running other programs from a known environment.

use std::ffi::OsStr;
use std::process::Command;

/// Variables of cargo that say where things are, and nothing of what is built.
const KEPT: [&str; 9] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_INSTALL_ROOT",
    "CARGO_MAKEFLAGS",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_SOURCE_",
    "CARGO_TERM_COLOR",
];

/// Variables, or how their names begin, that change what cargo or rustc produce, or which toolchain
/// rustup picks; and those that a build script is given.
const STEERING: [&str; 8] = [
    "CARGO",
    "__CARGO",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "LD_LIBRARY_PATH",
    "DYLD_",
];
const SCRIPT: [&str; 7] =
    ["DEBUG", "HOST", "NUM_JOBS", "OPT_LEVEL", "OUT_DIR", "PROFILE", "TARGET"];

/// A command without the variables that cargo, rustup or the user's shell set for other builds.
#[must_use]
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if steers(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command
}

fn steers(name: &str) -> bool {
    let begins = |with: &[&str]| with.iter().any(|prefix| name.starts_with(prefix));
    SCRIPT.contains(&name) || (begins(&STEERING) && !begins(&KEPT))
}

#[cfg(test)]
mod tests {
    use super::steers;

    #[test]
    fn what_steers_another_build_is_left_out() {
        let names = "CARGO CARGO_ENCODED_RUSTFLAGS CARGO_TARGET_DIR CARGO_BUILD_TARGET OUT_DIR TARGET \
                     CARGO_PROFILE_RELEASE_LTO CARGO_FEATURE_GPU CARGO_MANIFEST_DIR CARGO_INCREMENTAL \
                     RUSTC RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER RUSTDOCFLAGS RUSTFLAGS RUSTUP_TOOLCHAIN \
                     LD_LIBRARY_PATH CARGO_TERM_VERBOSE CARGO_UNSTABLE_BUILD_STD";
        for name in names.split_whitespace() {
            assert!(steers(name), "{name}");
        }
    }

    #[test]
    fn where_things_are_stays() {
        let names = "PATH HOME CARGO_HOME RUSTUP_HOME CARGO_MAKEFLAGS CARGO_NET_OFFLINE RUST_BACKTRACE \
                     CARGO_REGISTRIES_X_INDEX CARGO_TERM_COLOR TARGETS";
        for name in names.split_whitespace() {
            assert!(!steers(name), "{name}");
        }
    }
}
