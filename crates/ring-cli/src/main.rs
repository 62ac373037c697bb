//! The command `ring`: `ring validate` checks that ring kernels answer on this machine.
//!
//! It opens a device (a GPU if there is one, else CPU threads), adds vectors on it and checks every
//! element, times round trips, and then checks that of a million messages none is lost, duplicated,
//! reordered or changed. Exit status: 0 if all of it held, 1 if not, 2 for a wrong command line.
//!
//! The folders: [`args`] is the command line, [`validate`] the checks, one a file; [`latency`],
//! [`table`], [`text`] and [`progress`] are what they print with.

mod args;
mod failure;
mod latency;
mod progress;
mod table;
mod text;
mod validate;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let done = match &arguments.command {
        args::Command::Validate(options) => validate::run(options, &mut std::io::stdout().lock()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ring: {failure}");
            ExitCode::FAILURE
        }
    }
}
