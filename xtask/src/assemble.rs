//! What `ptxas` makes of PTX: cubins, and what each kernel takes.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::pins::Module;
use crate::setup::ptxas::Ptxas;
use crate::{Result, Workspace, pins, shell, workspace};

/// What `ptxas -v` says of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// The kernel, or a function it calls.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of static shared memory a block.
    pub shared: u32,
    /// Bytes of stack a thread.
    pub stack: u32,
    /// Bytes of spilled registers, stores and loads together.
    pub spills: u32,
}

/// Assembles `ptx` for `arch`; nothing when this `ptxas` does not know that architecture.
///
/// # Errors
/// When `ptxas` refuses the PTX.
pub fn assemble(
    ptxas: &Ptxas,
    ptx: &Path,
    scratch: &Path,
    arch: u32,
) -> Result<Option<Vec<Usage>>> {
    let mut command = shell::command(&ptxas.program);
    command.arg("-v").args(pins::PTXAS_FLAGS).arg(format!("-arch=sm_{arch}"));
    command.arg("-o").arg(cubin_in(scratch, arch)).arg(ptx);
    match shell::output(&mut command) {
        Ok(said) => Ok(Some(parse(&said))),
        Err(error) if error.to_string().contains("is not defined for option 'gpu-name'") => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn cubin_in(scratch: &Path, arch: u32) -> PathBuf {
    scratch.join(format!("kernels.sm_{arch}.cubin"))
}

/// A module's PTX, assembled for an architecture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin {
    /// The architecture: 90 is sm_90.
    pub arch: u32,
    /// The ELF file.
    pub elf: Vec<u8>,
}

/// Assembles `ptx` for each architecture that the module has a cubin for. The same PTX gives the same bytes.
///
/// # Errors
/// When `ptxas` refuses the PTX, or does not know an architecture.
pub fn cubins(ws: &Workspace, ptxas: &Ptxas, module: &Module, ptx: &str) -> Result<Vec<Cubin>> {
    let scratch = ws.target("cubin");
    let source = scratch.join("kernels.ptx");
    workspace::write(&source, ptx)?;
    let assemble = |arch: &u32| {
        let unknown = || format!("{} does not know sm_{arch}", ptxas.program.display());
        assemble(ptxas, &source, &scratch, *arch)?.with_context(unknown)?;
        Ok(Cubin { arch: *arch, elf: fs_err::read(cubin_in(&scratch, *arch))? })
    };
    module.cubins.iter().map(assemble).collect()
}

/// Reads `ptxas -v`. A kernel has its own lines; a function that is not inlined has only a stack line.
#[must_use]
pub fn parse(said: &str) -> Vec<Usage> {
    let mut found: Vec<Usage> = Vec::new();
    let mut entry = None;
    let mut current = None;
    for line in said.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            entry = Some(index(&mut found, rest.split('\'').next().unwrap_or_default()));
        } else if let Some((_, name)) = line.split_once("Function properties for ") {
            current = Some(index(&mut found, name.trim()));
        } else if line.contains("bytes stack frame") {
            if let Some(usage) = current.and_then(|i| found.get_mut(i)) {
                usage.stack = before(line, " bytes stack frame");
                let (stores, loads) = (" bytes spill stores", " bytes spill loads");
                usage.spills = before(line, stores).saturating_add(before(line, loads));
            }
        } else if line.contains("Used ")
            && let Some(usage) = entry.and_then(|i| found.get_mut(i))
        {
            usage.registers = before(line, " registers");
            usage.shared = before(line, " bytes smem");
            usage.stack = usage.stack.max(before(line, " bytes cumulative stack size"));
        }
    }
    found
}

fn index(found: &mut Vec<Usage>, name: &str) -> usize {
    found.iter().position(|usage| usage.name == name).unwrap_or_else(|| {
        found.push(Usage { name: name.into(), ..Usage::default() });
        found.len() - 1
    })
}

/// The number that stands before `unit`, 0 when the unit is not there.
fn before(line: &str, unit: &str) -> u32 {
    let number = line.split_once(unit).and_then(|(left, _)| left.split_whitespace().next_back());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Usage, parse};

    #[test]
    fn reads_kernels_and_called_functions() {
        let said = "\
ptxas info    : 4 bytes gmem
ptxas info    : Compiling entry function 'ring_echo' for 'sm_90'
ptxas info    : Function properties for ring_echo
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 32 bytes cumulative stack size, 256 bytes smem
ptxas info    : Function properties for helper
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
";
        let echo =
            Usage { name: "ring_echo".into(), registers: 10, shared: 256, stack: 32, spills: 20 };
        let helper = Usage { name: "helper".into(), ..Usage::default() };
        assert_eq!(parse(said), [echo, helper]);
    }

    #[test]
    fn numbers_that_are_too_large_stay_so() {
        let said = "Function properties for f\n4294967295 bytes stack frame, 4294967295 bytes spill \
                    stores, 1 bytes spill loads\n";
        assert_eq!(parse(said)[0].spills, u32::MAX);
    }
}
