//! `cargo xtask ptx --check`: are the checked-in PTX and its cubins what the sources give?

use anyhow::{Context, Error, anyhow, bail, ensure};

use crate::assemble::Cubin;
use crate::manifest::Manifest;
use crate::pins::{self, MODULES, Module};
use crate::{Result, Workspace, build, golden, workspace};

/// Rebuilds each module into the target folder and compares with the checked-in PTX, cubins and manifest.
///
/// # Errors
/// When a build fails or anything differs; the error shows the first line that does.
pub fn run(ws: &Workspace) -> Result {
    MODULES.iter().try_for_each(|module| one(ws, module))
}

fn one(ws: &Workspace, module: &Module) -> Result {
    let CheckedIn { ptx: checked_in, cubins, manifest } = checked_in(ws, module)?;
    let built = build::build(ws, module)?;
    let file = module.ptx;
    if let Some(difference) = first_difference(&checked_in, &built.ptx) {
        bail!(
            "{file} is not what the sources give; {difference}\n  try: cargo xtask ptx, and check in the result"
        );
    }
    manifest.verify(module, &built.manifest.inputs, &checked_in, &cubins)?;
    if let Some(Cubin { arch, .. }) = cubins.iter().find(|cubin| !built.cubins.contains(cubin)) {
        bail!(
            "the cubin for sm_{arch} is not what ptxas {} makes of {file}\n  try: cargo xtask ptx, and check in the \
             result",
            pins::PTXAS
        );
    }
    let violations = golden::check(module, &checked_in);
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    ensure!(lines.is_empty(), "{file} has what it must not have:\n{}", lines.join("\n"));
    if manifest.rust_src != built.manifest.rust_src {
        println!(
            "ptx: rust-src here is {}, it was {} when {file} was made: same PTX",
            built.manifest.rust_src, manifest.rust_src
        );
    }
    let (lines, assembled) = (built.ptx.lines().count(), built.cubins.len());
    println!("ptx: {file}: {lines} lines and {assembled} cubins, byte for byte as checked in");
    Ok(())
}

/// What is checked in of a module.
#[derive(Debug)]
pub struct CheckedIn {
    /// The PTX.
    pub ptx: String,
    /// Every cubin that lies beside it, listed or not.
    pub cubins: Vec<Cubin>,
    /// What the manifest says of them.
    pub manifest: Manifest,
}

/// A module's checked-in PTX, its cubins and its manifest.
///
/// # Errors
/// When PTX or manifest is missing, or a file cannot be read.
pub fn checked_in(ws: &Workspace, module: &Module) -> Result<CheckedIn> {
    let make = |error: Error| anyhow!("{error}\n  try: cargo xtask setup && cargo xtask ptx");
    let ptx = workspace::read(&ws.ptx(module)).map_err(make)?;
    let manifest = Manifest::parse(&workspace::read(&ws.manifest(module)).map_err(make)?)?;
    Ok(CheckedIn { ptx, cubins: cubins(ws, module)?, manifest })
}

/// The cubins beside a module's PTX.
fn cubins(ws: &Workspace, module: &Module) -> Result<Vec<Cubin>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(ws.ptx(module).parent().unwrap_or(ws.root()))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let arch = name.strip_prefix("kernels.sm_").and_then(|rest| rest.strip_suffix(".cubin"));
        if let Some(arch) = arch {
            let arch =
                arch.parse().with_context(|| format!("{name}: sm_{arch} is no architecture"))?;
            found.push(Cubin { arch, elf: fs_err::read(&path)? });
        }
    }
    found.sort_by_key(|cubin| cubin.arch);
    Ok(found)
}

/// Where two texts part, in words; nothing when they are equal.
#[must_use]
pub fn first_difference(checked_in: &str, rebuilt: &str) -> Option<String> {
    if checked_in == rebuilt {
        return None;
    }
    let (mut old, mut new) = (checked_in.lines(), rebuilt.lines());
    let same = old.clone().zip(new.clone()).take_while(|(old, new)| old == new).count();
    Some(format!(
        "first difference at line {}\n  checked in: {}\n  rebuilt:    {}",
        same + 1,
        old.nth(same).map_or("(end of file)", str::trim_end),
        new.nth(same).map_or("(end of file)", str::trim_end)
    ))
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    #[test]
    fn tells_the_line() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        let said = first_difference("a\nb\n", "a\nc\n").unwrap();
        assert!(
            said.contains("line 2")
                && said.contains("checked in: b")
                && said.contains("rebuilt:    c"),
            "{said}"
        );
        assert!(first_difference("a\n", "a\nb\n").unwrap().contains("(end of file)"));
        assert!(first_difference("a\n", "a").is_some());
    }
}
