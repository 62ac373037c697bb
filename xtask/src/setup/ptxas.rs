//! NVIDIA's assembler: from PATH or the CUDA toolkit where it is new enough, else from PyPI.

use std::path::{Path, PathBuf};

use anyhow::Context;

use super::pypi;

use crate::{Result, Workspace, pins, shell};

/// Where the package goes that has it.
pub const NVCC: &str = "nvcc";

/// A usable `ptxas`.
#[derive(Debug, Clone)]
pub struct Ptxas {
    /// The program.
    pub program: PathBuf,
    /// Its CUDA release.
    pub version: (u32, u32),
}

/// Finds a `ptxas` that is new enough, without fetching one.
///
/// # Errors
/// When there is none.
pub fn find(ws: &Workspace) -> Result<Ptxas> {
    let mut programs = vec![PathBuf::from("ptxas")];
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        programs.extend(std::env::var_os(variable).map(|home| Path::new(&home).join("bin/ptxas")));
    }
    programs.push(pypi::folder(ws, NVCC).join("nvidia/cuda_nvcc/bin/ptxas"));
    let (major, minor) = pins::PTXAS_MIN;
    programs.into_iter().find_map(usable).with_context(|| {
        format!("no ptxas of CUDA {major}.{minor} or newer\n  try: cargo xtask setup")
    })
}

/// Finds a `ptxas` that is new enough, or installs PyPI's under the target folder.
///
/// # Errors
/// When pip is missing or cannot fetch it.
pub fn ensure(ws: &Workspace) -> Result<Ptxas> {
    if let Ok(found) = find(ws) {
        return Ok(found);
    }
    let otherwise = "put the ptxas of a CUDA toolkit on PATH";
    pypi::install(ws, NVCC, pins::NVCC_WHEEL, otherwise)?;
    find(ws)
}

fn usable(program: PathBuf) -> Option<Ptxas> {
    let said = shell::output(shell::command(&program).arg("--version")).ok()?;
    let version = release(&said)?;
    (version >= pins::PTXAS_MIN).then_some(Ptxas { program, version })
}

/// The release in `ptxas --version`: `... release 12.9, V12.9.86`.
fn release(said: &str) -> Option<(u32, u32)> {
    let (_, rest) = said.split_once("release ")?;
    let (major, rest) = rest.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::release;

    #[test]
    fn reads_the_release() {
        assert_eq!(release("Cuda compilation tools, release 12.9, V12.9.86\n"), Some((12, 9)));
        assert_eq!(release("ptxas: nothing of the kind"), None);
    }
}
