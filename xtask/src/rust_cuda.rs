//! `cargo xtask rust-cuda`: compiles every module by Rust-CUDA too, as a user would by `ring build`, and holds
//! what comes out against the checked-in PTX.

use std::path::{Path, PathBuf};

use anyhow::ensure;

use crate::assemble::{self, Usage};
use crate::pins::{ARCHITECTURES, MODULES, Module};
use crate::setup::cuda;
use crate::setup::ptxas::{self, Ptxas};
use crate::{Result, Workspace, golden, shell, workspace};

/// Compiles each module into `target/rust-cuda`, and checks it.
///
/// # Errors
/// When a tool is missing, a build fails, the PTX has what a kernel must not have, or ptxas refuses or spills.
pub fn run(ws: &Workspace) -> Result {
    let (ptxas, toolkit) = (ptxas::find(ws)?, cuda::ensure(ws)?);
    shell::run(shell::stable_cargo(ws.root()).args(["build", "--release", "-p", "ring-cli"]))?;
    let mut bad = Vec::new();
    for module in MODULES {
        let ptx = build(ws, module, toolkit.as_deref())?;
        let text = workspace::read(&ptx)?;
        println!("rust-cuda: {}: {} lines", ptx.display(), text.lines().count());
        let there: Vec<&str> = ring_ptx::entries(&text).collect();
        let missing = module.entries.iter().filter(|name| golden::is_ring_kernel(name));
        let missing = missing.filter(|name| !there.contains(name));
        bad.extend(missing.map(|name| format!("{}: no entry point {name}", module.package)));
        let found = golden::check_code(module, &text);
        bad.extend(found.iter().map(|violation| format!("{}: {violation}", module.package)));
        bad.extend(compare(ws, &ptxas, module, &ptx)?);
    }
    ensure!(
        bad.is_empty(),
        "{} things that a kernel must not have:\n{}",
        bad.len(),
        bad.join("\n")
    );
    Ok(())
}

/// Compiles a module by `ring build`; where its PTX is.
fn build(ws: &Workspace, module: &Module, toolkit: Option<&Path>) -> Result<PathBuf> {
    let out = ws.outputs().join("rust-cuda").join(module.package);
    let mut ring = shell::command(ws.outputs().join("release/ring"));
    ring.current_dir(ws.root()).args(["build", "--compiler", "rust-cuda"]);
    ring.args(module.crates.last()).args(module.feature.map(|name| format!("--features={name}")));
    ring.arg("--out").arg(&out).env("CARGO_TARGET_DIR", ws.target("rust-cuda"));
    ring.envs(toolkit.map(|path| ("CUDA_PATH", path)));
    shell::output(&mut ring)?;
    Ok(out.join("kernels.ptx"))
}

/// Assembles a module for every architecture, prints what it takes beside the checked-in one, and gives what it must
/// not take.
fn compare(ws: &Workspace, ptxas: &Ptxas, module: &Module, ptx: &Path) -> Result<Vec<String>> {
    let scratch = ws.target("ptxas");
    fs_err::create_dir_all(&scratch)?;
    println!(
        "{:<8}{:<28}{:>22}{:>16}{:>14}{:>14}",
        "arch", "kernel: Rust-CUDA, upstream", "registers", "shared", "stack", "spills"
    );
    let mut bad = Vec::new();
    for arch in ARCHITECTURES {
        let Some(found) = assemble::assemble(ptxas, ptx, &scratch, arch)? else { continue };
        let upstream = assemble::assemble(ptxas, &ws.ptx(module), &scratch, arch)?;
        for usage in found.iter().filter(|usage| usage.registers > 0) {
            let same = |other: &&Usage| other.name == usage.name;
            let other = upstream.iter().flatten().find(same).cloned().unwrap_or_default();
            let both = |of: fn(&Usage) -> u32| format!("{}, {}", of(usage), of(&other));
            println!(
                "sm_{arch:<5}{:<28}{:>22}{:>16}{:>14}{:>14}",
                usage.name,
                both(|usage| usage.registers),
                both(|usage| usage.shared),
                both(|usage| usage.stack),
                both(|usage| usage.spills),
            );
            if usage.spills > 0 || usage.stack > 0 {
                let Usage { name, stack, spills, .. } = usage;
                bad.push(format!("sm_{arch} {name}: {stack} bytes of stack, {spills} of spills"));
            }
        }
    }
    Ok(bad)
}
