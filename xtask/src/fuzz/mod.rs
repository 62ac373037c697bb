//! `cargo xtask fuzz`: every target of `fuzz/` for a while, by cargo-fuzz under AddressSanitizer.
//!
//! Each begins with a copy of its corpus, so that a run changes nothing in the clone.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::{Error, anyhow, bail, ensure};
use ring_builder::Toolchain;

use crate::{Result, Workspace, pins, sanitize, shell, toolchain};

mod corpus;
mod log;

/// What `cargo xtask fuzz` is asked for.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// How long each target runs, in seconds
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub seconds: u32,
    /// The only target, if not all
    pub target: Option<String>,
}

/// The longest input, in bytes, whose work is done in well under a second; seconds after which one hangs;
/// and MiB of memory that are too many.
const LIMITS: [&str; 3] = ["-max_len=1024", "-timeout=10", "-rss_limit_mb=2048"];

/// Builds the targets, once, and runs them, as many at a time as there are processors.
///
/// # Errors
/// When something to build them with is missing, there is no such target, or one of them found
/// something; the error names the input and the command that runs it again.
pub fn run(ws: &Workspace, options: &Options) -> Result {
    sanitize::supported("address")?;
    let targets = chosen(ws, options)?;
    let toolchain = toolchain::find(ws)?;
    let programs = build(ws, &toolchain, options.target.as_deref())?;
    println!("fuzz: each for {} s", options.seconds);
    let (queue, found) = (Mutex::new(targets.iter()), Mutex::new(Vec::new()));
    let next = || queue.lock().expect("no thread panics").next();
    let work = || {
        while let Some(target) = next() {
            match one(ws, &programs, target, options.seconds) {
                Ok(line) => println!("fuzz: {target:<16}{line}"),
                Err(error) => {
                    println!("fuzz: {target:<16}FAILED");
                    found.lock().expect("no thread panics").push(format!("{target}: {error:#}"));
                }
            }
        }
    };
    let at_once = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let found = found.into_inner().expect("no thread panics");
    ensure!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

/// The targets that are asked for, in order.
fn chosen(ws: &Workspace, options: &Options) -> Result<Vec<String>> {
    let all = corpus::targets(&folder(ws))?;
    match &options.target {
        None => Ok(all),
        Some(one) if all.contains(one) => Ok(vec![one.clone()]),
        Some(other) => bail!("no target `{other}`; there are {}", all.join(", ")),
    }
}

fn folder(ws: &Workspace) -> PathBuf {
    ws.root().join("fuzz")
}

/// Builds one target, or all; the folder of their programs.
fn build(ws: &Workspace, toolchain: &Toolchain, target: Option<&str>) -> Result<PathBuf> {
    let program = pins::CARGO_FUZZ.program(ws)?;
    let mut fetch = toolchain.cargo(ws.root());
    fetch.args(["fetch", "--quiet", "--locked", "--target", sanitize::HOST, "--manifest-path"]);
    shell::run(fetch.arg(folder(ws).join("Cargo.toml")))?;
    let mut command = shell::command(program);
    // It runs `cargo` and `rustc` as it finds them.
    for (name, value) in toolchain.cargo(ws.root()).get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.current_dir(ws.root()).arg("build").args(target).arg("--fuzz-dir").arg(folder(ws));
    command.args(["--target", sanitize::HOST, "--target-dir"]).arg(ws.target("fuzz"));
    command.env("RUSTFLAGS", sanitize::ATOMIC_SLOTS);
    shell::show_and_run(&mut command)?;
    Ok(ws.target("fuzz").join(sanitize::HOST).join("release"))
}

/// Runs a target; what it did, in a line.
fn one(ws: &Workspace, programs: &Path, target: &str, seconds: u32) -> Result<String> {
    let seeds = corpus::copy(&folder(ws), target, &ws.target("fuzz-corpus"))?;
    let findings = corpus::empty(&ws.target("fuzz-findings").join(target))?;
    let program = programs.join(target);
    let mut command = shell::command(&program);
    command.env("ASAN_OPTIONS", "detect_odr_violation=0").arg(&seeds);
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", findings.display()));
    let dictionary = folder(ws).join("dictionaries").join(target).with_extension("dict");
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    let output = command
        .output()
        .map_err(|error| anyhow!("`{}` did not start: {error}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match log::read(&said) {
        Some(run) if output.status.success() => Ok(run.to_string()),
        _ => Err(finding(&program, &said)),
    }
}

/// What went wrong, the input that did it, and how to see it again.
fn finding(program: &Path, said: &str) -> Error {
    let (complaint, program) = (log::complaint(said), program.display());
    match log::input(said) {
        Some(input) => anyhow!(
            "{complaint}\n  try: {program} {input}\n   the input is {input}; once it passes, keep it in the corpus"
        ),
        None => anyhow!("{complaint}\n  try: {program} -runs=0, which says more"),
    }
}
