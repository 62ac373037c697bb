//! The command line: one task and its switches.

use crate::{
    Error, Result, Workspace, assemble, budget, build, callgrind, check, deny, fuzz, mutants,
    sanitize, setup, undefined,
};

/// What `cargo xtask` prints when it is given no task or an unknown one.
pub const USAGE: &str = "\
usage: cargo xtask TASK

  setup [--debian] [--miri]  get rust-src for the pinned nightly, and ptxas
                             (--debian: do not ask rustup; --miri: also try for the Miri component)
  ptx                        compile ring-device and ring-bench to PTX, write it into the clone
  ptx --check                compile them, compare with the PTX in the clone
  ptxas                      assemble the checked-in PTX for every architecture, print its resources
  loom                       model-check the ring, the resident loop between orders and launches, and the host's threads
  asan | tsan [--all]        the ring and the CPU device under load, under AddressSanitizer (with
                             LeakSanitizer) or ThreadSanitizer (--all: also the tests that take long)
  miri [--if-available]      the ring under Miri with strict provenance, the CPU device without; where
                             there is no Miri, cargo-careful and valgrind (--if-available: none is fine)
  careful | valgrind         the stand-ins by themselves
  fuzz [--seconds N] [TARGET]
                             fuzz/'s targets, or one, under AddressSanitizer, 30 s each
  mutants [--again] [PART]   small changes of ring, loop and pump, by cargo-mutants: each must make a
                             test fail, or is listed in xtask/mutants.txt; for hours, parts shared,
                             dispatch, host (--again: what the last run left)
  callgrind                  count the instructions of a message in ring-shared, by valgrind
  deny [--advisories]        licences, versions and origins of all dependencies, by cargo-deny
                             (--advisories: also what is known against them, from GitHub)
  budget [--no-time]         count ring-host's crates, time its build from nothing";

/// Runs the task that `args` (without the program's name) ask for.
///
/// # Errors
/// A usage error, or whatever the task found wrong.
pub fn run(args: &[String]) -> Result {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some((&task, rest)) = args.split_first() else {
        return Err(Error::new(format!("no task given\n{USAGE}")));
    };
    if task == "fuzz" {
        let options = fuzz::Options::parse(rest);
        let options = options.map_err(|error| Error::new(format!("{error}\n{USAGE}")))?;
        return fuzz::run(&Workspace::locate()?, &options);
    }
    if task == "mutants" {
        let options = mutants::Options::parse(rest);
        let options = options.map_err(|error| Error::new(format!("{error}\n{USAGE}")))?;
        return mutants::run(&Workspace::locate()?, &options);
    }
    let allowed: &[&str] = match task {
        "setup" => &["--debian", "--miri"],
        "ptx" => &["--check"],
        "asan" | "tsan" => &["--all"],
        "miri" => &["--if-available"],
        "budget" => &["--no-time"],
        "deny" => &["--advisories"],
        _ => &[],
    };
    if let Some(unknown) = rest.iter().find(|arg| !allowed.contains(arg)) {
        return Err(Error::new(format!("`{task}` does not know `{unknown}`\n{USAGE}")));
    }
    let has = |switch: &str| rest.contains(&switch);
    let ws = Workspace::locate()?;
    match task {
        "setup" => {
            setup::run(&ws, &setup::Options { debian: has("--debian"), miri: has("--miri") })
        }
        "ptx" if has("--check") => check::run(&ws),
        "ptx" => build::run(&ws),
        "ptxas" => assemble::run(&ws),
        "loom" => sanitize::loom(&ws),
        "asan" => sanitize::sanitizer(&ws, "address", has("--all")),
        "tsan" => sanitize::sanitizer(&ws, "thread", has("--all")),
        "miri" => undefined::miri(&ws, has("--if-available")),
        "careful" => undefined::careful(&ws).map(drop),
        "valgrind" => undefined::valgrind(&ws).map(drop),
        "callgrind" => callgrind::run(&ws),
        "budget" => budget::run(&ws, !has("--no-time")),
        "deny" => deny::run(&ws, has("--advisories")),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        other => Err(Error::new(format!("no task `{other}`\n{USAGE}"))),
    }
}
