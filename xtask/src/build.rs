//! `cargo xtask ptx`: compiles device code to PTX, and assembles that to cubins where a module has some.

use anyhow::{anyhow, ensure};
use ring_builder::builder::FLAGS;
use ring_builder::compile::Compile;
use ring_builder::ptx;

use crate::assemble::{self, Cubin};
use crate::inputs::Inputs;
use crate::manifest::Manifest;
use crate::pins::{self, MODULES, Module};
use crate::setup::ptxas;
use crate::{Result, Workspace, golden, toolchain, workspace};

/// A build's PTX, its cubins, and the manifest that belongs to them.
#[derive(Debug)]
pub struct Built {
    /// The PTX module.
    pub ptx: String,
    /// What it was assembled to.
    pub cubins: Vec<Cubin>,
    /// What it was made from.
    pub manifest: Manifest,
}

/// Compiles each module and writes the PTX, its cubins and its manifest into the clone.
///
/// # Errors
/// When the toolchain or the pinned `ptxas` is missing, a build fails, or PTX names a folder of this machine.
pub fn run(ws: &Workspace) -> Result {
    let mut bad = 0;
    for module in MODULES {
        let built = build(ws, module)?;
        workspace::write(&ws.ptx(module), &built.ptx)?;
        workspace::write(&ws.manifest(module), &built.manifest.text())?;
        let (file, lines) = (module.ptx, built.ptx.lines().count());
        println!("ptx: {file}: {lines} lines, sha256 {}", built.manifest.ptx);
        for Cubin { arch, elf } in &built.cubins {
            workspace::write(&ws.cubin(module, *arch), elf)?;
            println!("ptx: {file}: a cubin for sm_{arch}, {} bytes", elf.len());
        }
        for violation in golden::check(module, &built.ptx) {
            println!("ptx: {}{violation}", module.ptx.trim_end_matches("kernels.ptx"));
            bad += 1;
        }
    }
    ensure!(bad == 0, "the PTX was written, but has {bad} things a kernel must not have");
    Ok(())
}

/// Compiles a module from nothing but its inputs.
///
/// # Errors
/// When the toolchain or the pinned `ptxas` is missing, the build fails, or the PTX names a folder of this machine.
pub fn build(ws: &Workspace, module: &Module) -> Result<Built> {
    let (toolchain, ptxas) = (toolchain::find(ws)?, ptxas::pinned(ws)?);
    // Taken before the build: an edit during it then shows as a stale manifest.
    let inputs = Inputs::of(ws, module)?;
    let target = ws.target("device");
    let compile = Compile {
        toolchain: &toolchain,
        folder: ws.root(),
        package: module.package,
        profile: "device",
        options: module.options(),
        flags: if module.by_macro { FLAGS.map(str::to_owned).into() } else { Vec::new() },
        arch: pins::ARCH,
        target: &target,
    };
    // Its words hold the cause, which a chain would say again.
    let compiled = compile.run().map_err(|error| anyhow!("{error}"))?;
    if !compiled.warnings.is_empty() {
        eprintln!("{}", compiled.warnings);
    }
    ptx::names_none(&compiled.ptx, &[ws.root(), toolchain.sysroot()])?;
    let source = toolchain::source_version(&toolchain);
    let cubins = assemble::cubins(ws, &ptxas, module, &compiled.ptx)?;
    let manifest = Manifest::new(module, inputs, source, &compiled.ptx, &cubins);
    Ok(Built { ptx: compiled.ptx, cubins, manifest })
}
