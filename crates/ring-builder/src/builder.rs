//! The options of a build, and the build itself.

use crate::compile::{Compile, Compiled};
use crate::files::{absolute, registry, write};
use crate::package::Package;
use crate::toolchain::{self, Toolchain};
use crate::{Arch, BuildError, manifest, ptx, rust_cuda, script};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The release profile that device code needs, whatever the workspace says: one module, no unwinding,
/// nothing about sources.
const PROFILE: [&str; 8] = [
    "lto='fat'",
    "codegen-units=1",
    "panic='abort'",
    "opt-level=3",
    "debug=0",
    "incremental=false",
    "debug-assertions=false",
    "overflow-checks=false",
];

/// Flags of the kernels' crate alone: `ring_kernel!` makes entry points in it, which are unstable. A
/// crate that says so itself may.
pub const FLAGS: [&str; 3] = ["-Zcrate-attr=feature(abi_ptx)", "-A", "duplicate_features"];

/// A build of a crate with kernels. What is not chosen is right for most.
#[derive(Clone, Debug)]
pub struct Builder {
    path: PathBuf,
    name: String,
    arch: Option<String>,
    features: Vec<String>,
    toolchain: Option<String>,
    out_dir: Option<PathBuf>,
    target_dir: Option<PathBuf>,
    compiler: Compiler,
}

/// Which compiler makes the PTX.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compiler {
    /// Upstream rustc, by the pinned nightly. It needs no CUDA toolkit, and a handler that panics ends its
    /// channel only.
    #[default]
    Upstream,
    /// Rust-CUDA: cuda_std, cuda_builder and NVIDIA's libNVVM. It needs a nightly of its own, LLVM 7 and CUDA 12;
    /// a handler that panics ends all that the process has on the GPU.
    RustCuda,
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compiler::Upstream => "upstream",
            Compiler::RustCuda => "rust-cuda",
        })
    }
}

impl FromStr for Compiler {
    type Err = BuildError;

    fn from_str(name: &str) -> Result<Compiler, BuildError> {
        let known = [Compiler::Upstream, Compiler::RustCuda];
        let found = known.into_iter().find(|compiler| compiler.to_string() == name);
        found.ok_or_else(|| BuildError::Compiler { name: name.to_owned() })
    }
}

/// What a build made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Built {
    /// The PTX module.
    pub ptx: PathBuf,
    /// What it was made from, as `key = value` lines.
    pub manifest: PathBuf,
    /// Names of its entry points.
    pub entries: Vec<String>,
    /// The ABI version that a host must have.
    pub abi_version: u32,
    /// Whether it differs from what was there before.
    pub changed: bool,
    /// What the compiler warned of. A build script shows it by itself.
    pub warnings: String,
}

impl Builder {
    /// Builds the crate in `path`: in a build script, from the package's folder on.
    pub fn new(path: impl Into<PathBuf>) -> Builder {
        Builder {
            path: path.into(),
            name: "kernels".to_owned(),
            arch: None,
            features: Vec::new(),
            toolchain: None,
            out_dir: None,
            target_dir: None,
            compiler: Compiler::Upstream,
        }
    }

    /// The GPU architecture, `sm_70` or newer; by default `sm_70`, which every newer one runs too.
    #[must_use]
    pub fn arch(self, name: impl Into<String>) -> Builder {
        Builder { arch: Some(name.into()), ..self }
    }

    /// Features of the crate that are switched on, beside its default.
    #[must_use]
    pub fn features<T: Into<String>>(self, names: impl IntoIterator<Item = T>) -> Builder {
        Builder { features: names.into_iter().map(Into::into).collect(), ..self }
    }

    /// A nightly with `rust-src` in place of the pinned one: a name of rustup's, or a sysroot, which
    /// has a separator in it. The variable `RING_TOOLCHAIN` wins over it.
    #[must_use]
    pub fn toolchain(self, name: impl Into<String>) -> Builder {
        Builder { toolchain: Some(name.into()), ..self }
    }

    /// The folder that the files go to: by default `OUT_DIR` in a build script, else the crate's.
    #[must_use]
    pub fn out_dir(self, path: impl Into<PathBuf>) -> Builder {
        Builder { out_dir: Some(path.into()), ..self }
    }

    /// The folder that cargo compiles in: by default one in `OUT_DIR` in a build script, else
    /// `CARGO_TARGET_DIR`, else `target` in the crate's folder. Nothing else must be built in it.
    #[must_use]
    pub fn target_dir(self, path: impl Into<PathBuf>) -> Builder {
        Builder { target_dir: Some(path.into()), ..self }
    }

