//! `cargo xtask ptx --check`: is the checked-in PTX what the sources give?

use anyhow::{Error, anyhow, bail, ensure};

use crate::manifest::Manifest;
use crate::pins::{MODULES, Module};
use crate::{Result, Workspace, build, golden, workspace};

/// Rebuilds each module into the target folder and compares with the checked-in PTX and manifest.
///
/// # Errors
/// When a build fails or anything differs; the error shows the first line that does.
pub fn run(ws: &Workspace) -> Result {
    MODULES.iter().try_for_each(|module| one(ws, module))
}

fn one(ws: &Workspace, module: &Module) -> Result {
    let (checked_in, manifest) = checked_in(ws, module)?;
    let built = build::build(ws, module)?;
    let file = module.ptx;
    if let Some(difference) = first_difference(&checked_in, &built.ptx) {
        bail!(
            "{file} is not what the sources give; {difference}\n  try: cargo xtask ptx, and check in the result"
        );
    }
    manifest.verify(module, &built.manifest.inputs, &checked_in)?;
    let violations = golden::check(module, &checked_in);
    let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    ensure!(lines.is_empty(), "{file} has what it must not have:\n{}", lines.join("\n"));
    if manifest.rust_src != built.manifest.rust_src {
        println!(
            "ptx: rust-src here is {}, it was {} when {file} was made: same PTX",
            built.manifest.rust_src, manifest.rust_src
        );
    }
    println!("ptx: {file}: {} lines, byte for byte as checked in", built.ptx.lines().count());
    Ok(())
}

/// A module's checked-in PTX and its manifest.
///
/// # Errors
/// When one is missing or the manifest cannot be read.
pub fn checked_in(ws: &Workspace, module: &Module) -> Result<(String, Manifest)> {
    let make = |error: Error| anyhow!("{error}\n  try: cargo xtask setup && cargo xtask ptx");
    let ptx = workspace::read(&ws.ptx(module)).map_err(make)?;
    let manifest = Manifest::parse(&workspace::read(&ws.manifest(module)).map_err(make)?)?;
    Ok((ptx, manifest))
}

/// Where two texts part, in words; nothing when they are equal.
#[must_use]
pub fn first_difference(checked_in: &str, rebuilt: &str) -> Option<String> {
    if checked_in == rebuilt {
        return None;
    }
    let (mut old, mut new) = (checked_in.lines(), rebuilt.lines());
    let mut number = 0;
    loop {
        number += 1;
        let (a, b) = (old.next(), new.next());
        if a == b && a.is_some() {
            continue;
        }
        let show =
            |line: Option<&str>| line.map_or("(end of file)".into(), |l| l.trim_end().to_owned());
        return Some(format!(
            "first difference at line {number}\n  checked in: {}\n  rebuilt:    {}",
            show(a),
            show(b)
        ));
    }
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
