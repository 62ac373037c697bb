//! `kernels.manifest`: what the PTX beside it was made from, as `key = value` lines.

use crate::builder::Built;
use crate::compile::Compile;
use crate::package::Package;
use crate::rust_cuda::Made;
use crate::{Arch, digest, pins};
use std::fmt::Write;

/// The format's version.
const FORMAT: u32 = 1;

/// The manifest of a module that Rust-CUDA made.
pub fn by_rust_cuda(package: &Package, arch: Arch, made: &Made, built: &Built) -> String {
    let mut pairs = vec![("format", FORMAT.to_string()), ("package", package.name.clone())];
    pairs.extend(made.made_with.iter().cloned());
    pairs.extend([
        ("target", pins::TARGET.to_owned()),
        ("target-cpu", arch.to_string()),
        ("abi-version", built.abi_version.to_string()),
        ("entries", built.entries.join(", ")),
        ("sha256", digest::sha256(&made.compiled.ptx)),
    ]);
    lines(&pairs)
}

/// The manifest of a module.
pub fn text(compile: &Compile<'_>, built: &Built, ptx: &str) -> String {
    let toolchain = compile.toolchain;
    lines(&[
        ("format", FORMAT.to_string()),
        ("package", compile.package.to_owned()),
        ("rustc", toolchain.release().to_owned()),
        ("rustc-commit", toolchain.commit().to_owned()),
        ("target", pins::TARGET.to_owned()),
        ("target-cpu", compile.arch.to_string()),
        ("target-feature", compile.arch.feature()),
        ("flags", pins::rustflags(compile.arch).join(" ")),
        ("command", compile.words()),
        ("abi-version", built.abi_version.to_string()),
        ("entries", built.entries.join(", ")),
        ("sha256", digest::sha256(ptx)),
    ])
}

fn lines(pairs: &[(&str, String)]) -> String {
    let mut text =
        "# What the PTX beside this was made from. Written by ring-builder.\n".to_owned();
    for (key, value) in pairs {
        let _ = writeln!(text, "{key} = {value}");
    }
    text
}
