//! What is checked of PTX: that it names no folder, and asks for no more than was chosen.

use crate::{Arch, BuildError};
use std::path::Path;

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
