//! `cargo xtask mutants`: small changes of the code that carries messages, made one by one by
//! cargo-mutants. Each must make a test fail, or be listed in `xtask/mutants.txt` with the reason.
//!
//! It takes hours: it is run part by part, and by hand. What ran last is kept in docs/results.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

use crate::{Result, Workspace, pins, shell, workspace};

mod known;
mod parts;
mod tally;
mod tree;

use parts::{PARTS, Part, Stage};
use tally::Tally;

/// What `cargo xtask mutants` is asked for.
#[derive(Debug, Default, clap::Args)]
pub struct Options {
    /// The only part, if not all: shared, dispatch or host
    pub part: Option<String>,
    /// Only what the last run left: what lived, and what it did not come to
    #[arg(long)]
    pub again: bool,
}

/// The profile that mutants are built with: changed once each, and run for seconds.
const PROFILE: &str = "mutants";

/// Seconds after which a build is taken for hanging.
const BUILD: u32 = 900;

/// What is in a module of tests, which cargo-mutants does not see where loom is excepted.
const TESTS: &str = r"\b(replace|in) tests::";

/// How cargo-mutants ends when it has judged: all caught, some lived, some hung.
const JUDGED: [i32; 3] = [0, 2, 3];

/// Runs the parts that are asked for, and says what became of their mutants.
///
/// # Errors
/// When a mutant lives that is not listed, was not judged, or cargo-mutants cannot be run.
pub fn run(ws: &Workspace, options: &Options) -> Result {
    let chosen: Vec<&Part> = PARTS
        .iter()
        .filter(|part| options.part.as_ref().is_none_or(|name| name == part.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
        let asked = options.part.as_deref().unwrap_or_default();
        bail!("no part `{asked}`; there are {}", names.join(", "));
    }
    let known = known::read(ws)?;
    let folder = ws.target("mutants");
    tree::copy(ws, &folder.join("tree"))?;
    let mut unexplained = 0;
    for part in chosen {
        let mut tally = begin(ws, part, options, &folder)?;
        let judged = judge(ws, part, &mut tally, &known, &folder);
        // Also of a run that was stopped: what it came to is kept.
        let (text, living) = report(ws, part, &tally, &known);
        print!("{text}");
        workspace::write(&folder.join(part.name).with_extension("txt"), &text)?;
        judged?;
        unexplained += living;
    }
    ensure!(
        unexplained == 0,
        "{unexplained} mutants live, or were not judged, without a reason\n  try: a test that fails, or a \
         reason in {}",
        known::LIST
    );
    Ok(())
}

/// cargo-mutants over a part's files, in the copy of the clone.
fn mutants(ws: &Workspace, part: &Part, folder: &Path) -> Result<Command> {
    let mut command = shell::command(pins::CARGO_MUTANTS.program(ws)?);
    command.current_dir(folder.join("tree")).args(["mutants", "--no-config"]);
    command.args(["-p", part.package]);
    command.args(part.files.iter().flat_map(|glob| ["--file", glob]));
    command.args(part.except.iter().flat_map(|glob| ["--exclude", glob]));
    command.args(["--exclude-re", TESTS]);
    Ok(command)
}

/// The mutants of a part, and what is known of them.
fn begin(ws: &Workspace, part: &Part, options: &Options, folder: &Path) -> Result<Tally> {
    let kept = folder.join(part.name);
    if !options.again {
        let _ = std::fs::remove_dir_all(&kept);
    }
    let listed = shell::output(mutants(ws, part, folder)?.arg("--list"))?;
    Tally::open(&kept, listed.lines().map(str::to_owned).collect())
}

/// Runs a part's stages. What is listed is tried by the first one only: the others take longer.
fn judge(
    ws: &Workspace,
    part: &Part,
    tally: &mut Tally,
    known: &[known::Known],
    folder: &Path,
) -> Result {
    let kept = folder.join(part.name);
    for (nth, stage) in part.stages.iter().enumerate() {
        let mut left = tally.left();
        if nth > 0 {
            left.retain(|name| !known.iter().any(|known| known.is(ws.root(), name)));
        }
        println!("mutants: {} of {}: {}", left.len(), part.name, stage.what);
        if left.is_empty() {
            break;
        }
        let whole = left.len() == tally.listed.len();
        let mut command = mutants(ws, part, folder)?;
        if !whole {
            let exactly = |name: &String| format!("^{}$", escaped(name));
            command.args(left.iter().flat_map(|name| ["--re".to_owned(), exactly(name)]));
        }
        if let Some(package) = stage.tests_of {
            unchanged(package, stage, folder)?;
        }
        add(&mut command, stage, &kept, folder);
        let status = command.status().context("cargo-mutants did not start")?;
        tally.take(&kept.join("mutants.out"))?;
        if !status.code().is_some_and(|code| JUDGED.contains(&code)) {
            bail!(
                "cargo-mutants ended with {status}\n  try: cargo xtask mutants --again {}",
                part.name
            );
        }
    }
    Ok(())
}

/// Runs a stage's tests, which are another package's, on the code as it is: cargo-mutants would run those of
/// the package that it changes.
fn unchanged(package: &str, stage: &Stage, folder: &Path) -> Result {
    let mut cargo = shell::stable_cargo(&folder.join("tree"));
    cargo.args(["test", "--quiet", "--profile", PROFILE, "-p", package]);
    cargo.args(stage.cargo.split_whitespace()).arg("--").args(stage.names.split_whitespace());
    environment(&mut cargo, stage, folder);
    shell::run(&mut cargo)
}

/// A stage's arguments.
fn add(command: &mut Command, stage: &Stage, out: &Path, folder: &Path) {
    command.args(["--in-place", "--profile", PROFILE, "--output"]).arg(out);
    let seconds = stage.seconds.to_string();
    match stage.tests_of {
        Some(package) => {
            command.args(["--test-package", package, "--baseline", "skip", "--timeout", &seconds]);
        }
        None => {
            // Five times what the tests take without a mutant: a busy machine is slow then, too.
            command.args(["--timeout-multiplier", "5", "--minimum-test-timeout", &seconds]);
        }
    }
    command.args(["--build-timeout", &BUILD.to_string()]);
    command.args(stage.cargo.split_whitespace().map(|arg| format!("--cargo-arg={arg}")));
    if !stage.names.is_empty() {
        command.args(["--", "--"]).args(stage.names.split_whitespace());
    }
    environment(command, stage, folder);
}

/// Where a stage is built, and its variables.
fn environment(command: &mut Command, stage: &Stage, folder: &Path) {
    let build =
        if stage.env.iter().any(|(name, _)| *name == "RUSTFLAGS") { "loom" } else { "build" };
    command.env("CARGO_TARGET_DIR", folder.join(build));
    command.env("CARGO_INCREMENTAL", "1").env("CARGO_TERM_COLOR", "never");
    command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    command.envs(stage.env.iter().copied());
}

/// A name as a regular expression that matches it.
fn escaped(name: &str) -> String {
    let escape = |c: char| {
        let meta = r"\.+*?()|[]{}^$#&-~".contains(c);
        meta.then_some('\\').into_iter().chain([c])
    };
    name.chars().flat_map(escape).collect()
}

/// What became of a part's mutants, in words; and how many live or were not judged, without a reason.
fn report(ws: &Workspace, part: &Part, tally: &Tally, known: &[known::Known]) -> (String, usize) {
    let (mut explained, mut unexplained) = (Vec::new(), Vec::new());
    for name in &tally.lived {
        match known.iter().find(|known| known.is(ws.root(), name)) {
            Some(known) => explained.push(format!("  {name}\n    {}\n", known.why)),
            None => unexplained.push(format!("  {name}\n")),
        }
    }
    let unjudged: BTreeSet<String> = tally.unjudged();
    let [caught, hung, unviable] = tally.done.each_ref().map(BTreeSet::len);
    let mut text = format!(
        "part {}: {} mutants; {caught} caught, {hung} hung, {unviable} do not compile, {} live for \
         a reason, {} live, {} not judged\n",
        part.name,
        tally.listed.len(),
        explained.len(),
        unexplained.len(),
        unjudged.len(),
    );
    let stages = part.stages.iter().map(|stage| stage.what).collect::<Vec<_>>().join("; ");
    text += &format!("tests: {stages}. tree: {}\n", tree_name(ws));
    let mut list = |title: &str, names: Vec<String>| {
        if !names.is_empty() {
            text += &format!("{title}:\n{}", names.concat());
        }
    };
    let living = unexplained.len() + unjudged.len();
    list("live", unexplained);
    list("not judged", unjudged.iter().map(|name| format!("  {name}\n")).collect());
    list("live for a reason", explained);
    (text, living)
}

/// The commit of the clone, and whether it was changed.
fn tree_name(ws: &Workspace) -> String {
    let mut git = shell::command("git");
    git.current_dir(ws.root()).args(["describe", "--always", "--dirty", "--exclude=*"]);
    shell::output(&mut git).map_or_else(|_| "unknown".to_owned(), |said| said.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_themselves() {
        let name = "src/a.rs:1:2: replace f -> Vec<(u32, u64)> with vec![] in <impl A>::f";
        let expected =
            r"src/a\.rs:1:2: replace f \-> Vec<\(u32, u64\)> with vec!\[\] in <impl A>::f";
        assert_eq!(escaped(name), expected);
    }

    #[test]
    fn parts_are_files_of_the_clone_and_tests_that_there_are() {
        let ws = Workspace::locate().unwrap();
        for part in &PARTS {
            for file in part.files.iter().chain(part.except) {
                let folder = file.split('*').next().unwrap_or(file).trim_end_matches('/');
                assert!(ws.root().join(folder).exists(), "{}: {file}", part.name);
            }
            for stage in part.stages {
                let package = stage.tests_of.unwrap_or(part.package);
                for test in
                    stage.cargo.split_whitespace().filter_map(|arg| arg.strip_prefix("--test="))
                {
                    let places = [
                        format!("crates/{package}/tests/{test}.rs"),
                        format!("crates/{package}/tests/{test}/main.rs"),
                        format!("tests/{test}/main.rs"),
                    ];
                    let is_there = places.iter().any(|place| ws.root().join(place).is_file());
                    assert!(is_there, "{}: {package} has no test {test}", part.name);
                }
            }
        }
    }

    #[test]
    fn what_may_live_is_listed_with_reasons() {
        let ws = Workspace::locate().unwrap();
        known::read(&ws).unwrap();
    }
}
