//! Packages of PyPI, each in a folder of its own below the tools.

use std::path::PathBuf;

use anyhow::anyhow;

use crate::{Result, Workspace, shell};

/// Where a package's files lie, or would.
#[must_use]
pub fn folder(ws: &Workspace, name: &str) -> PathBuf {
    ws.tools().join(name)
}

/// Installs a package into the folder of that name; `otherwise` is what to do where pip cannot.
///
/// # Errors
/// When pip is missing or cannot fetch it.
pub fn install(ws: &Workspace, name: &str, package: &str, otherwise: &str) -> Result {
    println!("setup: asking PyPI for {package}");
    let mut pip = shell::command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]);
    pip.args(["--only-binary", ":all:"]);
    pip.args(["--disable-pip-version-check", "--target"]).arg(folder(ws, name)).arg(package);
    shell::output(&mut pip).map(drop).map_err(|error| {
        anyhow!("{package}: {error}\n  try: apt-get install python3-pip, or {otherwise}")
    })
}
