//! The kernels that a command runs: those that it was shipped with, or those of files (`--ptx`).

use crate::failure::Failure;
use ring_builder::digest::sha256;
use ring_host::{Device, DeviceKind, KernelFile, KernelFiles, Kernels, Opened};
use std::path::PathBuf;

/// Digits of a file's digest that a report has.
const DIGITS: usize = 12;

/// Where a command takes its kernels from.
#[derive(Clone, Debug)]
pub struct KernelSource {
    files: KernelFiles,
    /// The entries that are looked for.
    runs: Vec<&'static str>,
}

impl KernelSource {
    /// Reads the files for a command that looks for those entries. Each must have one of them, and the device
    /// must be one that runs PTX.
    pub fn read(
        paths: &[PathBuf],
        device: Device,
        runs: Vec<&'static str>,
    ) -> Result<KernelSource, Failure> {
        if device == Device::Cpu && !paths.is_empty() {
            return Err(Failure::PtxOnCpu(Opened::AskedFor.to_string()));
        }
        // SAFETY: who gives `--ptx` vouches for the files' code, as the option's help says.
        let files = unsafe { KernelFiles::read(paths) }?;
        let looks_for = |entry: &&'static str| runs.contains(entry);
        match files.files().iter().find(|file| !file.entries().iter().any(looks_for)) {
            Some(file) => Err(Failure::NoKernel {
                path: file.path().to_owned(),
                has: file.entries().to_vec(),
                runs,
            }),
            None => Ok(KernelSource { files, runs }),
        }
    }

    /// An error if files were given and the device that was found runs no PTX. `why` says why it was found.
    pub fn check(&self, found: DeviceKind, why: &impl ToString) -> Result<(), Failure> {
        match found == DeviceKind::Cpu && !self.files.files().is_empty() {
            true => Err(Failure::PtxOnCpu(why.to_string())),
            false => Ok(()),
        }
    }

    /// What stands for the built-in kernels.
    pub fn built_in(&self) -> Kernels {
        self.files.built_in()
    }

    /// The kernels that have the entry: a file's, or else those.
    pub fn with_entry(&self, entry: &str, or: Kernels) -> Kernels {
        self.files.with_entry(entry, or)
    }

    /// Which kernels run, for a report.
    pub fn in_words(&self, device: DeviceKind) -> String {
        if device == DeviceKind::Cpu {
            return "compiled for the host".to_owned();
        }
        let mut words: Vec<_> = self.files.files().iter().map(named).collect();
        if self.runs.iter().any(|entry| self.files.find(entry).is_none()) {
            words.push(if words.is_empty() { "shipped" } else { "the rest shipped" }.to_owned());
        }
        words.join(", ")
    }
}

/// A file, so that it is known again.
fn named(file: &KernelFile) -> String {
    let name = file.path().file_name().unwrap_or_default().to_string_lossy();
    format!("{name} (SHA-256 {})", &sha256(file.kernels().ptx())[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_which_kernels_run() {
        let path = std::env::temp_dir().join(format!("ring-cli-{}.ptx", std::process::id()));
        std::fs::write(&path, Kernels::BUILT_IN.ptx()).unwrap();
        let read = |paths: &[PathBuf], runs: &[&'static str]| {
            let source = KernelSource::read(paths, Device::Auto, runs.to_vec()).unwrap();
            source.in_words(DeviceKind::Cuda)
        };
        let of_file = format!(
            "ring-cli-{}.ptx (SHA-256 {})",
            std::process::id(),
            &sha256(Kernels::BUILT_IN.ptx())[..12]
        );
        let paths = [path];
        assert_eq!(read(&[], &["ring_echo"]), "shipped");
        assert_eq!(read(&paths, &["ring_echo"]), of_file);
        assert_eq!(read(&paths, &["ring_echo", "other"]), format!("{of_file}, the rest shipped"));
        let source = KernelSource::read(&paths, Device::Auto, vec!["ring_echo"]).unwrap();
        assert_eq!(source.in_words(DeviceKind::Cpu), "compiled for the host");
        let refused = source.check(DeviceKind::Cpu, &"no GPU").unwrap_err();
        assert!(matches!(refused, Failure::PtxOnCpu(why) if why == "no GPU"));
        assert!(source.check(DeviceKind::Cuda, &"found").is_ok());
        std::fs::remove_file(&paths[0]).unwrap();
    }
}
