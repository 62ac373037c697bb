//! `kernels.manifest`: what the checked-in PTX and its cubins were made from, as `key = value` lines.

use std::fmt::Write;

use anyhow::{Context, bail, ensure};
use ring_builder::digest;

use crate::Result;
use crate::assemble::Cubin;
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
    /// The cubins, by rising architecture.
    pub cubins: Vec<Assembled>,
}

/// A cubin, and what it was assembled from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The architecture, as `sm_90`.
    pub arch: String,
    /// The digest of the cubin.
    pub cubin: String,
    /// The digest of the PTX that it was assembled from: another than the manifest's if the two were merged from
    /// different builds.
    pub ptx: String,
}

impl Assembled {
    fn new(cubin: &Cubin, ptx: &str) -> Self {
        let arch = format!("sm_{}", cubin.arch);
        Self { arch, cubin: digest::sha256(&cubin.elf), ptx: digest::sha256(ptx) }
    }
}

impl Manifest {
    /// The manifest of a module's `ptx`, made now from `inputs`, and of the `cubins` that were assembled from it.
    #[must_use]
    pub fn new(
        module: &Module,
        inputs: Inputs,
        rust_src: String,
        ptx: &str,
        cubins: &[Cubin],
    ) -> Self {
        Self {
            rust_src,
            toolchain: toolchain(module),
            combined: inputs.combined(module),
            inputs,
            ptx: digest::sha256(ptx),
            cubins: cubins.iter().map(|cubin| Assembled::new(cubin, ptx)).collect(),
        }
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// When a line is no `key = value`, a cubin's names no PTX, or the format's version is another.
    pub fn parse(manifest: &str) -> Result<Self> {
        let mut read = Self {
            rust_src: String::new(),
            toolchain: Vec::new(),
            inputs: Inputs { digests: Vec::new() },
            combined: String::new(),
            ptx: String::new(),
            cubins: Vec::new(),
        };
        let mut format = "";
        for (number, line) in manifest.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line
                .split_once(" = ")
                .with_context(|| format!("kernels.manifest:{}: no `key = value`", number + 1))?;
            if let Some(arch) = key.strip_prefix("cubin ") {
                let (cubin, ptx) = value.split_once(" of ").with_context(|| {
                    format!("kernels.manifest:{}: no `cubin of PTX`", number + 1)
                })?;
                let (arch, cubin, ptx) = (arch.into(), cubin.into(), ptx.into());
                read.cubins.push(Assembled { arch, cubin, ptx });
                continue;
            }
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
        for Assembled { arch, cubin, ptx } in &self.cubins {
            let _ = writeln!(out, "cubin {arch} = {cubin} of {ptx}");
        }
        out
    }

    /// Whether this manifest, as checked in, still describes the module's `inputs`, `ptx` and `cubins`.
    ///
    /// # Errors
    /// When it does not; the error names each input or cubin that changed.
    pub fn verify(&self, module: &Module, inputs: &Inputs, ptx: &str, cubins: &[Cubin]) -> Result {
        let (file, changed) = (module.ptx, self.inputs.changed(inputs));
        let complaint = if !changed.is_empty() {
            format!("device inputs changed since {file} was made: {}", changed.join(", "))
        } else if self.toolchain != toolchain(module) || self.combined != inputs.combined(module) {
            format!("the pinned toolchain or its flags changed since {file} was made")
        } else if self.ptx != digest::sha256(ptx) {
            format!("{file} is not the one that kernels.manifest beside it describes")
        } else if let Some(wrong) = self.wrong_cubin(module, ptx, cubins) {
            format!("{wrong} {file}")
        } else {
            return Ok(());
        };
        bail!(
            "{complaint}\n  try: cargo xtask ptx (after cargo xtask setup), and check in the result"
        )
    }

    /// What is wrong with the cubins beside the PTX, in words that its name follows.
    fn wrong_cubin(&self, module: &Module, ptx: &str, cubins: &[Cubin]) -> Option<String> {
        let there = |arch: &u32| cubins.iter().any(|cubin| cubin.arch == *arch);
        if let Some(arch) = module.cubins.iter().find(|arch| !there(arch)) {
            return Some(format!("there is no cubin for sm_{arch} beside"));
        }
        if let Some(other) = cubins.iter().find(|cubin| !module.cubins.contains(&cubin.arch)) {
            let arch = other.arch;
            return Some(format!(
                "remove the cubin for sm_{arch}: xtask/src/pins.rs lists none for"
            ));
        }
        for found in cubins.iter().map(|cubin| Assembled::new(cubin, ptx)) {
            let Assembled { arch, cubin, ptx } = &found;
            match self.cubins.iter().find(|told| told.arch == *arch) {
                Some(told) if told.ptx != *ptx => {
                    return Some(format!(
                        "the cubin for {arch} was assembled from another PTX than"
                    ));
                }
                Some(told) if told.cubin == *cubin => {}
                _ => {
                    return Some(format!("kernels.manifest describes another cubin for {arch} of"));
                }
            }
        }
        None
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
    let assembler = format!("{} {}", pins::PTXAS, pins::PTXAS_FLAGS.join(" "));
    let assembler = (!module.cubins.is_empty()).then_some(("ptxas", assembler));
    pairs.into_iter().chain(assembler).map(|(key, value)| (key.to_owned(), value)).collect()
}
