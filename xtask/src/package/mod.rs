//! `cargo xtask package`: the packages that are published, as a registry would have them.
//!
//! [`of`] asks cargo which they are, [`contents`] looks into each `.crate` file, and [`trial`] is somebody who has
//! nothing but these files: installs the command, has it write a project, tests it and compiles its kernel.

pub mod contents;
pub mod published;
pub mod trial;

use std::path::PathBuf;

use fs_err as fs;

use crate::{Result, Workspace, shell, workspace};

pub use published::{Published, of};

/// The switches of `package`.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Options {
    /// Leave out the trial by somebody who has only the packages, which takes minutes
    #[arg(long)]
    pub no_trial: bool,
}

/// Packages all that is published, looks into it, and tries it.
///
/// # Errors
/// When cargo cannot package something, a package lacks something or holds too much, or the trial fails.
pub fn run(ws: &Workspace, options: &Options) -> Result {
    let packages = of(ws)?;
    let registry = package(ws, &packages)?;
    for package in &packages {
        contents::check(package, &registry.join(package.file()))?;
    }
    if !options.no_trial {
        trial::run(&packages, &registry)?;
    }
    Ok(())
}

/// Packages them, and gives the folder of a local registry that has them.
///
/// They are not compiled here: the trial does that.
fn package(ws: &Workspace, packages: &[Published]) -> Result<PathBuf> {
    let target = ws.target("package");
    workspace::remove(&target)?;
    let mut cargo = shell::stable_cargo(ws.root());
    // A developer packages what is not committed yet.
    cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--target-dir"]).arg(&target);
    for Published { name, .. } in packages {
        cargo.args(["-p", name]);
    }
    shell::show_and_run(&mut cargo)?;
    // By these cargo finds packages of the same workspace when it makes the lock file of one that needs them.
    let registry = target.join("package/tmp-registry");
    for package in packages {
        let made = target.join("package").join(package.file());
        fs::copy(made, registry.join(package.file()))?;
    }
    Ok(registry)
}
