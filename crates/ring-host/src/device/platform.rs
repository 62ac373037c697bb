//! What the machine says of itself: signs of WSL2, and where the driver's library was looked for.
//! They word reports; what is chosen is decided by probing what the device does.

use crate::error::words;
use std::path::{Path, PathBuf};

/// Where WSL2 puts the libraries of the Windows driver.
pub const WSL_LIBRARIES: &str = "/usr/lib/wsl/lib";

/// Where Linux distributions put the driver's library.
const USUAL: [&str; 5] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
];

/// The library's file.
pub const LIBRARY: &str = "libcuda.so.1";

/// A sign that this is WSL2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum WslSign {
    /// The kernel's release names Microsoft (`/proc/sys/kernel/osrelease`).
    Kernel,
    /// The paravirtual GPU is there (`/dev/dxg`).
    Gpu,
    /// The folder of the Windows driver's libraries is there ([`WSL_LIBRARIES`]).
    Libraries,
}

words! {
    WslSign:
        Kernel "\"microsoft\" in /proc/sys/kernel/osrelease",
        Gpu "/dev/dxg",
        Libraries WSL_LIBRARIES;
}

/// The signs of WSL2 on this machine; none on any other.
pub fn wsl_signs() -> Vec<WslSign> {
    wsl_signs_under(Path::new("/"))
}

fn wsl_signs_under(root: &Path) -> Vec<WslSign> {
    let release = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease"));
    let kernel = release.is_ok_and(|r| r.to_ascii_lowercase().contains("microsoft"));
    let libraries = root.join(WSL_LIBRARIES.trim_start_matches('/'));
    let signs = [
        (kernel, WslSign::Kernel),
        (root.join("dev/dxg").exists(), WslSign::Gpu),
        (libraries.is_dir(), WslSign::Libraries),
    ];
    signs.into_iter().filter(|(there, _)| *there).map(|(_, sign)| sign).collect()
}

/// Bytes of host memory that can be had without swapping (`MemAvailable` of `/proc/meminfo`);
/// `u64::MAX` where nobody says.
#[doc(hidden)]
pub fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib.saturating_mul(1024))
}

/// A folder in which the driver's library may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct LibraryFolder {
    /// The folder.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::serialised::path"))]
    pub folder: PathBuf,
    /// Why it is looked at.
    pub why: &'static str,
    /// Whether [`LIBRARY`] is in it.
    pub found: bool,
}

/// Where the driver's library is looked for, in that order. The dynamic linker may know more
/// folders (`/etc/ld.so.conf`).
pub fn library_folders() -> Vec<LibraryFolder> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = std::env::split_paths(&path).map(|folder| (folder, "LD_LIBRARY_PATH"));
    let own = own.filter(|(folder, _)| !folder.as_os_str().is_empty());
    let usual = USUAL.map(|folder| (PathBuf::from(folder), "usual on Linux"));
    let wsl = [(PathBuf::from(WSL_LIBRARIES), "the Windows driver under WSL2")];
    let place = |(folder, why): (PathBuf, _)| {
        let found = folder.join(LIBRARY).exists();
        LibraryFolder { folder, why, found }
    };
    own.chain(usual).chain(wsl).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_read_from_files() {
        let root = std::env::temp_dir().join(format!("ring-signs-{}", std::process::id()));
        std::fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
        assert_eq!(wsl_signs_under(&root), []);
        let release = root.join("proc/sys/kernel/osrelease");
        std::fs::write(&release, "5.15.153.1-Microsoft-standard-WSL2\n").unwrap();
        assert_eq!(wsl_signs_under(&root), [WslSign::Kernel]);
        std::fs::create_dir_all(root.join("dev/dxg")).unwrap();
        std::fs::create_dir_all(root.join("usr/lib/wsl/lib")).unwrap();
        let all = [WslSign::Kernel, WslSign::Gpu, WslSign::Libraries];
        assert_eq!(wsl_signs_under(&root), all);
        std::fs::write(&release, "6.12.0-amd64\n").unwrap();
        assert_eq!(wsl_signs_under(&root), all[1..]);
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn available_memory_is_told() {
        let bytes = available_memory();
        assert!(bytes > 1 << 20 && bytes < 1 << 50, "{bytes}");
    }

    #[test]
    fn the_folder_of_wsl_is_looked_at() {
        assert!(library_folders().iter().any(|place| place.folder == Path::new(WSL_LIBRARIES)));
    }
}
