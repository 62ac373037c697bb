//! Kernels in PTX files that are chosen when the program runs.

use crate::device::image::{Image, ImageError};
use crate::device::layout_probe::LAYOUT_PROBE;
use crate::kernel::embedded::Kernels;
use crate::sync::lock;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Why a PTX file was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelFileError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It has no PTX that this host can use.
    #[error("{}: {source}", path.display())]
    Image {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ImageError,
    },
    /// It has no entry that a kernel could be launched by.
    #[error("{}: the PTX has no kernel; compile the crate with its entries", .0.display())]
    NoKernel(PathBuf),
}

/// A text for as long as the process: what a device has loaded is never unloaded. One text is kept once.
fn kept(text: &str) -> &'static str {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut kept = lock(&KEPT);
    if let Some(known) = kept.iter().find(|known| **known == text) {
        return known;
    }
    let text = &*text.to_owned().leak();
    kept.push(text);
    text
}

/// A PTX file that was read and checked.
#[derive(Clone, Debug)]
pub struct KernelFile {
    path: PathBuf,
    kernels: Kernels,
    entries: Vec<&'static str>,
}

impl KernelFile {
    /// The file, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its text.
    pub fn kernels(&self) -> Kernels {
        self.kernels
    }

    /// Names of its entries.
    pub fn entries(&self) -> &[&'static str] {
        &self.entries
    }

    fn read(path: PathBuf) -> Result<KernelFile, KernelFileError> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(source) => return Err(KernelFileError::Unreadable { path, source }),
        };
        let image = match Image::new(bytes) {
            Ok(image) => image,
            Err(source) => return Err(KernelFileError::Image { path, source }),
        };
        let ptx = kept(image.ptx());
        let entries: Vec<_> = ring_ptx::entries(ptx).collect();
        if entries.iter().all(|entry| *entry == ring_ptx::ABI_ENTRY) {
            return Err(KernelFileError::NoKernel(path));
        }
        // SAFETY: the promise of `KernelFiles::read`, the one caller.
        let kernels = unsafe { Kernels::new(ptx) };
        Ok(KernelFile { path, kernels, entries })
    }
}

/// PTX files whose kernels are run in place of those that a program was compiled with: each kernel is that
/// of the first file that has its entry. Without files every kernel is the program's.
#[derive(Clone, Debug, Default)]
pub struct KernelFiles(Vec<KernelFile>);

impl KernelFiles {
    /// The entry by which the file is known that has all built-in kernels: that of the layout probe.
    pub const BUILT_IN_ENTRY: &'static str = LAYOUT_PROBE;

    /// Reads and checks the files, each once. Their text is never freed, as [`Kernels::new`] says.
    ///
    /// # Safety
    /// As for [`Kernels::new`]: a GPU will run the files' code with access to all memory it can reach. The
    /// entries must be what `ring_device::run` makes of the kernel types that are launched with them.
    pub unsafe fn read<P: Into<PathBuf>>(
        paths: impl IntoIterator<Item = P>,
    ) -> Result<KernelFiles, KernelFileError> {
        paths
            .into_iter()
            .map(|path| KernelFile::read(path.into()))
            .collect::<Result<_, _>>()
            .map(KernelFiles)
    }

    /// The files, in the order in which they are looked through.
    pub fn files(&self) -> &[KernelFile] {
        &self.0
    }

    /// The first file that has the entry.
    pub fn find(&self, entry: &str) -> Option<&KernelFile> {
        self.0.iter().find(|file| file.entries.contains(&entry))
    }

    /// The kernels of the first file that has the entry, or else those.
    pub fn with_entry(&self, entry: &str, or: Kernels) -> Kernels {
        self.find(entry).map_or(or, KernelFile::kernels)
    }

    /// What stands for the built-in kernels ([`RuntimeConfig::kernels`](crate::RuntimeConfig::kernels)): the
    /// first file that has [`BUILT_IN_ENTRY`](KernelFiles::BUILT_IN_ENTRY), or else [`Kernels::BUILT_IN`].
    pub fn built_in(&self) -> Kernels {
        self.with_entry(KernelFiles::BUILT_IN_ENTRY, Kernels::BUILT_IN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PTX with these entries, in a file of that name.
    fn file(name: &str, entries: &[&str]) -> PathBuf {
        let abi = ring_shared::ABI_VERSION;
        let entry =
            |name: &&str| format!(".visible .entry {name}(\n.param .u64 a\n)\n{{ ret; }}\n");
        let entries: String = entries.iter().map(entry).collect();
        let head = ".version 8.4\n.target sm_70\n.visible .global .u32 RING_ABI_VERSION";
        write(name, format!("{head} = {abi};\n{entries}"))
    }

    fn write(name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = std::env::temp_dir().join(format!("ring-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        path
    }

    fn read(paths: &[PathBuf]) -> Result<KernelFiles, KernelFileError> {
        // SAFETY: nothing runs it.
        let files = unsafe { KernelFiles::read(paths) };
        paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
        files
    }

    #[test]
    fn a_kernel_is_that_of_the_first_file_that_has_it() {
        let paths = [file("a", &["one", "two"]), file("b", &["two", LAYOUT_PROBE, "three"])];
        let files = read(&paths).unwrap();
        let [a, b] = files.files() else { panic!("{files:?}") };
        let of = |entry| files.find(entry).map(KernelFile::path);
        assert_eq!(
            (of("one"), of("two"), of("three")),
            (Some(a.path()), Some(a.path()), Some(b.path()))
        );
        assert_eq!(of("four"), None);
        assert_eq!(files.with_entry("four", a.kernels()), a.kernels());
        assert_eq!(files.with_entry("three", a.kernels()), b.kernels());
        assert_eq!(
            (files.built_in(), b.entries()),
            (b.kernels(), &["two", LAYOUT_PROBE, "three"][..])
        );
    }

    #[test]
    fn without_files_the_built_in_kernels_are_the_program_s() {
        assert_eq!(KernelFiles::default().built_in(), Kernels::BUILT_IN);
        let files = read(&[file("c", &["one"])]).unwrap();
        assert_eq!(files.built_in(), Kernels::BUILT_IN);
    }

    #[test]
    fn a_file_is_loaded_as_ptx_also_with_the_text_of_the_built_in_kernels() {
        let files = read(&[write("same", Kernels::BUILT_IN.ptx())]).unwrap();
        let is_built_in = |kernels: Kernels| kernels.image().unwrap().is_built_in();
        assert_eq!(files.built_in().ptx(), Kernels::BUILT_IN.ptx());
        assert!(!is_built_in(files.built_in()) && is_built_in(Kernels::BUILT_IN));
    }

    #[test]
    fn a_file_that_is_not_taken_is_named() {
        let says = |path: PathBuf, parts: &[&str]| {
            let said = read(&[file("good", &["one"]), path.clone()]).unwrap_err().to_string();
            let path = path.display().to_string();
            assert!(said.contains(&path) && parts.iter().all(|part| said.contains(part)), "{said}");
        };
        says("no/such.ptx".into(), &["cannot read"]);
        says(write("d", b"\xff\xfe"), &["not PTX", "not text"]);
        says(write("e", "rubbish"), &["not PTX"]);
        says(
            write("f", ".version 8.4\n.target sm_70\n.visible .global .u32 RING_ABI_VERSION = 1;"),
            &["ABI version 1"],
        );
        says(file("g", &[]), &["has no kernel"]);
        says(file("h", &[ring_ptx::ABI_ENTRY]), &["has no kernel"]);
    }
}
