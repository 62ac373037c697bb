//! NVIDIA's assembler, from PATH, the CUDA toolkit or PyPI: the pinned one makes the checked-in cubins, any that is
//! new enough tells what the PTX takes.

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
    /// Its release, as it says it: `12.9.86`.
    pub release: String,
}

impl Ptxas {
    /// Whether the checked-in cubins are made by such a one.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.release == pins::PTXAS
    }

    fn is_new_enough(&self) -> bool {
        let mut numbers = self.release.split('.').map(|number| number.parse().unwrap_or(0));
        let major_minor = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        major_minor >= pins::PTXAS_MIN
    }
}

/// Finds a `ptxas` that is new enough to tell what PTX takes, without fetching one.
///
/// # Errors
/// When there is none.
pub fn find(ws: &Workspace) -> Result<Ptxas> {
    let (major, minor) = pins::PTXAS_MIN;
    there(ws).find(Ptxas::is_new_enough).with_context(|| {
        format!("no ptxas of CUDA {major}.{minor} or newer\n  try: cargo xtask setup")
    })
}

/// Finds the `ptxas` that makes the checked-in cubins, without fetching it.
///
/// # Errors
/// When it is not there.
pub fn pinned(ws: &Workspace) -> Result<Ptxas> {
    there(ws).find(Ptxas::is_pinned).with_context(|| {
        format!(
            "no ptxas {}, which makes the checked-in cubins\n  try: cargo xtask setup",
            pins::PTXAS
        )
    })
}

/// Finds the pinned `ptxas`, or installs PyPI's under the target folder.
///
/// # Errors
/// When pip is missing or cannot fetch it.
pub fn ensure(ws: &Workspace) -> Result<Ptxas> {
    if let Ok(found) = pinned(ws) {
        return Ok(found);
    }
    let otherwise = format!("put ptxas {} on PATH", pins::PTXAS);
    pypi::install(ws, NVCC, pins::NVCC_WHEEL, &otherwise)?;
    pinned(ws)
}

/// Each `ptxas` of this machine.
fn there(ws: &Workspace) -> impl Iterator<Item = Ptxas> {
    let mut programs = vec![PathBuf::from("ptxas")];
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        programs.extend(std::env::var_os(variable).map(|home| Path::new(&home).join("bin/ptxas")));
    }
    programs.push(pypi::folder(ws, NVCC).join("nvidia/cuda_nvcc/bin/ptxas"));
    programs.into_iter().filter_map(|program| {
        let said = shell::output(shell::command(&program).arg("--version")).ok()?;
        Some(Ptxas { program, release: release(&said)?.to_owned() })
    })
}

/// The release in `ptxas --version`: `... release 12.9, V12.9.86`.
fn release(said: &str) -> Option<&str> {
    let (_, rest) = said.split_once("release ")?;
    let (_, rest) = rest.split_once(", V")?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_release() {
        let said = "Cuda compilation tools, release 12.9, V12.9.86\nBuild cuda_12.9\n";
        assert_eq!(release(said), Some("12.9.86"));
        assert_eq!(release("ptxas: nothing of the kind"), None);
    }

    #[test]
    fn another_release_may_be_new_enough_and_is_not_the_pinned_one() {
        let judged = |release: &str| {
            let ptxas = Ptxas { program: PathBuf::new(), release: release.to_owned() };
            (ptxas.is_new_enough(), ptxas.is_pinned())
        };
        assert_eq!(judged(pins::PTXAS), (true, true));
        for (release, new_enough) in [("12.9.41", true), ("13.5.37", true), ("12.4.131", false)] {
            assert_eq!(judged(release), (new_enough, false), "{release}");
        }
        assert!(pins::NVCC_WHEEL.ends_with(&format!("=={}", pins::PTXAS)));
    }
}
