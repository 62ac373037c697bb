//! The command line: one task and its switches.

use anyhow::bail;
use clap::{Parser, Subcommand};

use crate::{
    Result, Workspace, book, budget, build, callgrind, check, deny, docs_rs, fuzz, hosts, mutants,
    package, perfetto, picture, resources, rust_cuda, sanitize, semver, setup, undefined,
};

/// Developer tasks of ring.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", disable_version_flag = true)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub task: Task,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Get rust-src for the pinned nightly, and ptxas
    Setup(setup::Options),
    /// Compile ring-device and ring-bench to PTX, assemble the cubins, write both into the clone
    Ptx {
        /// Write nothing, but compare with what is in the clone
        #[arg(long)]
        check: bool,
    },
    /// Assemble the checked-in PTX for every architecture, write what each kernel takes to xtask/ptxas.txt
    Ptxas {
        /// Write nothing, but see that the table is of the PTX that is in the clone
        #[arg(long)]
        check: bool,
    },
    /// Compile the same by Rust-CUDA, where its tools are; check and assemble what comes out, compare resources
    RustCuda,
    /// Model-check the ring, the resident loop between orders and launches, and the host's threads
    Loom,
    /// The ring and the CPU device under load, under AddressSanitizer with LeakSanitizer
    Asan {
        /// Also the tests that take long
        #[arg(long)]
        all: bool,
    },
    /// The same under ThreadSanitizer
    Tsan {
        /// Also the tests that take long
        #[arg(long)]
        all: bool,
    },
    /// The ring under Miri with strict provenance, the CPU device without; where there is no Miri,
    /// cargo-careful and valgrind
    Miri {
        /// It is fine if none of them is there
        #[arg(long)]
        if_available: bool,
    },
    /// The stand-in cargo-careful by itself
    Careful,
    /// The stand-in valgrind by itself
    Valgrind,
    /// The targets of fuzz/, or one, under AddressSanitizer
    Fuzz(fuzz::Options),
    /// Small changes of ring, loop and pump, by cargo-mutants, for hours: each must make a test fail, or is
    /// listed in xtask/mutants.txt
    Mutants(mutants::Options),
    /// Count the instructions of a message in ring-shared, by valgrind
    Callgrind,
    /// Licences, versions and origins of all dependencies, by cargo-deny
    Deny {
        /// Also what is known against them, from GitHub
        #[arg(long)]
        advisories: bool,
    },
    /// Check the code for other hosts, and run the ring and the CPU device on an emulated Arm processor
    Hosts {
        /// The whole suite too, which takes long there
        #[arg(long)]
        all: bool,
    },
    /// Have Perfetto's trace processor read a trace of messages, and compare with what was written
    Perfetto,
    /// Draw the documentation's pictures from committed results: latency against load, a traced run, and the networks
    Picture,
    /// The documents as a site, by mdBook
    Book,
    /// Compare the public interfaces with those of the last version, by cargo-semver-checks
    Semver,
    /// The documentation of all crates, as docs.rs builds it
    Docs,
    /// Package what is published, look into it, and try it as somebody who has only the packages
    Package(package::Options),
    /// Count ring-host's crates, time its build from nothing
    Budget {
        /// Only count
        #[arg(long)]
        no_time: bool,
    },
}

/// Runs the task that `args` (without the program's name) ask for.
///
/// # Errors
/// A usage error, or whatever the task found wrong.
pub fn run(args: &[String]) -> Result {
    let words = ["cargo xtask"].into_iter().chain(args.iter().map(String::as_str));
    let task = match Arguments::try_parse_from(words) {
        Ok(arguments) => arguments.task,
        Err(help) if !help.use_stderr() => {
            print!("{help}");
            return Ok(());
        }
        Err(error) => bail!("{}", error.to_string().trim_end()),
    };
    let ws = &Workspace::locate()?;
    match task {
        Task::Setup(options) => setup::run(ws, &options),
        Task::Ptx { check: true } => check::run(ws),
        Task::Ptx { check: false } => build::run(ws),
        Task::Ptxas { check: true } => resources::check(ws),
        Task::Ptxas { check: false } => resources::write(ws),
        Task::RustCuda => rust_cuda::run(ws),
        Task::Loom => sanitize::loom(ws),
        Task::Asan { all } => sanitize::sanitizer(ws, "address", all),
        Task::Tsan { all } => sanitize::sanitizer(ws, "thread", all),
        Task::Miri { if_available } => undefined::miri(ws, if_available),
        Task::Careful => undefined::careful(ws).map(drop),
        Task::Valgrind => undefined::valgrind(ws).map(drop),
        Task::Fuzz(options) => fuzz::run(ws, &options),
        Task::Mutants(options) => mutants::run(ws, &options),
        Task::Callgrind => callgrind::run(ws),
        Task::Deny { advisories } => deny::run(ws, advisories),
        Task::Hosts { all } => hosts::run(ws, all),
        Task::Perfetto => perfetto::run(ws),
        Task::Picture => picture::run(ws),
        Task::Book => book::run(ws),
        Task::Semver => semver::run(ws),
        Task::Docs => docs_rs::run(ws),
        Task::Package(options) => package::run(ws, &options),
        Task::Budget { no_time } => budget::run(ws, !no_time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> std::result::Result<Task, String> {
        let parsed = Arguments::try_parse_from(line.split(' '));
        parsed.map(|arguments| arguments.task).map_err(|error| error.to_string())
    }

    #[test]
    fn options_of_fuzz_are_read() {
        let fuzz = |line: &str| match task(line) {
            Ok(Task::Fuzz(options)) => (options.seconds, options.target),
            other => panic!("{other:?}"),
        };
        assert_eq!(fuzz("x fuzz"), (30, None));
        assert_eq!(fuzz("x fuzz --seconds 600 ptx"), (600, Some("ptx".to_owned())));
        for wrong in
            ["x fuzz --seconds 0", "x fuzz --seconds many", "x fuzz --seconds", "x fuzz a b"]
        {
            assert!(task(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_of_mutants_are_read() {
        let mutants = |line: &str| match task(line) {
            Ok(Task::Mutants(options)) => (options.part, options.again),
            other => panic!("{other:?}"),
        };
        assert_eq!(mutants("x mutants"), (None, false));
        assert_eq!(mutants("x mutants --again host"), (Some("host".to_owned()), true));
        for (line, said) in [("x mutants --more", "'--more'"), ("x mutants a b", "'b'")] {
            let error = task(line).unwrap_err();
            assert!(error.contains(said), "{line}: {error}");
        }
    }

    #[test]
    fn a_wrong_command_line_is_an_error_and_help_is_none() {
        let run =
            |line: &[&str]| super::run(&line.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        for wrong in [&[][..], &["frobnicate"], &["ptx", "--chekc"], &["loom", "x"]] {
            assert!(run(wrong).is_err(), "{wrong:?}");
        }
        for help in ["help", "--help", "-h"] {
            assert!(run(&[help]).is_ok(), "{help}");
        }
    }
}
