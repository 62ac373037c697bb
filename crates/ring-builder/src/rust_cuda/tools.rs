//! What Rust-CUDA needs on a machine: its nightly, LLVM 7, and a CUDA toolkit with libNVVM.

use super::error::cuda_version;
use super::{COMPONENTS, CUDA, LLVM, NIGHTLY, REVISION, RUSTC_COMMIT, RustCudaError};
use crate::{BuildError, Toolchain, environment, toolchain};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that names llvm-config.
pub const LLVM_VARIABLE: &str = "LLVM_CONFIG";
/// Variables that name the toolkit, in the order in which Rust-CUDA asks them.
pub const CUDA_VARIABLES: [&str; 4] =
    ["CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR", "CUDA_HOME"];
/// Where it is otherwise.
pub const CUDA_FOLDERS: [&str; 3] = ["/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda"];
/// What must be in it, and the package that brings it.
const CUDA_PARTS: [(&str, &str); 4] = [
    ("include/cuda_runtime_api.h", "cuda-cudart-dev"),
    ("nvvm/include/nvvm.h", "cuda-nvcc (from CUDA 13 on: libnvvm)"),
    ("nvvm/lib64/libnvvm.so", "cuda-nvcc (from CUDA 13 on: libnvvm)"),
    ("nvvm/libdevice/libdevice.10.bc", "cuda-nvcc (from CUDA 13 on: libnvvm)"),
];
/// The variable by which a dynamic linker finds libNVVM.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// The tools.
#[derive(Debug)]
pub struct Tools {
    toolchain: Toolchain,
    llvm_config: PathBuf,
    llvm: String,
    cuda_path: PathBuf,
    cuda: u32,
}

impl Tools {
    /// Finds all of them.
    pub fn find(wanted: Option<&str>) -> Result<Tools, BuildError> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let (llvm_config, llvm) = llvm(variable(LLVM_VARIABLE))?;
        let named = CUDA_VARIABLES.into_iter().filter_map(variable).map(PathBuf::from);
        let places: Vec<PathBuf> = named.chain(CUDA_FOLDERS.map(PathBuf::from)).collect();
        let (cuda_path, cuda) = cuda(&places)?;
        let chosen = toolchain::chosen(wanted);
        let toolchain = nightly(&toolchain::home(), chosen.as_deref())?;
        Ok(Tools { toolchain, llvm_config, llvm, cuda_path, cuda })
    }

    /// The nightly's cargo in `folder`, which finds the other tools.
    pub fn cargo(&self, folder: &Path) -> Command {
        let mut cargo = self.toolchain.cargo(folder);
        cargo.env("LLVM_CONFIG", &self.llvm_config).env("CUDA_PATH", &self.cuda_path);
        let mut libraries = vec![self.cuda_path.join("nvvm/lib64")];
        let others = std::env::var_os(LIBRARY_PATH).unwrap_or_default();
        libraries
            .extend(std::env::split_paths(&others).filter(|path| !path.as_os_str().is_empty()));
        if let Ok(libraries) = std::env::join_paths(libraries) {
            cargo.env(LIBRARY_PATH, libraries);
        }
        cargo
    }

    /// Their versions, for a manifest.
    pub fn versions(&self) -> Vec<(&'static str, String)> {
        vec![
            ("compiler", "rust-cuda".to_owned()),
            ("revision", REVISION.to_owned()),
            ("rustc", self.toolchain.release().to_owned()),
            ("rustc-commit", self.toolchain.commit().to_owned()),
            ("llvm", self.llvm.clone()),
            ("cuda", cuda_version(self.cuda)),
        ]
    }

    /// Its folder.
    pub fn sysroot(&self) -> &Path {
        self.toolchain.sysroot()
    }
}

/// The nightly, of those that rustup keeps in `home`, or the one that was chosen, if it is of the same commit.
fn nightly(home: &Path, chosen: Option<&str>) -> Result<Toolchain, BuildError> {
    let name = chosen.unwrap_or(NIGHTLY);
    let Some(found) = toolchain::named(home, name)? else {
        return Err(RustCudaError::NoToolchain { name: name.to_owned() }.into());
    };
    let commit = found.commit().to_owned();
    let name = found.rustup_name().unwrap_or_else(|| name.to_owned());
    if commit != RUSTC_COMMIT {
        return Err(RustCudaError::WrongToolchain { name, commit }.into());
    }
    let list = found.sysroot().join("lib/rustlib/components");
    let list = std::fs::read_to_string(&list).map_err(BuildError::io(&list))?;
    // rustup appends the host's triple to most, and `-preview` to some.
    let has = |component: &str| list.lines().any(|line| line.starts_with(component));
    match COMPONENTS.into_iter().find(|component| !has(component)) {
        Some(component) => Err(RustCudaError::NoComponent { name, component }.into()),
        None => Ok(found),
    }
}

/// The llvm-config that was named or is on the path, and its version.
fn llvm(named: Option<OsString>) -> Result<(PathBuf, String), RustCudaError> {
    let programs = match named {
        Some(program) => vec![PathBuf::from(program)],
        None => ["llvm-config-7", "llvm-config"].map(PathBuf::from).into(),
    };
    let mut wrong = RustCudaError::NoLlvm;
    for program in programs {
        let output = environment::command(&program).arg("--version").output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else { continue };
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if version.starts_with(LLVM) {
            return Ok((program, version));
        }
        wrong = RustCudaError::WrongLlvm { program, version };
    }
    Err(wrong)
}