    /// The files' name, less `.ptx` and `.manifest`; by default `kernels`.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Builder {
        Builder { name: name.into(), ..self }
    }

    /// The compiler.
    #[must_use]
    pub fn compiler(self, compiler: Compiler) -> Builder {
        Builder { compiler, ..self }
    }

    /// Compiles, checks the PTX, and writes it with its manifest where they changed. In a build script
    /// it tells cargo what to watch.
    ///
    /// # Errors
    /// When something is missing, the crate does not compile, or its PTX is not what it must be.
    pub fn build(&self) -> Result<Built, BuildError> {
        script::tell(script::watched_variables(&[toolchain::VARIABLE, "RUSTUP_HOME"]));
        let arch: Arch = self.arch.as_deref().map_or(Ok(Arch::OLDEST), str::parse)?;
        if self.name.is_empty() || Path::new(&self.name).file_name() != Some(self.name.as_ref()) {
            return Err(BuildError::FileName(self.name.clone()));
        }
        let package = Package::at(&self.path)?;
        // Should it fail and the script go on, an edit brings it back.
        script::tell(script::watched(&[package.folder.join("src")], &package.workspace));
        let target = absolute(&self.target(&package))?;
        if self.compiler == Compiler::RustCuda {
            return self.by_rust_cuda(&package, arch, &target);
        }
        let toolchain = toolchain::find(self.toolchain.as_deref())?;
        toolchain.check_arch(arch)?;
        self.compile(&package, &toolchain, arch, &target)
    }

    fn compile(
        &self,
        package: &Package,
        toolchain: &Toolchain,
        arch: Arch,
        target: &Path,
    ) -> Result<Built, BuildError> {
        let mut options = vec!["--lib".to_owned(), "--release".to_owned()];
        for setting in PROFILE {
            options.extend(["--config".to_owned(), format!("profile.release.{setting}")]);
        }
        if !self.features.is_empty() {
            options.extend(["--features".to_owned(), self.features.join(",")]);
        }
        let compile = Compile {
            toolchain,
            folder: &package.folder,
            package: &package.name,
            profile: "release",
            options,
            flags: FLAGS.map(str::to_owned).into(),
            arch,
            target,
        };
        let compiled = compile.run()?;
        ptx::check_header(&compiled.ptx, arch)?;
        let folders = [target, toolchain.sysroot()];
        self.finish(package, &compiled, &folders, |built| {
            manifest::text(&compile, built, &compiled.ptx)
        })
    }

    fn by_rust_cuda(
        &self,
        package: &Package,
        arch: Arch,
        target: &Path,
    ) -> Result<Built, BuildError> {
        script::tell(script::watched_variables(&[rust_cuda::LLVM_VARIABLE]));
        script::tell(script::watched_variables(&rust_cuda::CUDA_VARIABLES));
        let toolchain = self.toolchain.as_deref();
        let made = rust_cuda::compile(package, &self.features, arch, toolchain, target)?;
        // The driver that it asks for is that of libNVVM's CUDA.
        ptx::check_target(&made.compiled.ptx, arch)?;
        self.finish(package, &made.compiled, &[target, &made.sysroot], |built| {
            manifest::by_rust_cuda(package, arch, &made, built)
        })
    }

    /// Checks a module, writes it with its manifest, and tells a build script's cargo of it. It must name none of
    /// the `folders`.
    fn finish(
        &self,
        package: &Package,
        compiled: &Compiled,
        folders: &[&Path],
        manifest: impl FnOnce(&Built) -> String,
    ) -> Result<Built, BuildError> {
        let (text, registry) = (&compiled.ptx, registry());
        ptx::names_none(text, &[folders, &[&package.workspace, &registry]].concat())?;
        let mut built = self.built(package, text)?;
        built.warnings.clone_from(&compiled.warnings);
        let manifest = manifest(&built);
        built.changed = write(&built.ptx, text)? | write(&built.manifest, &manifest)?;
        script::tell(script::watched(&compiled.sources, &package.workspace));
        script::tell(script::warnings(&built.warnings));
        Ok(built)
    }

    /// The files, less their extensions.
    fn file(&self, package: &Package) -> Result<PathBuf, BuildError> {
        let out = self.out_dir.clone().or_else(script::out_dir);
        Ok(absolute(&out.unwrap_or_else(|| package.folder.clone()))?.join(&self.name))
    }

    /// What a build made, if it is a module of ring kernels. Nothing is written yet.
    fn built(&self, package: &Package, text: &str) -> Result<Built, BuildError> {
        let (file, name) = (self.file(package)?, || package.name.clone());
        let entries: Vec<String> = ring_ptx::entries(text).map(str::to_owned).collect();
        if entries.is_empty() {
            return Err(BuildError::NoEntry { package: name() });
        }
        let abi_version =
            ring_ptx::abi_version(text).ok_or_else(|| BuildError::NoAbi { package: name() })?;
        Ok(Built {
            ptx: file.with_added_extension("ptx"),
            manifest: file.with_added_extension("manifest"),
            entries,
            abi_version,
            changed: false,
            warnings: String::new(),
        })
    }

    fn target(&self, package: &Package) -> PathBuf {
        if let Some(chosen) = &self.target_dir {
            return chosen.clone();
        }
        let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
        let target = script::out_dir().or(chosen).unwrap_or_else(|| package.folder.join("target"));
        let target = target.join("ring-builder");
        match self.compiler {
            Compiler::Upstream => target.join(&package.name),
            Compiler::RustCuda => target, // which is compiled once for all packages
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_chosen_wrong_is_named() {
        let said = |builder: Builder| builder.build().unwrap_err().to_string();
        assert!(said(Builder::new("/ring/none").arch("sm_60")).contains("'sm_60'"));
        assert!(said(Builder::new("/ring/none")).contains("there is no folder /ring/none"));
        for name in ["", "a/b", ".."] {
            let said = said(Builder::new("/ring/none").name(name));
            assert!(said.contains(&format!("'{name}' is no name of files")), "{said}");
        }
    }
}
