//! Runs cargo once: a crate and its dependencies become one PTX module by fat LTO.

use crate::ptx::{with_limited_registers, with_one_base};
use crate::toolchain::Toolchain;
use crate::{Arch, BuildError, pins};
use std::fs;
use std::path::{Path, PathBuf};

/// What is compiled, and how.
#[derive(Debug)]
pub struct Compile<'a> {
    /// Whose cargo and rustc.
    pub toolchain: &'a Toolchain,
    /// The folder that cargo runs in.
    pub folder: &'a Path,
    /// The package. Its profile must have fat LTO, one codegen unit and abort at panics.
    pub package: &'a str,
    /// The folder that cargo gives the profile.
    pub profile: &'a str,
    /// Options of `cargo rustc` that choose package, profile and features.
    pub options: Vec<String>,
    /// Flags of the last crate only.
    pub flags: Vec<String>,
    /// The GPU.
    pub arch: Arch,
    /// A target folder for device builds only.
    pub target: &'a Path,
}

/// What came of it.
#[derive(Debug)]
pub struct Compiled {
    /// The PTX module.
    pub ptx: String,
    /// What the compiler said all the same.
    pub warnings: String,
    /// Source files of the crate and of its path dependencies.
    pub sources: Vec<PathBuf>,
}

/// The arguments of cargo for a device build, less folders.
#[must_use]
pub fn cargo_args<T: AsRef<str>>(options: &[T]) -> Vec<String> {
    let after = ["--crate-type", "cdylib", "--target", pins::TARGET, "-Zbuild-std=core", "--quiet"];
    let options = options.iter().map(AsRef::as_ref);
    ["rustc"].into_iter().chain(options).chain(after).map(str::to_owned).collect()
}

impl Compile<'_> {
    /// The command as one would type it, less folders and environment.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = vec!["cargo".to_owned()];
        words.extend(cargo_args(&self.options));
        words.extend(["--".to_owned(), "--emit=asm".to_owned()]);
        words.extend(self.flags.iter().cloned());
        words.join(" ")
    }

    /// Compiles.
    ///
    /// # Errors
    /// When the crate does not compile, or leaves no PTX; the error has all that the compiler said.
    pub fn run(&self) -> Result<Compiled, BuildError> {
        let built = self.target.join(pins::TARGET).join(self.profile);
        self.forget(&built)?;
        let mut cargo = self.toolchain.cargo(self.folder);
        cargo.args(cargo_args(&self.options)).arg("--target-dir").arg(self.target);
        cargo.args(["--", "--emit=asm"]).args(&self.flags);
        cargo.env("CARGO_BUILD_BUILD_DIR", self.target); // a user's own would have what is looked for here
        cargo.env("CARGO_ENCODED_RUSTFLAGS", pins::rustflags(self.arch).join("\x1f"));
        let output = cargo.output().map_err(|source| BuildError::NotStarted {
            program: self.toolchain.sysroot().join("bin/cargo"),
            source,
        })?;
        // The PTX version is ours to choose.
        let noise = "unstable feature specified for `-Ctarget-feature`";
        let said = without_noise(&String::from_utf8_lossy(&output.stderr), noise);
        if !output.status.success() {
            return Err(self.refused(&said));
        }
        let path = assembly(&built.join("deps"), &self.package.replace('-', "_"))?;
        let ptx = fs::read_to_string(&path).map_err(BuildError::io(&path))?;
        let ptx = with_one_base(&with_limited_registers(&ptx));
        let list = built.join(path.file_name().unwrap_or_default()).with_extension("d");
        let list = fs::read_to_string(&list).map_err(BuildError::io(&list))?;
        Ok(Compiled { ptx, warnings: said, sources: sources(&list) })
    }

    /// Why the compiler refused the crate. A module without a panic handler is one without a kernel:
    /// `ring_kernel!` brings in ring-device, which has the handler. Beside other errors it says nothing
    /// new, and is left out.
    fn refused(&self, said: &str) -> BuildError {
        let no_handler = |part: &&str| part.contains("`#[panic_handler]` function required");
        let is_error = |part: &&str| {
            part.starts_with("error") && !part.starts_with("error: could not compile")
        };
        let (handler, others): (Vec<&str>, Vec<&str>) = said.split("\n\n").partition(no_handler);
        if !handler.is_empty() && !others.iter().any(is_error) {
            return BuildError::NoKernel { package: self.package.to_owned() };
        }
        BuildError::Compile { command: self.words(), said: others.join("\n\n") }
    }

    /// An old `.s` would be taken for the new one if cargo found nothing to do, so it goes, and with
    /// it cargo's memory of having made it.
    fn forget(&self, built: &Path) -> Result<(), BuildError> {
        let package = format!("{}-", self.package);
        for folder in [built.join("deps"), built.join(".fingerprint")] {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for path in entries.flatten().map(|entry| entry.path()) {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() && name.starts_with(&package) {
                    fs::remove_dir_all(&path).map_err(BuildError::io(&path))?;
                } else if name.ends_with(".s") {
                    fs::remove_file(&path).map_err(BuildError::io(&path))?;
                }
            }
        }
        Ok(())
    }
}

