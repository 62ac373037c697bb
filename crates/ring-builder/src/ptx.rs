//! What is checked of PTX: that it names no folder, and asks for no more than was chosen; and what is added to it.

use crate::{Arch, BuildError};
use std::path::Path;

/// Most registers of a thread of a kernel with ports. A block of 512 threads, which is the default of a launch, has no more: a
/// multiprocessor has 65,536.
pub const REGISTERS: u32 = 128;

/// What `ring-device` writes into such a kernel.
const MARK: &str = "// ring: registers for 512 threads";

/// The same PTX, where the threads of kernels with ports have [`REGISTERS`] at most. Left to itself, `ptxas` takes some more where
/// that seems to make a kernel a little faster, and the kernel then cannot be launched with the threads that a launch has by
/// default.
#[must_use]
pub fn with_limited_registers(ptx: &str) -> String {
    let (mut limited, mut rest) = (String::with_capacity(ptx.len() + 1024), ptx);
    while let Some(at) = rest.find("\n.visible .entry ") {
        let (before, entry) = rest.split_at(at + 1);
        limited.push_str(before);
        let end = entry.find("\n}\n").unwrap_or(entry.len());
        let (entry, behind) = entry.split_at(end);
        match entry.split_once("\n{\n") {
            Some((head, body)) if body.contains(MARK) => {
                limited.push_str(&format!("{head}\n.maxnreg {REGISTERS}\n{{\n{body}"));
            }
            _ => limited.push_str(entry),
        }
        rest = behind;
    }
    limited + rest
}

/// Checks that no line names one of the folders. A path would make the PTX differ from clone to
/// clone, and tell where it was built.
///
/// # Errors
/// When one does.
pub fn names_none(ptx: &str, folders: &[&Path]) -> Result<(), BuildError> {
    for folder in folders.iter().filter(|folder| folder.parent().is_some()) {
        let name = folder.to_string_lossy();
        let tells = |line: &str| line.contains(name.as_ref()) || data(line).contains(name.as_ref());
        if let Some(line) = ptx.lines().position(tells) {
            return Err(BuildError::NamesFolder { line: line + 1, folder: folder.to_path_buf() });
        }
    }
    Ok(())
}

/// The bytes that a line's initialiser holds, as text.
fn data(line: &str) -> String {
    let bytes: Vec<u8> = ring_ptx::bytes(line).map_while(|byte| byte).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Checks that `.version` and `.target` are what `arch` asks for at most.
///
/// # Errors
/// When they are not.
pub fn check_header(ptx: &str, arch: Arch) -> Result<(), BuildError> {
    let version = ring_ptx::header(ptx).version();
    match version.is_some_and(|version| version <= arch.ptx_version()) {
        true => check_target(ptx, arch),
        false => Err(other_header(ptx, arch)),
    }
}

/// Checks that `.target` is `arch`.
///
/// # Errors
/// When it is not.
pub fn check_target(ptx: &str, arch: Arch) -> Result<(), BuildError> {
    match ring_ptx::header(ptx).architecture() == Some(&arch.to_string()) {
        true => Ok(()),
        false => Err(other_header(ptx, arch)),
    }
}

fn other_header(ptx: &str, arch: Arch) -> BuildError {
    let header = ring_ptx::header(ptx);
    let [version, target] = [header.version, header.target]
        .map(|statement| statement.map_or("none", |statement| statement.value()));
    let (major, minor) = arch.ptx_version();
    BuildError::Header {
        found: format!("PTX {version} on {target}"),
        chosen: format!("PTX {major}.{minor} on {arch}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.4
.target sm_70, debug
.visible .entry one(
)
";

    #[test]
    fn kernels_with_the_mark_have_limited_registers() {
        let text = |body: &str| {
            let entry = |name, body| {
                format!(".visible .entry {name}(\n\t.param .u64 p\n)\n{{\n\t{body}\n\tret;\n}}\n")
            };
            ["\n.func f()\n{\n}\n".to_owned(), entry("a", ""), entry("b", body), entry("c", "")]
                .concat()
        };
        assert_eq!(with_limited_registers(&text("")), text(""));
        let limited = text(MARK)
            .replace("b(\n\t.param .u64 p\n)\n{", "b(\n\t.param .u64 p\n)\n.maxnreg 128\n{");
        assert_eq!(with_limited_registers(&text(MARK)), limited);
    }

    #[test]
    fn a_folder_is_reported_with_its_line() {
        let bad = format!("{PTX}// /home/me/x.rs\n");
        assert!(names_none(PTX, &[Path::new("/home/me")]).is_ok());
        assert!(names_none(&bad, &[Path::new("/")]).is_ok(), "every path begins so");
        let said = names_none(&bad, &[Path::new("/home/me")]).unwrap_err().to_string();
        assert!(said.contains("line 5") && said.contains("/home/me"), "{said}");
        let bytes = ".global .align 1 .b8 x[6] = {1, 47, 104, 105, 47, 0};";
        let said = names_none(bytes, &[Path::new("/hi")]).unwrap_err().to_string();
        assert!(said.contains("line 1 of the PTX names /hi"), "{said}");
    }

    #[test]
    fn another_header_is_reported() {
        check_header(PTX, Arch::OLDEST).unwrap();
        check_header(&PTX.replace("8.4", "7.8"), Arch::OLDEST).unwrap();
        for (good, bad) in [("8.4", "8.5"), ("8.4", "9.0"), ("sm_70", "sm_90a"), (".target", "")] {
            let said = check_header(&PTX.replace(good, bad), Arch::OLDEST).unwrap_err().to_string();
            assert!(said.contains("PTX 8.4 on sm_70 was chosen"), "{said}");
        }
    }
}
