//! The workspace that Rust-CUDA compiles: its files lie in `template/rust-cuda`, and are written into the
//! target folder with the user's crate as a dependency.

use super::{REPOSITORY, REVISION, RustCudaError};
use crate::BuildError;
use crate::cargo::{self, Origin};
use crate::files::write;
use crate::package::Package;
use std::fs;
use std::path::{Path, PathBuf};

const WORKSPACE: &str = include_str!("../../template/rust-cuda/workspace.toml");
const LOCK: &str = include_str!("../../template/rust-cuda/Cargo.lock");
const BUILDER_TOML: &str = include_str!("../../template/rust-cuda/builder.toml");
const BUILDER: &str = include_str!("../../template/rust-cuda/builder.rs");
const KERNELS_TOML: &str = include_str!("../../template/rust-cuda/kernels.toml");
const KERNELS: &str = include_str!("../../template/rust-cuda/lib.rs");

/// The crate that all kernels depend on, and its feature for Rust-CUDA.
const DEVICE: (&str, &str) = ("ring-device", "rust-cuda");

/// The workspace, written.
#[derive(Debug)]
pub struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    /// Writes it into `target` for a package with those of its features.
    pub fn write(
        target: &Path,
        package: &Package,
        features: &[String],
    ) -> Result<Workspace, BuildError> {
        let manifest = package.folder.join("Cargo.toml");
        let device = if package.name == DEVICE.0 {
            Origin::Path(package.folder.clone())
        } else {
            let found = cargo::dependency(&manifest, &package.name, DEVICE.0)
                .map_err(|said| BuildError::Cargo { path: manifest, said })?;
            found.ok_or_else(|| BuildError::NoKernel { package: package.name.clone() })?
        };
        let folder = target.join("workspace");
        let put = |file: &str, text: &str| write(&folder.join(file), text).map(drop);
        let whence =
            WORKSPACE.replace("{{repository}}", REPOSITORY).replace("{{revision}}", REVISION);
        put("Cargo.toml", &whence)?;
        // Cargo adds what the package depends on. What Rust-CUDA depends on stays: its cuda_std does not compile
        // with every version that it accepts.
        if !folder.join("Cargo.lock").is_file() {
            put("Cargo.lock", LOCK)?;
        }
        put("builder/Cargo.toml", BUILDER_TOML)?;
        put("builder/src/main.rs", BUILDER)?;
        let kernels = KERNELS_TOML.replace("{{package}}", &package.name);
        put("kernels/Cargo.toml", &(kernels + &dependencies(package, features, &device)))?;
        put("kernels/src/lib.rs", KERNELS)?;
        Ok(Workspace { folder })
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that cuda_std comes from the revision of its compiler and from nowhere else, once cargo has looked.
    pub fn check_revision(&self) -> Result<(), BuildError> {
        let path = self.folder.join("Cargo.lock");
        let lock = fs::read_to_string(&path).map_err(BuildError::io(&path))?;
        let ours = format!("git+{REPOSITORY}?rev={REVISION}#{REVISION}");
        match sources(&lock, "cuda_std").into_iter().find(|source| *source != ours) {
            Some(found) => Err(RustCudaError::Revision { found: found.to_owned() }.into()),
            None => Ok(()),
        }
    }
}

/// The lines of `[dependencies]` that make the package a part of the module. ring-device is named beside it for its
/// feature.
fn dependencies(package: &Package, features: &[String], device: &Origin) -> String {
    let line = |name: &str, package: &str, origin: &Origin, features: &[String]| {
        format!(
            "{name} = {{ package = {package:?}, {}, features = {features:?} }}\n",
            origin.toml()
        )
    };
    let (of_device, own) = (DEVICE.1.to_owned(), Origin::Path(package.folder.clone()));
    if package.name == DEVICE.0 {
        let features = [features, &[of_device]].concat();
        return line("kernels", &package.name, &own, &features);
    }
    line("kernels", &package.name, &own, features) + &line("device", DEVICE.0, device, &[of_device])
}

/// Where Cargo.lock says that the packages of that name come from.
fn sources<'a>(lock: &'a str, name: &str) -> Vec<&'a str> {
    let name = format!("name = \"{name}\"");
    let packages = lock.split("[[package]]").filter(|one| one.lines().any(|line| line == name));
    let source = |package: &'a str| {
        let line = package.lines().find_map(|line| line.strip_prefix("source = "));
        line.map_or("a folder", |source| source.trim_matches('"'))
    };
    packages.map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    fn package(name: &str) -> Package {
        Package { name: name.to_owned(), folder: "/a/b".into(), workspace: "/a".into() }
    }

    #[test]
    fn ring_device_gets_its_feature_wherever_it_comes_from() {
        let device = Origin::Path("/ring/device".into());
        let own = "kernels = { package = \"my-kernels\", path = \"/a/b\", features = [\"x\"] }\n";
        assert_eq!(
            dependencies(&package("my-kernels"), &["x".to_owned()], &device),
            format!(
                "{own}device = {{ package = \"ring-device\", path = \"/ring/device\", features = \
                 [\"rust-cuda\"] }}\n"
            )
        );
        assert_eq!(
            dependencies(&package("ring-device"), &["entries".to_owned()], &device),
            "kernels = { package = \"ring-device\", path = \"/a/b\", features = [\"entries\", \
             \"rust-cuda\"] }\n"
        );
    }

    #[test]
    fn every_source_of_a_package_is_found_in_a_lock() {
        let lock = "version = 4\n\n[[package]]\nname = \"cuda_std\"\nversion = \"0.2.2\"\nsource = \"git+x\"\n\n\
                    [[package]]\nname = \"cuda_std\"\nversion = \"0.2.2\"\n\n[[package]]\nname = \
                    \"cuda_std_macros\"\nsource = \"y\"\n";
        assert_eq!(sources(lock, "cuda_std"), ["git+x", "a folder"]);
        assert_eq!(sources(lock, "cuda"), Vec::<&str>::new());
        // What is written pins this revision.
        let ours = format!("git+{REPOSITORY}?rev={REVISION}#{REVISION}");
        assert_eq!(sources(LOCK, "cuda_std"), [ours.as_str()]);
        assert_eq!(sources(LOCK, "cuda_builder"), [ours.as_str()]);
    }

    #[test]
    fn another_revision_is_refused() {
        let scratch = Scratch::new("revision");
        let workspace = Workspace { folder: scratch.0.clone() };
        scratch.put("Cargo.lock", LOCK);
        workspace.check_revision().unwrap();
        scratch.put("Cargo.lock", &LOCK.replace(REVISION, "abc"));
        let said = workspace.check_revision().unwrap_err().to_string();
        assert!(said.contains("would come from git+") && said.contains("?rev=abc#abc"), "{said}");
        assert!(said.contains(REVISION) && said.contains("try: cuda_std = \"0.2.2\""), "{said}");
    }
}