/// The first of `places` that has a CUDA toolkit, and its version, if nothing is missing in it.
fn cuda(places: &[PathBuf]) -> Result<(PathBuf, u32), RustCudaError> {
    let header = |path: &Path| std::fs::read_to_string(path.join("include/cuda.h"));
    let found = places.iter().find_map(|path| Some((path, header(path).ok()?)));
    let Some((path, header)) = found else {
        return Err(RustCudaError::NoCuda { places: CUDA_FOLDERS.into() });
    };
    let number = |line: &str| line.strip_prefix("#define CUDA_VERSION")?.trim().parse().ok();
    let version = header.lines().find_map(number).unwrap_or(0);
    if !CUDA.contains(&version) {
        return Err(RustCudaError::WrongCuda { path: path.clone(), version });
    }
    match CUDA_PARTS.into_iter().find(|(part, _)| !path.join(part).is_file()) {
        Some((part, package)) => Err(RustCudaError::NoPart { cuda: path.clone(), part, package }),
        None => Ok((path.clone(), version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    fn toolkit(scratch: &Scratch, version: &str) -> PathBuf {
        scratch.put("include/cuda.h", &format!("#pragma once\n#define CUDA_VERSION {version}\n"));
        CUDA_PARTS.iter().for_each(|(part, _)| drop(scratch.put(part, "")));
        scratch.0.clone()
    }

    #[test]
    fn each_part_of_a_toolkit_that_is_missing_is_named() {
        let scratch = Scratch::new("toolkit");
        let places = [PathBuf::from("/ring/none"), toolkit(&scratch, "12080")];
        assert_eq!(cuda(&places).unwrap(), (scratch.0.clone(), 12_080));
        for (part, package) in CUDA_PARTS {
            std::fs::remove_file(scratch.0.join(part)).unwrap();
            let said = cuda(&places).unwrap_err().to_string();
            assert!(
                said.contains(part) && said.contains(&format!("the package {package}")),
                "{said}"
            );
            scratch.put(part, "");
        }
        let said = cuda(&places[..1]).unwrap_err().to_string();
        assert!(said.contains("CUDA_PATH names none") && said.contains("/opt/cuda"), "{said}");
    }

    #[test]
    fn another_version_of_cuda_is_refused() {
        let scratch = Scratch::new("versions");
        for (version, words) in [("12030", "12.3"), ("13000", "13.0"), ("x", "0.0")] {
            let said = cuda(&[toolkit(&scratch, version)]).unwrap_err().to_string();
            assert!(said.contains(&format!("is {words}, but")), "{said}");
            assert!(said.contains("12.4 or newer, but older than 13.0"), "{said}");
        }
    }

    /// Programs that only say their versions.
    #[cfg(unix)]
    mod made_up {
        use super::*;
        use std::os::unix::fs::PermissionsExt;

        fn program(scratch: &Scratch, file: &str, said: &str) -> PathBuf {
            let path = scratch.put(file, &format!("#!/bin/sh\nprintf '{said}'\n"));
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        }

        #[test]
        fn another_llvm_is_refused() {
            let scratch = Scratch::new("llvm");
            let named = |said: &str| llvm(Some(program(&scratch, "llvm-config", said).into()));
            assert_eq!(named("7.1.0").unwrap().1, "7.1.0");
            let said = named("17.0.6").unwrap_err().to_string();
            assert!(said.contains("is of LLVM 17.0.6") && said.contains("Containerfile"), "{said}");
            let said = llvm(Some("/ring/none".into())).unwrap_err().to_string();
            assert!(said.contains("no llvm-config") && said.contains("LLVM_CONFIG"), "{said}");
        }

        #[test]
        fn what_the_nightly_lacks_is_named_with_its_command() {
            let home = Scratch::new("rust-cuda-nightly");
            let said = |chosen| nightly(&home.0, chosen).unwrap_err().to_string();
            let missing = said(None);
            assert!(missing.contains("nightly-2026-04-02 is not installed"), "{missing}");
            let command = "rustup toolchain install nightly-2026-04-02 --profile minimal \
                           --component rustc-dev --component rust-src --component llvm-tools";
            assert!(missing.contains(command), "{missing}");

            let add = |name: &str, commit: &str| {
                let told = format!("commit-hash: {commit}\\nrelease: 1.96.0-nightly\\n");
                program(&home, &format!("{name}/bin/rustc"), &told);
                home.put(format!("{name}/bin/cargo"), "");
            };
            add("nightly-2026-04-02-host", RUSTC_COMMIT);
            let list = "nightly-2026-04-02-host/lib/rustlib/components";
            let all = ["rustc-dev-host", "rust-src", "llvm-tools-preview-host"];
            for (left_out, component) in COMPONENTS.iter().enumerate() {
                let mut there = all.to_vec();
                there.remove(left_out);
                home.put(list, &there.join("\n"));
                let missing = said(None);
                assert!(missing.contains(&format!("add {component} --toolchain")), "{missing}");
            }
            home.put(list, &all.join("\n"));
            assert!(nightly(&home.0, None).is_ok());

            add("nightly-2026-05-20-host", "aa");
            let other = said(Some("nightly-2026-05-20"));
            assert!(other.contains("nightly-2026-05-20 was chosen, of commit aa"), "{other}");
        }
    }
}
