//! Fails when device sources, manifests, profile or toolchain changed and the PTX did not.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::inputs::Inputs;
use xtask::manifest::Manifest;
use xtask::pins::{BUILT_IN, MODULES};
use xtask::{Workspace, check};

#[test]
fn the_checked_in_ptx_is_of_these_sources() {
    let ws = Workspace::locate().unwrap();
    for module in MODULES {
        let checked_in = check::checked_in(&ws, module);
        let (ptx, manifest) = checked_in.unwrap_or_else(|error| panic!("{error}"));
        let verified = manifest.verify(module, &Inputs::of(&ws, module).unwrap(), &ptx);
        verified.unwrap_or_else(|error| panic!("{error}"));
    }
}

/// A workspace of the shape that matters, in a folder of its own.
struct Sample(PathBuf);

const CARGO_TOML: &str = "\
[workspace.package]
edition = \"2024\"
[workspace.dependencies]
bytemuck = \"1\"
other = \"1\"
[profile.release]
debug = 1
[profile.device]
lto = \"fat\"
";
const LOCK: &str = "\
[[package]]
name = \"bytemuck\"
version = \"1.0.0\"
checksum = \"aa\"

[[package]]
name = \"other\"
version = \"1.0.0\"
checksum = \"bb\"
";

impl Sample {
    fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&root);
        let sample = Self(root);
        sample.put("Cargo.toml", CARGO_TOML);
        sample.put("Cargo.lock", LOCK);
        for name in ["ring-shared", "ring-device"] {
            sample.put(
                &format!("crates/{name}/Cargo.toml"),
                "[dependencies]\nbytemuck.workspace = true\n",
            );
            sample.put(&format!("crates/{name}/src/lib.rs"), "//! x\n");
        }
        sample
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn inputs(&self) -> Inputs {
        let ws = Workspace::at(self.0.clone(), self.0.join("target")).unwrap();
        Inputs::of(&ws, &BUILT_IN).unwrap()
    }
}

const PTX: &str = ".version 8.4\n";

#[test]
fn every_kind_of_change_is_noticed_and_named() {
    for (name, file, text, told) in [
        ("source", "crates/ring-device/src/lib.rs", "//! y\n", "ring-device/src/lib.rs"),
        ("new-file", "crates/ring-shared/src/more/deep.rs", "", "ring-shared/src/more/deep.rs"),
        (
            "crate-manifest",
            "crates/ring-shared/Cargo.toml",
            "[dependencies]\n",
            "ring-shared/Cargo.toml",
        ),
        ("profile", "Cargo.toml", &CARGO_TOML.replace("fat", "thin"), "Cargo.toml[profile.device]"),
        (
            "profile-below",
            "Cargo.toml",
            &format!("{CARGO_TOML}[profile.device.package.x] # why\nopt-level = 1\n"),
            "Cargo.toml[profile.device]",
        ),
        ("edition", "Cargo.toml", &CARGO_TOML.replace("2024", "2021"), "Cargo.toml[workspace]"),
        ("lock", "Cargo.lock", &LOCK.replace("aa", "cc"), "Cargo.lock"),
    ] {
        let sample = Sample::new(name);
        let manifest = Manifest::new(&BUILT_IN, sample.inputs(), String::new(), PTX);
        manifest.verify(&BUILT_IN, &sample.inputs(), PTX).unwrap();
        sample.put(file, text);
        let error = manifest.verify(&BUILT_IN, &sample.inputs(), PTX).unwrap_err().to_string();
        assert!(error.contains(told) && error.contains("cargo xtask ptx"), "{name}: {error}");
    }
}

#[test]
fn what_does_not_reach_the_ptx_does_not_count() {
    let sample = Sample::new("unrelated");
    let before = sample.inputs();
    sample.put("crates/ring-shared/tests/loom.rs", "//! test\n");
    sample.put("Cargo.toml", &CARGO_TOML.replace("other = \"1\"", "other = \"2\""));
    sample.put("Cargo.lock", &LOCK.replace("bb", "dd"));
    assert_eq!(sample.inputs(), before);
    sample.put("crates/ring-shared/src/lib.rs", "//! x\r\n");
    assert_eq!(sample.inputs(), before);
}

#[test]
fn another_ptx_or_toolchain_is_noticed() {
    let sample = Sample::new("ptx");
    let manifest = Manifest::new(&BUILT_IN, sample.inputs(), String::new(), PTX);
    let error =
        manifest.verify(&BUILT_IN, &sample.inputs(), ".version 8.5\n").unwrap_err().to_string();
    assert!(error.contains("not the one"), "{error}");

    let text = manifest.text().replace("sm_70", "sm_90");
    let error = Manifest::parse(&text)
        .unwrap()
        .verify(&BUILT_IN, &sample.inputs(), PTX)
        .unwrap_err()
        .to_string();
    assert!(error.contains("toolchain"), "{error}");
}

#[test]
fn a_manifest_reads_back_as_written() {
    let sample = Sample::new("round-trip");
    let manifest = Manifest::new(&BUILT_IN, sample.inputs(), "rustup x".into(), PTX);
    assert_eq!(Manifest::parse(&manifest.text()).unwrap(), manifest);
    assert!(Manifest::parse("format = 0\n").is_err());
    assert!(Manifest::parse("nonsense\n").unwrap_err().to_string().contains(":1:"));
}
