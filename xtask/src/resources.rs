//! `cargo xtask ptxas`: the registers, the shared memory and the spills of each kernel on each architecture, kept in
//! `xtask/ptxas.txt` beside the digests of the PTX that they are of.
//!
//! All modules for all architectures take minutes. They are assembled when PTX has changed, and `--check` sees that
//! the table is of the PTX that is checked in: a change of a kernel's registers is seen where the change is read.

use std::fmt::Write;

use anyhow::{Context, bail, ensure};
use ring_builder::digest;

use crate::assemble::{self, Usage};
use crate::pins::{BUILT_IN, MODULES, Module};
use crate::setup::ptxas::{self, Ptxas};
use crate::{Result, Workspace, pins, workspace};

/// The table, from the root on.
const TABLE: &str = "xtask/ptxas.txt";

/// The module and the architecture that `--check` assembles again: the smallest module, for the oldest.
const AGAIN: (Module, u32) = (BUILT_IN, pins::ARCHITECTURES[0]);

/// Assembles the checked-in PTX for every architecture, and prints and keeps what each kernel takes.
///
/// # Errors
/// When the pinned `ptxas` is missing, refuses the PTX or does not know an architecture, or when a kernel has a stack
/// frame or spills.
pub fn write(ws: &Workspace) -> Result {
    let ptxas = ptxas::pinned(ws)?;
    let mut table = head(ws, &ptxas.release)?;
    print!("{table}");
    let mut bad = Vec::new();
    for (arch, module) in
        pins::ARCHITECTURES.iter().flat_map(|arch| MODULES.map(|module| (*arch, module)))
    {
        let usages = usages(ws, &ptxas, module, arch)?;
        let rows = rows(module, arch, &usages);
        print!("{rows}");
        table += &rows;
        let ptx = workspace::read(&ws.ptx(module))?;
        // A kernel with ports has no more registers than there are for the threads of a default launch. What does not
        // fit them is spilled, and stated here; its PTX itself has no local memory, which the rules for PTX see to.
        for Usage { name, stack, spills, .. } in
            usages.iter().filter(|u| (u.stack > 0 || u.spills > 0) && !has_limit(&ptx, &u.name))
        {
            bad.push(format!("sm_{arch} {name}: {stack} bytes of stack, {spills} of spills"));
        }
    }
    ensure!(bad.is_empty(), "local memory in a kernel:\n{}", bad.join("\n"));
    workspace::write(&ws.root().join(TABLE), &table)
}

/// Whether the table is of the checked-in PTX, and says of one module what `ptxas` says of it now.
///
/// # Errors
/// When it is not, or the pinned `ptxas` is missing.
pub fn check(ws: &Workspace) -> Result {
    let again = "\n  try: cargo xtask ptxas, and check in the result";
    let table = workspace::read(&ws.root().join(TABLE))
        .with_context(|| format!("there is no table of what the kernels take{again}"))?;
    let ptxas = ptxas::pinned(ws)?;
    let head = head(ws, &ptxas.release)?;
    if !table.starts_with(&head) {
        bail!("{TABLE} is of another ptxas or of other PTX; it should begin with\n{head}{again}");
    }
    let (module, arch) = AGAIN;
    let rows = rows(&module, arch, &usages(ws, &ptxas, &module, arch)?);
    ensure!(
        !rows.is_empty() && table.contains(&rows),
        "{TABLE} does not have what ptxas says of {} for sm_{arch}:\n{rows}{again}",
        module.ptx
    );
    println!(
        "ptxas: {TABLE} is of the PTX that is checked in; {} for sm_{arch} assembled again",
        module.ptx
    );
    Ok(())
}

fn usages(ws: &Workspace, ptxas: &Ptxas, module: &Module, arch: u32) -> Result<Vec<Usage>> {
    let scratch = ws.target("ptxas");
    fs_err::create_dir_all(&scratch)?;
    assemble::assemble(ptxas, &ws.ptx(module), &scratch, arch)?
        .with_context(|| format!("ptxas {} does not know sm_{arch}", ptxas.release))
}

/// What the table begins with: the release, the digest of each module's PTX, and what the columns are.
fn head(ws: &Workspace, release: &str) -> Result<String> {
    let mut head = format!(
        "# What the kernels take on each architecture. Written by `cargo xtask ptxas`; do not edit.\nptxas {release}\n"
    );
    for module in &MODULES {
        let ptx = workspace::read(&ws.ptx(module))?;
        writeln!(head, "{} {}", digest::sha256(&ptx), module.ptx)?;
    }
    let [arch, kernel, numbers @ ..] = ["arch", "kernel", "registers", "shared", "stack", "spills"];
    head += &line(arch, kernel, numbers.map(str::to_owned));
    Ok(head)
}

/// A row for each kernel of a module. A function that is called and costs nothing of its own has none.
fn rows(module: &Module, arch: u32, usages: &[Usage]) -> String {
    let of_one = |usage: &Usage| {
        let Usage { name, registers, shared, stack, spills } = usage;
        // The names of called functions are rustc's, and end in numbers that change with each build.
        let is_entry = module.entries.contains(&name.as_str());
        let name = if is_entry { name } else { "(a called function)" };
        let numbers = [registers, shared, stack, spills].map(ToString::to_string);
        line(&format!("sm_{arch}"), name, numbers)
    };
    let costs = |usage: &&Usage| usage.registers > 0 || usage.stack > 0 || usage.spills > 0;
    usages.iter().filter(costs).map(of_one).collect()
}

fn line(arch: &str, kernel: &str, [registers, shared, stack, spills]: [String; 4]) -> String {
    format!("{arch:<8}{kernel:<28}{registers:>10}{shared:>8}{stack:>8}{spills:>8}\n")
}

/// Whether that kernel of a module has a limit of registers.
fn has_limit(ptx: &str, kernel: &str) -> bool {
    let entry = ptx.split_once(&format!(".entry {kernel}("));
    let head = entry.and_then(|(_, entry)| entry.split_once("\n{"));
    head.is_some_and(|(head, _)| head.contains(".maxnreg"))
}

#[cfg(test)]
mod tests {
    use super::{BUILT_IN, Usage, has_limit, rows};

    #[test]
    fn a_limit_is_that_of_its_kernel() {
        let ptx = ".entry k(\n)\n{\n}\n.entry k2(\n)\n.maxnreg 128\n{\n}\n";
        assert!(!has_limit(ptx, "k") && has_limit(ptx, "k2") && !has_limit(ptx, "k3"));
    }

    #[test]
    fn a_row_has_what_a_kernel_takes_and_one_that_takes_nothing_has_none() {
        let of = |name: &str, registers, spills| Usage {
            name: name.to_owned(),
            registers,
            spills,
            ..Usage::default()
        };
        let said =
            rows(&BUILT_IN, 70, &[of("ring_echo", 64, 0), of("f", 0, 0), of("_ZN17h0", 0, 8)]);
        let lines: Vec<Vec<&str>> =
            said.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 2, "{said}");
        assert_eq!(lines[0], ["sm_70", "ring_echo", "64", "0", "0", "0"]);
        assert!(lines[1].ends_with(&["0", "0", "0", "8"]), "{said}");
    }
}
