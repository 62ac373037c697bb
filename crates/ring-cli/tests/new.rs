//! `ring new` and `ring build`, as a user goes through them: from nothing to a kernel of one's own.

mod common;

use common::{Ran, ring, ring_at};
use ring_builder::{environment, toolchain};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The longest that a project's first test may take, with all that it depends on compiled.
const FIRST: Duration = Duration::from_secs(120);

/// One build at a time: all share a target folder, so that what they depend on is compiled once.
static TURN: Mutex<()> = Mutex::new(());

fn temporary() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn target() -> PathBuf {
    temporary().join("new-target")
}

/// An empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = temporary().join("new").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A new project in a folder of that name, with the versions of this clone's Cargo.lock.
fn project(name: &str) -> PathBuf {
    let parent = folder(name);
    let ran = ring_at(&parent, FIRST, "new my-kernels", &[]).ends(0);
    assert!(ran.time < Duration::from_secs(10), "{:?}", ran.time);
    ran.says(&["wrote my-kernels/ with ring from", "next cd my-kernels cargo test"]);
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let project = parent.join("my-kernels");
    fs::copy(lock, project.join("Cargo.lock")).unwrap();
    project
}

/// What cargo says of that task in the project; it must succeed.
#[track_caller]
fn cargo(project: &Path, task: &str) -> String {
    let mut command: Command = environment::command("cargo");
    command.current_dir(project).args(task.split(' ')).arg("--offline");
    let output = command.env("CARGO_TARGET_DIR", target()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "cargo {task}:\n{said}");
    said
}

#[track_caller]
fn build(project: &Path, options: &str) -> Ran {
    let target = target();
    let variables = [("CARGO_NET_OFFLINE", "true"), ("CARGO_TARGET_DIR", target.to_str().unwrap())];
    ring_at(project, FIRST, &format!("build{options}"), &variables)
}

/// Whether there is a nightly that compiles kernels. Without one it says so.
fn has_nightly() -> bool {
    let Err(missing) = toolchain::find(None) else { return true };
    let required = std::env::var("RING_TEST_NIGHTLY").is_ok_and(|wish| wish == "required");
    assert!(!required, "RING_TEST_NIGHTLY is required, but {missing}");
    // Not eprintln!, which the harness keeps to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED WITHOUT A NIGHTLY: {missing}");
    false
}

#[test]
fn a_new_project_passes_its_test_at_once() {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let project = project("at-once");
    let begun = Instant::now();
    let said = cargo(&project, "test");
    assert!(said.contains("test tests::every_answer_is_right ... ok"), "{said}");
    assert!(begun.elapsed() < FIRST, "{:?}", begun.elapsed());
    let said = cargo(&project, "run --quiet -- cpu 5000");
    assert!(said.contains("5000 answers, all right"), "{said}");
}

#[test]
fn a_new_project_s_kernels_become_ptx() {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !has_nightly() {
        return;
    }
    let project = project("ptx");
    // On a GPU, where there is one.
    let said = cargo(&project, "run --features gpu -- auto 5000");
    assert!(said.contains("5000 answers, all right"), "{said}");
    let said = cargo(&project, "build --verbose --features gpu");
    assert!(said.contains("Fresh my-kernels"), "nothing changed, but it was built again:\n{said}");

    let kernels = project.join("kernels");
    let found =
        ["compiled kernels for sm_70", "kernels.ptx (written)", "entries ring_Square", "next"];
    build(&project, "").ends(0).says(&found);
    let ptx = fs::read_to_string(kernels.join("kernels.ptx")).unwrap();
    assert_eq!(ring_builder::entries(&ptx), ["ring_Square"]);
    assert!(
        fs::read_to_string(kernels.join("kernels.manifest")).unwrap().contains("abi-version = ")
    );
    build(&project, " kernels").ends(0).says(&["kernels.ptx (as it was)"]);

    let broken = kernels.join("src/lib.rs");
    fs::write(&broken, fs::read_to_string(&broken).unwrap() + "fn broken() -> u32 {}\n").unwrap();
    build(&project, "").ends(1).complains(&["cannot compile to PTX", "mismatched types"]);
    fs::write(&broken, "#![no_std]\npub use ring_device::Echo;\n").unwrap();
    build(&project, "").ends(1).complains(&["kernels has no entry point", "forget ring_kernel!?"]);
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    ring("new 1st").ends(2).complains(&["'1st'", "a letter first"]);
    ring("new kernels").ends(2).complains(&["'kernels'", "taken by"]);
    ring("new").ends(2).complains(&["<FOLDER>"]);
    let parent = folder("refused");
    let ran = ring_at(&parent, FIRST, "new x --ring none/of/it", &[]);
    ran.ends(1).complains(&["none/of/it is no clone of ring", "--ring"]);
    assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    fs::create_dir(parent.join("x")).unwrap();
    fs::write(parent.join("x/mine"), "").unwrap();
    ring_at(&parent, FIRST, "new x", &[]).ends(1).complains(&["x exists and is not empty"]);
    assert_eq!(fs::read_dir(parent.join("x")).unwrap().count(), 1);
}

#[test]
fn ring_may_come_from_elsewhere() {
    let parent = folder("elsewhere");
    for (name, from, expected) in [
        ("a", "https://host/ring", "ring-host = { git = \"https://host/ring\" }"),
        ("b", "0.1.0", "ring-host = \"0.1.0\""),
    ] {
        ring_at(&parent, FIRST, &format!("new {name} --ring {from}"), &[]).ends(0);
        let toml = fs::read_to_string(parent.join(name).join("Cargo.toml")).unwrap();
        assert!(toml.contains(expected), "{toml}");
    }
}

#[test]
fn what_cannot_be_compiled_is_named() {
    let parent = folder("build");
    for (options, parts) in [
        ("", ["no Cargo.toml in", "cargo init --lib"]),
        (" none", ["there is no folder", "none"]),
        (" --arch sm_60", ["'sm_60' is no GPU architecture from sm_70 on", "sm_80"]),
    ] {
        build(&parent, options).ends(1).complains(&parts).complains(&["On CPU threads"]);
    }
    let package = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(parent.join("Cargo.toml"), package).unwrap();
    let ran = build(&parent, " --toolchain ring-none");
    ran.ends(1).complains(&["ring-none", "rustup toolchain install ring-none", "rust-src"]);
    ring("build --device cpu").ends(2);
}
