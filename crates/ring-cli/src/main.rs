//! The command `ring`: `ring validate` checks that ring kernels answer on this machine, `ring doctor`
//! says what the machine has, how kernels will run on it, and what is missing, `ring bench` measures how
//! fast they are, `ring new` writes a project with a kernel of one's own, and `ring build` compiles such
//! kernels to PTX.
//!
//! `validate` opens a device (a GPU if there is one, else CPU threads), adds vectors on it and checks
//! every element, times round trips, and then checks that of a million messages none is lost,
//! duplicated, reordered or changed. Exit status: 0 if all of it held, or if the device of `doctor`
//! was opened, or if every answer of `bench` was right; 1 if not; 2 for a wrong command line.
//!
//! The folders: [`args`] is the command line, [`validate`] the checks, one a file, [`doctor`] what is
//! found out and said of it, [`mod@bench`] the measurements, [`new`] and [`build`] what one's own
//! kernels begin with; [`host`] opens devices; [`latency`], [`table`], [`reasons`], [`text`] and
//! [`progress`] are what they print with.

mod args;
mod bench;
mod build;
mod doctor;
mod failure;
mod host;
mod latency;
mod new;
mod progress;
mod reasons;
mod table;
mod text;
mod validate;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = args::Arguments::parse();
    let mut out = std::io::stdout().lock();
    let done = match &arguments.command {
        args::Command::Validate(options) => validate::run(options, &mut out),
        args::Command::Doctor(options) => doctor::run(options, &mut out),
        args::Command::Bench(options) => bench::run(options, &mut out),
        args::Command::New(options) => new::run(options, &mut out),
        args::Command::Build(options) => build::run(options, &mut out),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ring: {failure}");
            ExitCode::FAILURE
        }
    }
}
