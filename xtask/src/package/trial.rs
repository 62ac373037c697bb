//! Somebody who has no clone: packages instead of paths, in a folder outside of the repository.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use fs_err as fs;
use ring_builder::cargo::quoted;

use super::Published;
use crate::{Result, shell, workspace};

/// The package of the command `ring`.
const COMMAND: &str = "ring-cli";

/// What the project is called.
const PROJECT: &str = "my-kernels";

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Installs the command from the packages, has it write a project, and tests and runs that on CPU threads; then compiles
/// its kernel to PTX.
///
/// # Errors
/// When one of these steps fails.
pub fn run(packages: &[Published], registry: &Path) -> Result {
    let folder = Folder(std::env::temp_dir().join(format!("ring-trial-{}", std::process::id())));
    workspace::remove(&folder.0)?;
    fs::create_dir_all(&folder.0)?;
    let at = &folder.0;
    let config = at.join(".cargo/config.toml");
    workspace::write(&config, &configuration(packages, registry))?;
    // Cargo keeps what it has unpacked of a version, and here the same version is another each time.
    let home = at.join("cargo-home");
    let at_home = |mut cargo: Command| {
        cargo.env("CARGO_HOME", &home).env_remove("CARGO_TARGET_DIR");
        cargo
    };
    let cargo = |folder: &Path| at_home(shell::stable_cargo(folder));

    let installed = at.join("installed");
    let mut install = at_home(shell::installing_cargo(at));
    install.arg("--config").arg(&config).args(["install", COMMAND, "--registry", "packages"]);
    install
        .args(["--debug", "--quiet", "--root"])
        .arg(&installed)
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    let installing = timed(&mut install)?;

    let program = installed.join("bin/ring").with_extension(std::env::consts::EXE_EXTENSION);
    let mut new = shell::command(&program);
    let mut taken = timed(new.current_dir(at).args(["new", PROJECT]))?;
    let project = at.join(PROJECT);
    let toml = fs::read_to_string(project.join("Cargo.toml"))?;
    let version = packages.iter().find(|package| package.name == "ring-host").map(|p| &p.version);
    ensure!(
        version.is_some_and(|version| toml.contains(&format!("ring-host = \"{version}\""))),
        "the project does not take ring-host by its version:\n{toml}"
    );
    taken += timed(cargo(&project).args(["test", "--quiet"]))?;
    taken += timed(cargo(&project).args(["run", "--quiet", "--release", "--", "cpu"]))?;
    let compiling =
        timed(cargo(&project).args(["build", "--quiet", "--release", "--features", "gpu"]))?;
    let made = workspace::files(&project.join("target/release/build"))?;
    let ptx = made.iter().any(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    ensure!(ptx, "no PTX came of the project's kernel");
    println!(
        "package: `ring new`, its test and its run took {:.0} s; the PTX {:.0} s more; the command was installed in {:.0} s",
        taken.as_secs_f64(),
        compiling.as_secs_f64(),
        installing.as_secs_f64()
    );
    Ok(())
}

/// Runs it, and says how long it took.
fn timed(command: &mut Command) -> Result<Duration> {
    let begun = Instant::now();
    shell::show_and_run(command)?;
    Ok(begun.elapsed())
}

/// A configuration of cargo by which the packages are those of a folder, as if they were in the public registry.
fn configuration(packages: &[Published], registry: &Path) -> String {
    let index = "sparse+https://packages.invalid/";
    let folder = quoted(&registry.to_string_lossy());
    let mut text = format!(
        "[registries.packages]\nindex = \"{index}\"\n\n[source.packages]\nregistry = \"{index}\"\n\
         replace-with = \"folder\"\n\n[source.folder]\nlocal-registry = {folder}\n\n[patch.crates-io]\n"
    );
    for Published { name, version, .. } in packages.iter().filter(|package| package.name != COMMAND)
    {
        let _ = writeln!(text, "{name} = {{ version = \"{version}\", registry = \"packages\" }}");
    }
    text
}