/// All that the compiler said, less its remarks with `noise` in them, which are about flags that are not the user's.
pub(crate) fn without_noise(said: &str, noise: &str) -> String {
    let parts: Vec<&str> = said
        .split("\n\n")
        .filter(|part| !part.contains(noise) && !part.trim().is_empty())
        .collect();
    parts.join("\n\n")
}

fn assembly(deps: &Path, krate: &str) -> Result<PathBuf, BuildError> {
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(krate) && name.ends_with(".s")
    };
    let entries = fs::read_dir(deps).map_err(BuildError::io(deps))?;
    let mut found: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(is_ours).collect();
    match (found.pop(), found.len()) {
        (Some(path), 0) => Ok(path),
        (None, _) => Err(BuildError::Modules { found: 0 }),
        (Some(_), more) => Err(BuildError::Modules { found: more + 1 }),
    }
}

/// The files behind `TARGET:` in cargo's list of what a build depends on; `\ ` is a space in a name.
pub(crate) fn sources(list: &str) -> Vec<PathBuf> {
    let Some((_, files)) = list.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let files = files.replace("\\ ", "\0");
    files.split_whitespace().map(|file| PathBuf::from(file.replace('\0', " "))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn options_stand_behind_the_task() {
        let args = cargo_args(&["--locked", "-p", "x"]).join(" ");
        let end = "--crate-type cdylib --target nvptx64-nvidia-cuda -Zbuild-std=core --quiet";
        assert_eq!(args, format!("rustc --locked -p x {end}"));
    }

    #[test]
    fn names_of_sources_may_have_spaces() {
        let found = sources("/t/x.ptx: /a/lib.rs /b\\ c/d.rs\n");
        assert_eq!(found, [PathBuf::from("/a/lib.rs"), PathBuf::from("/b c/d.rs")]);
        assert_eq!(sources(""), Vec::<PathBuf>::new());
    }

    #[test]
    fn only_the_remark_on_our_own_flag_is_left_out() {
        let noise = "warning: unstable feature specified: `ptx84`\n  |\n";
        let without = |said: &str| without_noise(said, "feature specified");
        assert_eq!(without(&format!("{noise}\n")), "");
        let said = format!("warning: a\n --> b\n\n{noise}\nwarning: c\n");
        assert_eq!(without(&said), "warning: a\n --> b\n\nwarning: c\n");
    }

    #[test]
    fn one_module_it_must_be() {
        let scratch = Scratch::new("assembly");
        let said = || assembly(&scratch.0, "my_kernels").unwrap_err().to_string();
        assert!(said().contains("left 0 PTX modules"), "{}", said());
        let one = scratch.put("my_kernels-1.s", "");
        scratch.put("my_kernels-1.d", "");
        scratch.put("other-1.s", "");
        assert_eq!(assembly(&scratch.0, "my_kernels").unwrap(), one);
        scratch.put("my_kernels-2.s", "");
        assert!(said().contains("left 2 PTX modules"), "{}", said());
    }
}
