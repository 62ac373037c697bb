//! Projects of a user's, in folders of their own, and cargo at work in them.

use crate::common::{Ran, ring_at};
use ring_builder::{environment, toolchain};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// The longest that is waited for a project's first build, with all that it depends on: a machine may have much
/// else to do.
pub const FIRST: Duration = Duration::from_secs(600);

/// One build at a time: all share a target folder, so that what they depend on is compiled once.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn temporary() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn target() -> PathBuf {
    temporary().join("new-target")
}

/// An empty folder. It lies below this clone, so that a package in it needs a workspace above it that is not
/// this clone's.
pub fn folder(name: &str) -> PathBuf {
    let folder = temporary().join("new").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// An empty folder below no workspace, which goes when the test ends.
#[derive(Debug)]
pub struct Outside(pub PathBuf);

impl Outside {
    /// One of that name.
    pub fn new(name: &str) -> Outside {
        let folder = std::env::temp_dir().join(format!("ring-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Outside(folder)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Gives a folder the versions of this clone's Cargo.lock.
pub fn lock(folder: &Path) {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    fs::copy(lock, folder.join("Cargo.lock")).unwrap();
}

/// Writes a package without anything in it.
pub fn package(folder: &Path, name: &str) {
    let toml = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("Cargo.toml"), toml).unwrap();
    fs::write(folder.join("src/lib.rs"), "//! Mine.\n").unwrap();
}

/// What cargo says of that task in the project; it must succeed.
#[track_caller]
pub fn cargo(project: &Path, task: &str) -> String {
    let mut command: Command = environment::command("cargo");
    command.current_dir(project).args(task.split(' ')).arg("--offline");
    let output = command.env("CARGO_TARGET_DIR", target()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success(), "cargo {task}:\n{said}");
    said
}

/// What cargo reads of the package or workspace in a folder, which it must take as it is.
#[track_caller]
pub fn read(folder: &Path) -> String {
    cargo(folder, "metadata --no-deps --format-version 1")
}

/// `ring build` in the project.
#[track_caller]
pub fn build(project: &Path, options: &str) -> Ran {
    let target = target();
    let variables = [("CARGO_NET_OFFLINE", "true"), ("CARGO_TARGET_DIR", target.to_str().unwrap())];
    ring_at(project, FIRST, &format!("build{options}"), &variables)
}

/// Whether there is a nightly that compiles kernels. Without one it says so.
pub fn has_nightly() -> bool {
    let Err(missing) = toolchain::find(None) else { return true };
    let required = std::env::var("RING_TEST_NIGHTLY").is_ok_and(|wish| wish == "required");
    assert!(!required, "RING_TEST_NIGHTLY is required, but {missing}");
    // Not eprintln!, which the harness keeps to itself.
    let _ = writeln!(std::io::stderr(), "SKIPPED WITHOUT A NIGHTLY: {missing}");
    false
}
