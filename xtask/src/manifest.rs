//! `kernels.manifest`: what the checked-in PTX was made from, as `key = value` lines.

use std::fmt::Write;

use anyhow::{Context, bail, ensure};
use ring_builder::digest;

use crate::Result;
use crate::inputs::Inputs;
use crate::pins::{self, Module};

/// The format's version.
pub const FORMAT: &str = "1";

const HEADER: &str =
    "# What kernels.ptx was made from. Written by `cargo xtask ptx`; do not edit.\n";

/// A manifest, read or about to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Where `core` came from; told, not compared: rustup's and Debian's give the same PTX.
    pub rust_src: String,
    /// The toolchain and its flags, as key and value.
    pub toolchain: Vec<(String, String)>,
    /// The digest of each input.
    pub inputs: Inputs,
    /// The digest over all inputs, toolchain and flags.
    pub combined: String,
    /// The digest of the PTX.
    pub ptx: String,
}

impl Manifest {
    /// The manifest of a module's `ptx`, made now from `inputs`.
    #[must_use]
    pub fn new(module: &Module, inputs: Inputs, rust_src: String, ptx: &str) -> Self {
        Self {
            rust_src,
            toolchain: toolchain(module),
            combined: inputs.combined(module),
            inputs,
            ptx: digest::sha256(ptx),
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// When a line is no `key = value`, or the format's version is another.
    pub fn parse(manifest: &str) -> Result<Self> {
        let mut read = Self {
            rust_src: String::new(),
            toolchain: Vec::new(),
            inputs: Inputs { digests: Vec::new() },
            combined: String::new(),
            ptx: String::new(),
        };
        let mut format = "";
        for (number, line) in manifest.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line
                .split_once(" = ")
                .with_context(|| format!("kernels.manifest:{}: no `key = value`", number + 1))?;
            match key {
                "format" => format = value,
                "rust-src" => read.rust_src = value.into(),
                "inputs" => read.combined = value.into(),
                "ptx" => read.ptx = value.into(),
                _ => match key.strip_prefix("input ") {
                    Some(name) => read.inputs.digests.push((name.into(), value.into())),
                    None => read.toolchain.push((key.into(), value.into())),
                },
            }
        }
        ensure!(
            format == FORMAT,
            "kernels.manifest has format `{format}`, not {FORMAT}\n  try: cargo xtask ptx"
        );
        Ok(read)
    }

    /// The manifest as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{HEADER}format = {FORMAT}\n");
        for (key, value) in &self.toolchain {
            let _ = writeln!(out, "{key} = {value}");
        }
        let _ = writeln!(out, "rust-src = {}", self.rust_src);
        for (name, digest) in &self.inputs.digests {
            let _ = writeln!(out, "input {name} = {digest}");
        }
        let _ = writeln!(out, "inputs = {}\nptx = {}", self.combined, self.ptx);
        out
    }

    /// Whether this manifest, as checked in, still describes the module's `inputs` and `ptx`.
    ///
    /// # Errors
    /// When it does not; the error names each input that changed.
    pub fn verify(&self, module: &Module, inputs: &Inputs, ptx: &str) -> Result {
        let (file, changed) = (module.ptx, self.inputs.changed(inputs));
        let complaint = if !changed.is_empty() {
            format!("device inputs changed since {file} was made: {}", changed.join(", "))
        } else if self.toolchain != toolchain(module) || self.combined != inputs.combined(module) {
            format!("the pinned toolchain or its flags changed since {file} was made")
        } else if self.ptx != digest::sha256(ptx) {
            format!("{file} is not the one that kernels.manifest beside it describes")
        } else {
            return Ok(());
        };
        bail!(
            "{complaint}\n  try: cargo xtask ptx (after cargo xtask setup), and check in the result"
        )
    }
}

fn toolchain(module: &Module) -> Vec<(String, String)> {
    let pairs = [
        ("rustc", pins::RUSTC_RELEASE.to_owned()),
        ("rustc-commit", pins::RUSTC_COMMIT.to_owned()),
        ("target", pins::TARGET.to_owned()),
        ("target-cpu", pins::ARCH.to_string()),
        ("target-feature", pins::ARCH.feature()),
        ("flags", pins::rustflags(pins::ARCH).join(" ")),
        ("command", format!("cargo {} -- --emit=asm", module.cargo_args().join(" "))),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
