//! Compiles small crates to PTX, where there is a nightly for it.

use ring_builder::{BuildError, Builder, Built, toolchain};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// One build at a time: all share a target folder, so that `core` is compiled once.
static TURN: Mutex<()> = Mutex::new(());

const KERNEL: &str = "\
#![no_std]
#[unsafe(no_mangle)]
pub static RING_ABI_VERSION: u32 = 258;
#[unsafe(no_mangle)]
pub unsafe extern \"ptx-kernel\" fn double(at: *mut u64) {
    unsafe { *at = below::twice(*at) }
}
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! { loop {} }
";

fn temporary() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// A crate with a path dependency, in a folder of its own.
fn a_crate(name: &str, source: &str) -> PathBuf {
    let root = temporary().join(name);
    let _ = fs::remove_dir_all(&root);
    let put = |file: &str, text: &str| {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let package = "[package]\nname = \"a-crate\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    let more = "[features]\nfour = []\n[dependencies]\nbelow.path = \"below\"\n[workspace]\n\
                [profile.release]\ndebug = 2\nlto = \"off\"\n";
    put("Cargo.toml", &format!("{package}{more}"));
    put("src/lib.rs", source);
    put("below/Cargo.toml", &package.replace("a-crate", "below"));
    put("below/src/lib.rs", "#![no_std]\npub fn twice(x: u64) -> u64 { x << 1 }\n");
    root
}

fn builder(root: &Path) -> Builder {
    Builder::new(root).out_dir(root.join("out")).target_dir(temporary().join("device"))
}

/// Builds it; nothing if there is no nightly.
fn build(builder: &Builder) -> Option<Result<Built, BuildError>> {
    let missing = match toolchain::find(None) {
        Ok(_) => {
            let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            return Some(builder.build());
        }
        Err(missing) => missing,
    };
    let required = std::env::var("RING_TEST_NIGHTLY").is_ok_and(|wish| wish == "required");
    assert!(!required, "RING_TEST_NIGHTLY is required, but {missing}");
    // Not eprintln!, which the harness keeps to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED WITHOUT A NIGHTLY: {missing}");
    None
}

fn refused(name: &str, source: &str) -> Option<String> {
    let built = build(&builder(&a_crate(name, source)))?;
    Some(built.expect_err("it must not be taken").to_string())
}

#[test]
fn a_crate_becomes_ptx_and_a_manifest() {
    let root = a_crate("good", KERNEL);
    let Some(built) = build(&builder(&root)) else { return };
    let built = built.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((built.entries.as_slice(), built.abi_version), (&["double".to_owned()][..], 258));
    assert!(built.changed && built.warnings.is_empty(), "{}", built.warnings);
    let ptx = fs::read_to_string(&built.ptx).unwrap();
    assert!(ptx.contains(".version 8.4") && ptx.contains(".target sm_70"), "{ptx}");
    assert!(!ptx.contains(".loc") && !ptx.contains(".debug_"), "the profile wins: {ptx}");
    let manifest = fs::read_to_string(&built.manifest).unwrap();
    for line in [
        "package = a-crate".to_owned(),
        "target-cpu = sm_70".to_owned(),
        "abi-version = 258".to_owned(),
        "entries = double".to_owned(),
        format!("sha256 = {}", ring_builder::digest::sha256(&ptx)),
    ] {
        assert!(manifest.lines().any(|found| found == line), "{line} is not in\n{manifest}");
    }
    assert!(!manifest.contains(root.to_str().unwrap()), "{manifest}");
    let again = build(&builder(&root)).unwrap().unwrap();
    assert_eq!((again.changed, again.entries), (false, built.entries));
}

#[test]
fn what_is_chosen_reaches_the_ptx() {
    let source = format!("#![feature(abi_ptx)]\n{KERNEL}").replace(
        "#[panic_handler]",
        "#[cfg(feature = \"four\")]\n#[unsafe(no_mangle)]\n\
         pub unsafe extern \"ptx-kernel\" fn four(_: *mut u64) { let unused = 1; }\n#[panic_handler]",
    );
    let root = a_crate("chosen", &source);
    let chosen = builder(&root).arch("sm_90").features(["four"]).name("my.own");
    let Some(built) = build(&chosen) else { return };
    let built = built.unwrap_or_else(|error| panic!("{error}"));
    let said = build(&builder(&root).arch("sm_200")).unwrap().unwrap_err().to_string();
    assert!(said.contains("does not know the GPU architecture sm_200; it knows sm_"), "{said}");
    assert_eq!(built.ptx, root.join("out/my.own.ptx"));
    assert_eq!(built.entries.len(), 2);
    assert!(built.warnings.contains("unused"), "{}", built.warnings);
    assert!(fs::read_to_string(&built.ptx).unwrap().contains(".target sm_90"));
}

#[test]
fn what_the_compiler_says_is_shown_whole() {
    let source = KERNEL.replace("*at = ", "*at = nowhere() + ");
    let Some(said) = refused("broken", &source) else { return };
    for part in ["cannot find function `nowhere`", "src/lib.rs:6", "`cargo rustc --lib --release"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

#[test]
fn a_crate_without_a_kernel_is_reported_as_such() {
    let Some(said) = refused("no-kernel", "#![no_std]\npub use below::twice;\n") else { return };
    for part in ["a-crate declares no kernel", "ring_device::ring_kernel! {", "src/lib.rs"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    // Another mistake is reported by itself: it may be why there is no kernel.
    let said = refused("no-kernel", "#![no_std]\npub use below::none;\n").unwrap();
    assert!(said.contains("unresolved import `below::none`"), "{said}");
    assert!(!said.contains("panic_handler"), "{said}");
}

#[test]
fn ptx_that_is_no_module_of_kernels_is_refused() {
    let source = KERNEL.replace("extern \"ptx-kernel\" fn", "extern \"C\" fn");
    let Some(said) = refused("no-entry", &source) else { return };
    assert!(said.contains("did you forget ring_kernel!?"), "{said}");
    let said = refused("no-abi", &KERNEL.replace("RING_ABI_VERSION", "OTHER")).unwrap();
    assert!(said.contains("a-crate does not define RING_ABI_VERSION"), "{said}");
    let path =
        "#[unsafe(no_mangle)]\npub static AT: &[u8] = env!(\"CARGO_MANIFEST_DIR\").as_bytes();\n";
    let source = KERNEL.replace("#[panic_handler]", &format!("{path}#[panic_handler]"));
    let said = refused("path", &source).unwrap();
    assert!(said.contains("a folder of this machine"), "{said}");
}
