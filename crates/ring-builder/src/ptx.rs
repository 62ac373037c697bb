//! Reads entries, ABI version and header of PTX, and checks them.

use crate::{Arch, BuildError, pins};
use std::path::Path;

/// Names of the entry points of a module, in its order.
#[must_use]
pub fn entries(ptx: &str) -> Vec<String> {
    let entry = |line: &str| {
        let name = line.trim_start().strip_prefix(".visible .entry ")?;
        name.split(['(', ' ']).next().map(str::to_owned)
    };
    ptx.lines().filter_map(entry).collect()
}

/// The ABI version in `.global ... RING_ABI_VERSION = N;`, which LLVM writes so or as bytes, less
/// zeros at the end.
#[must_use]
pub fn abi_version(ptx: &str) -> Option<u32> {
    let is_ours = |line: &&str| line.contains(".global") && line.contains(pins::ABI_GLOBAL);
    let value = ptx.lines().find(is_ours)?.split_once('=')?.1.trim().trim_end_matches(';').trim();
    let Some(bytes) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) else {
        return value.parse().ok();
    };
    let mut version = [0; 4];
    for (k, byte) in bytes.split(',').enumerate() {
        *version.get_mut(k)? = byte.trim().parse().ok()?;
    }
    Some(u32::from_le_bytes(version))
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

/// The bytes that a line like `.global .b8 x[3] = {47, 97, 98};` holds, as text.
fn data(line: &str) -> String {
    let list = line.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    let bytes = list.map(|(list, _)| list.split(',').map_while(|byte| byte.trim().parse().ok()));
    String::from_utf8_lossy(&bytes.into_iter().flatten().collect::<Vec<u8>>()).into_owned()
}

/// Checks that `.version` and `.target` are what `arch` asks for at most.
///
/// # Errors
/// When they are not.
pub fn check_header(ptx: &str, arch: Arch) -> Result<(), BuildError> {
    let value = |name: &str| {
        let found = ptx.lines().find_map(|line| line.trim_start().strip_prefix(name));
        found.map(str::trim).unwrap_or("none")
    };
    let (version, target) = (value(".version "), value(".target "));
    let parsed =
        version.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let fits = parsed.is_some_and(|parsed: (u32, u32)| parsed <= arch.ptx_version());
    if fits && target.split(',').next().map(str::trim) == Some(&arch.to_string()) {
        return Ok(());
    }
    let (major, minor) = arch.ptx_version();
    Err(BuildError::Header {
        found: format!("PTX {version} on {target}"),
        chosen: format!("PTX {major}.{minor} on {arch}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.4
.target sm_70, debug
.visible .global .align 4 .b8 RING_ABI_VERSION[4] = {2, 1};
.visible .entry one(
)
.func two(
.visible .entry three()
";

    #[test]
    fn entries_and_version_are_read() {
        assert_eq!(entries(PTX), ["one", "three"]);
        assert_eq!(entries(".func a("), Vec::<String>::new());
        assert_eq!(abi_version(PTX), Some(258));
        assert_eq!(abi_version(".visible .global .u32 RING_ABI_VERSION = 7;"), Some(7));
        assert_eq!(abi_version(".visible .global .u32 RING_ABI_VERSION = 7 ; "), Some(7));
        assert_eq!(abi_version(".version 8.4"), None);
    }

    #[test]
    fn a_folder_is_reported_with_its_line() {
        let bad = format!("{PTX}// /home/me/x.rs\n");
        assert!(names_none(PTX, &[Path::new("/home/me")]).is_ok());
        assert!(names_none(&bad, &[Path::new("/")]).is_ok(), "every path begins so");
        let said = names_none(&bad, &[Path::new("/home/me")]).unwrap_err().to_string();
        assert!(said.contains("line 8") && said.contains("/home/me"), "{said}");
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
