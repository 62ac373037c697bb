//! Fails when device sources, manifests, profile or toolchain changed and the PTX did not, or the PTX changed and a
//! cubin did not.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::assemble::Cubin;
use xtask::check::{self, CheckedIn};
use xtask::inputs::Inputs;
use xtask::manifest::Manifest;
use xtask::pins::{self, BENCH, BUILT_IN, MODULES};
use xtask::{Result, Workspace};

#[test]
fn the_checked_in_ptx_and_cubins_are_of_these_sources() {
    let ws = Workspace::locate().unwrap();
    for module in MODULES {
        let checked_in = check::checked_in(&ws, module);
        let CheckedIn { ptx, cubins, manifest } =
            checked_in.unwrap_or_else(|error| panic!("{error}"));
        let verified = manifest.verify(module, &Inputs::of(&ws, module).unwrap(), &ptx, &cubins);
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

/// One cubin for each architecture that the module lists.
fn cubins() -> Vec<Cubin> {
    let cubin = |arch: &u32| Cubin { arch: *arch, elf: arch.to_le_bytes().into() };
    BUILT_IN.cubins.iter().map(cubin).collect()
}

/// The manifest of [`PTX`] and [`cubins`], made of the sample.
fn manifest(sample: &Sample, rust_src: &str) -> Manifest {
    Manifest::new(&BUILT_IN, sample.inputs(), rust_src.into(), PTX, &cubins())
}

/// Whether the manifest describes the sample, that PTX and [`cubins`].
fn verify(manifest: &Manifest, sample: &Sample, ptx: &str) -> Result {
    manifest.verify(&BUILT_IN, &sample.inputs(), ptx, &cubins())
}

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
        let manifest = manifest(&sample, "");
        verify(&manifest, &sample, PTX).unwrap();
        sample.put(file, text);
        let error = verify(&manifest, &sample, PTX).unwrap_err().to_string();
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
    let manifest = manifest(&sample, "");
    let error = verify(&manifest, &sample, ".version 8.5\n").unwrap_err().to_string();
    assert!(error.contains("not the one"), "{error}");

    for (pinned, other) in [("sm_70", "sm_75"), (pins::PTXAS, "13.5.37"), ("-O3", "-O2")] {
        let text = manifest.text().replace(pinned, other);
        let error = verify(&Manifest::parse(&text).unwrap(), &sample, PTX).unwrap_err().to_string();
        assert!(error.contains("toolchain"), "{other}: {error}");
    }
}

#[test]
fn a_cubin_that_is_not_of_the_ptx_is_noticed_and_named() {
    let sample = Sample::new("cubin");
    let told = manifest(&sample, "");
    let says = |module, manifest: &Manifest, cubins: &[Cubin], parts: &[&str]| {
        let verified = manifest.verify(module, &sample.inputs(), PTX, cubins);
        let error = verified.unwrap_err().to_string();
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        assert!(error.contains("cargo xtask ptx"), "{error}");
    };
    let (first, last) = (BUILT_IN.cubins.first().unwrap(), BUILT_IN.cubins.last().unwrap());
    let (first, last) = (format!("sm_{first}"), format!("sm_{last}"));

    let mut cubins = cubins();
    cubins.last_mut().unwrap().elf.push(0);
    says(&BUILT_IN, &told, &cubins, &["another cubin", &last, BUILT_IN.ptx]);
    cubins.pop();
    says(&BUILT_IN, &told, &cubins, &["no cubin", &last, BUILT_IN.ptx]);

    // One that a merge took from another build: file and digest belong together, the PTX does not.
    let (mut merged, other) = (told.clone(), ".version 8.5\n");
    let stale = Manifest::new(&BUILT_IN, sample.inputs(), String::new(), other, &self::cubins());
    merged.cubins[0] = stale.cubins[0].clone();
    says(&BUILT_IN, &merged, &self::cubins(), &["another PTX", &first, BUILT_IN.ptx]);

    let bench = Manifest::new(&BENCH, sample.inputs(), String::new(), PTX, &[]);
    says(&BENCH, &bench, &self::cubins(), &["remove", &first, "pins.rs", BENCH.ptx]);
}

#[test]
fn a_manifest_reads_back_as_written() {
    let sample = Sample::new("round-trip");
    let manifest = manifest(&sample, "rustup x");
    assert_eq!(Manifest::parse(&manifest.text()).unwrap(), manifest);
    assert!(Manifest::parse("format = 0\n").is_err());
    for nonsense in ["nonsense\n", "cubin sm_90 = 00\n"] {
        assert!(Manifest::parse(nonsense).unwrap_err().to_string().contains(":1:"), "{nonsense}");
    }
}
