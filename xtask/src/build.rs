//! `cargo xtask ptx`: compiles device code to PTX.

use std::fs;
use std::path::Path;

use crate::inputs::Inputs;
use crate::manifest::Manifest;
use crate::pins::{self, MODULES, Module};
use crate::toolchain::{self, Toolchain};
use crate::{Error, Result, Workspace, golden, shell, workspace};

/// A build's PTX and the manifest that belongs to it.
#[derive(Debug)]
pub struct Built {
    /// The PTX module.
    pub ptx: String,
    /// What it was made from.
    pub manifest: Manifest,
}

/// Compiles each module and writes the PTX and its manifest into the clone.
///
/// # Errors
/// When the toolchain is missing, a build fails, or PTX names a folder of this machine.
pub fn run(ws: &Workspace) -> Result {
    let mut bad = 0;
    for module in MODULES {
        let built = build(ws, module)?;
        workspace::write(&ws.ptx(module), &built.ptx)?;
        workspace::write(&ws.manifest(module), &built.manifest.text())?;
        let (file, lines) = (module.ptx, built.ptx.lines().count());
        println!("ptx: {file}: {lines} lines, sha256 {}", built.manifest.ptx);
        for violation in golden::check(module, &built.ptx) {
            println!("ptx: {violation}");
            bad += 1;
        }
    }
    match bad {
        0 => Ok(()),
        n => Err(Error::new(format!(
            "the PTX was written, but has {n} things a kernel must not have"
        ))),
    }
}

/// Compiles a module from nothing but its inputs.
///
/// # Errors
/// When the toolchain is missing, the build fails, or the PTX names a folder of this machine.
pub fn build(ws: &Workspace, module: &Module) -> Result<Built> {
    let toolchain = toolchain::find(ws)?;
    // Taken before the build: an edit during it then shows as a stale manifest.
    let inputs = Inputs::of(ws, module)?;
    let target = ws.target("device");
    let deps = target.join(pins::TARGET).join("device/deps");
    remove_assembly(&deps, module)?;
    shell::run(
        toolchain
            .cargo(ws.root())
            .args(module.cargo_args())
            .arg("--target-dir")
            .arg(&target)
            .args(["--", "--emit=asm"])
            .env("CARGO_ENCODED_RUSTFLAGS", pins::RUSTFLAGS.join("\x1f")),
    )?;
    let ptx = assembly(&deps, module)?;
    no_machine_paths(&ptx, ws, &toolchain)?;
    let manifest = Manifest::new(module, inputs, toolchain.source_version(), &ptx);
    Ok(Built { ptx, manifest })
}

/// An old `.s` would be taken for the new one if cargo found nothing to do, so it goes, and with it
/// cargo's memory of having made it.
fn remove_assembly(deps: &Path, module: &Module) -> Result {
    let package = format!("{}-", module.package);
    for folder in [deps.to_path_buf(), deps.with_file_name(".fingerprint")] {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && name.starts_with(&package) {
                fs::remove_dir_all(&path).map_err(|e| Error::io(&path, &e))?;
            } else if name.ends_with(".s") {
                fs::remove_file(&path).map_err(|e| Error::io(&path, &e))?;
            }
        }
    }
    Ok(())
}

fn assembly(deps: &Path, module: &Module) -> Result<String> {
    let entries = fs::read_dir(deps).map_err(|e| Error::io(deps, &e))?;
    let prefix = module.package.replace('-', "_");
    let is_module = |name: &str| name.starts_with(&prefix) && name.ends_with(".s");
    let found: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| is_module(&name.to_string_lossy())))
        .collect();
    match found.as_slice() {
        [path] => workspace::read(path),
        [] => Err(Error::new("the device build left no assembly")),
        _ => Err(Error::new(format!(
            "the device build left {} modules, not 1: is lto still fat?",
            found.len()
        ))),
    }
}

/// A path in the PTX would make it differ from clone to clone, and tell where it was built.
fn no_machine_paths(ptx: &str, ws: &Workspace, toolchain: &Toolchain) -> Result {
    for folder in [ws.root(), toolchain.sysroot()] {
        let folder = folder.to_string_lossy();
        if let Some(line) = ptx.lines().position(|line| line.contains(folder.as_ref())) {
            return Err(Error::new(format!("line {} of the PTX names {folder}", line + 1)));
        }
    }
    Ok(())
}
