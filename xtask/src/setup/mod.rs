//! `cargo xtask setup`: the pinned nightly with `rust-src`, and `ptxas`.
//!
//! Nothing that is already installed is changed. rustup is asked first; where it can fetch nothing,
//! Debian's `rust-src` is unpacked under the target folder and put into a linked copy of the nightly.

use std::process::Command;
use std::time::Duration;

use anyhow::bail;
use ring_builder::Toolchain;

use crate::{Result, Workspace, pins, shell, toolchain};

pub mod cuda;
pub mod debian;
pub mod linked;
pub mod ptxas;
pub mod pypi;

/// How long rustup may take: a minimal nightly is some 100 MB.
const RUSTUP_LIMIT: Duration = Duration::from_secs(240);

/// The switches of `setup`.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct Options {
    /// Take the source from Debian even where rustup has it
    #[arg(long)]
    pub debian: bool,
    /// Also try to install Miri; not having it is no failure
    #[arg(long)]
    pub miri: bool,
}

/// Makes the pinned nightly and `ptxas` usable, doing only what is missing.
///
/// # Errors
/// When the nightly, its source or `ptxas` is missing and none of the ways to get it worked.
pub fn run(ws: &Workspace, options: &Options) -> Result {
    source(ws, options)?;
    if options.miri {
        miri(ws);
    }
    let assembler = ptxas::ensure(ws)?;
    println!("setup: ptxas {}", assembler.release);
    Ok(())
}

/// The standard libraries of other hosts, for the toolchain of the workspace; those that are there are left as they are.
///
/// # Errors
/// When rustup cannot get one.
pub fn targets(ws: &Workspace, targets: &[&str]) -> Result {
    let mut rustup = rustup();
    rustup.current_dir(ws.root()).args(["target", "add"]);
    shell::run_for(rustup.args(targets), RUSTUP_LIMIT)
}

fn source(ws: &Workspace, options: &Options) -> Result {
    let mut from_debian = options.debian;
    if !from_debian && toolchain::find(ws).is_err() {
        println!("setup: asking rustup for {} with rust-src", pins::NIGHTLY);
        let args = ["toolchain", "install", pins::NIGHTLY, "--profile", "minimal"];
        let mut rustup = rustup();
        rustup.args(args).args(["--component", "rust-src", "--no-self-update"]);
        if let Err(error) = shell::run_for(&mut rustup, RUSTUP_LIMIT) {
            println!("setup: rustup could not ({error:#}); taking Debian's rust-src");
            from_debian = true;
        }
    }
    let ready = if from_debian { linked_copy(ws)? } else { toolchain::find(ws)? };
    println!(
        "setup: rustc {} with rust-src from {}",
        pins::RUSTC_RELEASE,
        toolchain::source_version(&ready)
    );
    Ok(())
}

/// The linked copy of the nightly, with Debian's source.
fn linked_copy(ws: &Workspace) -> Result<Toolchain> {
    let Some(nightly) = toolchain::installed().next() else {
        bail!(
            "no installed toolchain is rustc {}\n  try: rustup toolchain install {} --profile minimal",
            pins::RUSTC_COMMIT,
            pins::NIGHTLY
        );
    };
    let library = debian::library(ws)?;
    let linked = linked::ensure(ws, &nightly, &library)?;
    println!(
        "setup: to use it by hand: rustup toolchain link ring-nightly {}",
        linked.sysroot().display()
    );
    Ok(linked)
}

/// rustup, without the backtrace that it prints with a plain failure to connect.
fn rustup() -> Command {
    let mut rustup = shell::command("rustup");
    rustup.env_remove("RUST_BACKTRACE");
    rustup
}

/// Miri only checks, so its absence is told and not an error.
fn miri(ws: &Workspace) {
    let ready = toolchain::find(ws).ok();
    if ready.as_ref().is_some_and(|ready| ready.has_program("cargo-miri")) {
        println!("setup: Miri is installed");
        return;
    }
    // It is found by its commit, so that rustup may have it under another name than the pin's.
    let name = ready.and_then(|ready| ready.rustup_name());
    let mut rustup = rustup();
    rustup.args(["component", "add", "miri", "--toolchain"]);
    rustup.arg(name.as_deref().unwrap_or(pins::NIGHTLY));
    match shell::run_for(&mut rustup, RUSTUP_LIMIT) {
        Ok(()) => println!("setup: Miri installed"),
        Err(error) => println!("setup: no Miri ({error:#})"),
    }
}
