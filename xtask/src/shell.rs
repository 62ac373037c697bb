//! Running other programs: from a known environment, within a bounded time.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Error, anyhow, bail};

use crate::Result;

pub use ring_builder::environment::command;

/// The cargo that runs this xtask (rust-toolchain.toml's), as a command.
#[must_use]
pub fn stable_cargo(root: &Path) -> Command {
    let mut command = ring_builder::cargo::command();
    command.current_dir(root);
    command
}

/// The toolchain by which rustup goes before any file.
const OVERRIDE: &str = "RUSTUP_TOOLCHAIN";

/// The same, to install programs of a registry. One of their crates may name a toolchain of its own in a file, which is not there: for
/// the cargo that a user calls, rustup sets what goes before that.
#[must_use]
pub fn installing_cargo(root: &Path) -> Command {
    let mut command = stable_cargo(root);
    command.envs(std::env::var_os(OVERRIDE).map(|ours| (OVERRIDE, ours)));
    command
}

/// The command as one would type it.
#[must_use]
pub fn words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

/// Runs `command` with its output shown.
///
/// # Errors
/// When it does not start, or ends with another status than 0.
pub fn run(command: &mut Command) -> Result {
    let status = command.status().map_err(|e| not_started(command, &e))?;
    succeeded(command, status, "")
}

/// Says what is run, and runs it with its output shown.
///
/// # Errors
/// As for [`run`].
pub fn show_and_run(command: &mut Command) -> Result {
    println!("running {}", words(command));
    run(command)
}

/// Runs `command` and gives what it wrote to stdout and stderr, in that order.
///
/// # Errors
/// When it does not start, or ends with another status than 0; the error quotes what it wrote.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| not_started(command, &e))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    succeeded(command, output.status, &text)?;
    Ok(text)
}

/// Runs `command` with its output shown, and ends it after `limit`.
///
/// # Errors
/// When it does not start, is still running after `limit`, or ends with another status than 0.
pub fn run_for(command: &mut Command, limit: Duration) -> Result {
    let start = Instant::now();
    command.stdin(Stdio::null());
    let mut child = command.spawn().map_err(|e| not_started(command, &e))?;
    loop {
        match child.try_wait().map_err(|e| not_started(command, &e))? {
            Some(status) => return succeeded(command, status, ""),
            None if start.elapsed() >= limit => {
                let _ = child.kill();
                let _ = child.wait();
                bail!("`{}` was still running after {limit:?}", words(command));
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn not_started(command: &Command, error: &std::io::Error) -> Error {
    anyhow!("`{}` did not start: {error}", words(command))
}

fn succeeded(command: &Command, status: ExitStatus, said: &str) -> Result {
    if status.success() {
        return Ok(());
    }
    let said = said.trim_end();
    let separator = if said.is_empty() { "" } else { "\n" };
    bail!("`{}` ended with {status}{separator}{said}", words(command))
}
