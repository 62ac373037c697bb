//! Cargo's own tools, of a pinned version, installed under the target folder when they are first needed.

use std::path::PathBuf;

use crate::{Result, Workspace, shell};

/// A tool of the registry.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its crate and its program.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// What it is installed with besides.
    pub with: &'static [&'static str],
}

impl Tool {
    /// The program, installed now unless it is there.
    ///
    /// # Errors
    /// When it cannot be installed.
    pub fn program(self, ws: &Workspace) -> Result<PathBuf> {
        let Tool { name, version, with } = self;
        let root = ws.tools();
        let program = root.join("bin").join(name).with_extension(std::env::consts::EXE_EXTENSION);
        let mut list = shell::stable_cargo(ws.root());
        let there = shell::output(list.args(["install", "--list", "--root"]).arg(&root));
        let line = format!("{name} v{version}:");
        if program.is_file() && there.is_ok_and(|said| said.lines().any(|said| said == line)) {
            return Ok(program);
        }
        let mut cargo = shell::installing_cargo(ws.root());
        // What they do takes seconds either way; to optimise them takes minutes, and nobody debugs them.
        cargo.args(["install", name, "--version", version, "--locked", "--debug", "--quiet"]);
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "none");
        shell::show_and_run(cargo.args(with).arg("--root").arg(&root))?;
        Ok(program)
    }
}
