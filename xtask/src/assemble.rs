//! Cubins of the PTX, and `cargo xtask ptxas`: what each architecture's assembler makes of it.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::pins::{MODULES, Module};
use crate::setup::ptxas::{self, Ptxas};
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

/// Assembles the checked-in PTX for every architecture and prints what it takes.
///
/// # Errors
/// When `ptxas` is missing or refuses the PTX, or when a kernel has a stack frame or spills.
pub fn run(ws: &Workspace) -> Result {
    let ptxas = ptxas::find(ws)?;
    let scratch = ws.target("ptxas");
    fs_err::create_dir_all(&scratch)?;
    println!("ptxas {}", ptxas.release);
    println!(
        "{:<8}{:<28}{:>10}{:>8}{:>8}{:>8}",
        "arch", "kernel", "registers", "shared", "stack", "spills"
    );
    let mut bad = Vec::new();
    let mut assembled = 0;
    let each = pins::ARCHITECTURES.iter().flat_map(|arch| MODULES.map(|module| (*arch, module)));
    for (arch, module) in each {
        let Some(usages) = assemble(&ptxas, &ws.ptx(module), &scratch, arch)? else {
            println!("sm_{arch:<5}(this ptxas does not know it)");
            continue;
        };
        assembled += 1;
        let ptx = fs_err::read_to_string(ws.ptx(module))?;
        // A function that is called and costs nothing of its own is not worth a row.
        for usage in usages.iter().filter(|u| u.registers > 0 || u.stack > 0 || u.spills > 0) {
            let Usage { name, registers, shared, stack, spills } = usage;
            println!("sm_{arch:<5}{name:<28}{registers:>10}{shared:>8}{stack:>8}{spills:>8}");
            // A kernel with ports has no more registers than there are for the threads of a default launch. What does not fit
            // them is spilled, and stated here; its PTX itself has no local memory, which the rules for PTX see to.
            if (*stack > 0 || *spills > 0) && !has_limit(&ptx, name) {
                bad.push(format!("sm_{arch} {name}: {stack} bytes of stack, {spills} of spills"));
            }
        }
    }
    ensure!(assembled > 0, "ptxas knows none of the architectures");
    ensure!(bad.is_empty(), "local memory in a kernel:\n{}", bad.join("\n"));
    Ok(())
}

/// Whether that kernel of a module has a limit of registers.
fn has_limit(ptx: &str, kernel: &str) -> bool {
    let entry = ptx.split_once(&format!(".entry {kernel}("));
    let head = entry.and_then(|(_, entry)| entry.split_once("\n{"));
    head.is_some_and(|(head, _)| head.contains(".maxnreg"))
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
    use super::{Usage, has_limit, parse};

    #[test]
    fn a_limit_is_that_of_its_kernel() {
        let ptx = ".entry k(\n)\n{\n}\n.entry k2(\n)\n.maxnreg 128\n{\n}\n";
        assert!(!has_limit(ptx, "k") && has_limit(ptx, "k2") && !has_limit(ptx, "k3"));
    }

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
