//! The built-in kernels, assembled for GPUs: what one loads without its driver compiling anything.

use super::loaded::{Architecture, NoCubin};

/// The built-in PTX, assembled for an architecture. `cargo xtask ptx` makes them all of the checked-in PTX.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cubin {
    /// The architecture.
    pub architecture: Architecture,
    /// The ELF file.
    pub elf: &'static [u8],
}

/// Bytes at an address as the ELF file's tables want it.
#[repr(C, align(16))]
struct Aligned<Bytes: ?Sized>(Bytes);

macro_rules! cubin {
    ($major:literal, $minor:literal) => {{
        const BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
            "../../../ptx/kernels.sm_",
            $major,
            $minor,
            ".cubin"
        )));
        Cubin { architecture: Architecture { major: $major, minor: $minor }, elf: &BYTES.0 }
    }};
}

/// All of them: those that `xtask/src/pins.rs` lists.
static CUBINS: [Cubin; 1] = [cubin!(9, 0)];

/// Devices of NVIDIA's Tegra line: no cubin but one for exactly them runs there.
const TEGRA: [Architecture; 3] = [
    Architecture { major: 7, minor: 2 },
    Architecture { major: 8, minor: 7 },
    Architecture { major: 10, minor: 1 },
];

/// The cubin for a GPU of that compute capability.
pub(crate) fn built_in(capability: (u32, u32)) -> Result<&'static Cubin, NoCubin> {
    let (major, minor) = capability;
    let wanted = Architecture { major, minor };
    let served = CUBINS.iter().filter(|cubin| serves(cubin.architecture, wanted));
    served.max_by_key(|cubin| cubin.architecture).ok_or(NoCubin::NotShipped(wanted))
}

/// Whether code that was assembled for one architecture runs on the other: the same major version, and a minor one
/// that is no smaller (CUDA C++ Programming Guide, Binary Compatibility).
fn serves(assembled: Architecture, device: Architecture) -> bool {
    assembled == device
        || (assembled.major == device.major
            && assembled.minor < device.minor
            && !TEGRA.contains(&device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn taken(major: u32, minor: u32) -> Option<String> {
        built_in((major, minor)).ok().map(|cubin| cubin.architecture.to_string())
    }

    #[test]
    fn the_nearest_of_the_same_major_version_is_taken() {
        for (major, minor, cubin) in [
            (7, 0, None),
            (8, 0, None),
            (8, 9, None),
            (9, 0, Some("sm_90")),
            (9, 1, Some("sm_90")),
            (10, 0, None),
            (12, 0, None),
        ] {
            assert_eq!(taken(major, minor).as_deref(), cubin, "{major}.{minor}");
        }
        let Err(why) = built_in((7, 5)) else { panic!("there is none") };
        assert_eq!(why.to_string(), "no cubin is shipped for sm_75");
    }

    #[test]
    fn code_runs_on_no_older_and_no_other_architecture() {
        let serves = |(a, b): (u32, u32), (c, d): (u32, u32)| {
            let of = |major, minor| Architecture { major, minor };
            super::serves(of(a, b), of(c, d))
        };
        assert!(serves((8, 0), (8, 9)) && serves((8, 7), (8, 7)));
        // Jetson Orin; Thor, as drivers before 580 name it.
        assert!(!serves((8, 0), (8, 7)) && !serves((10, 0), (10, 1)));
        assert!(!serves((8, 9), (8, 6)) && !serves((8, 6), (9, 6)) && !serves((9, 0), (8, 9)));
    }

    fn number(elf: &[u8], at: usize, bytes: usize) -> u32 {
        elf[at..at + bytes].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
    }

    /// The architecture that an ELF file for CUDA says it is for, as 90 for sm_90. Where it stands depends on the
    /// version of the ABI.
    fn said(elf: &[u8]) -> u32 {
        let (abi_version, flags) = (elf[8], number(elf, 48, 4));
        match abi_version {
            7 => flags & 0xff,
            8 => flags >> 8 & 0xff,
            other => panic!("ABI version {other} is not known here"),
        }
    }

    #[test]
    fn each_is_an_elf_file_for_its_architecture() {
        for Cubin { architecture, elf } in &CUBINS {
            assert_eq!(
                elf[..6],
                *b"\x7fELF\x02\x01",
                "{architecture}: ELF of 64 bits, little endian"
            );
            assert_eq!(number(elf, 18, 2), 190, "{architecture}: e_machine is EM_CUDA");
            assert_eq!(format!("sm_{}", said(elf)), architecture.to_string());
            assert_eq!(elf.as_ptr().addr() % 16, 0);
            for entry in ring_ptx::entries(crate::device::image::BUILT_IN) {
                let section = format!("\0.text.{entry}\0");
                let found = elf.windows(section.len()).any(|bytes| bytes == section.as_bytes());
                assert!(found, "{architecture} has {entry}");
            }
        }
    }

    #[test]
    fn every_checked_in_cubin_is_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("ptx");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.into_string().unwrap());
        let there: BTreeSet<_> = names.filter(|name| name.ends_with(".cubin")).collect();
        let embedded = CUBINS.iter().map(|cubin| format!("kernels.{}.cubin", cubin.architecture));
        assert_eq!(there, embedded.collect());
    }
}
