//! The command `ring`: `ring validate` checks that ring kernels answer on this machine, `ring doctor`
//! says what the machine has, how kernels will run on it, and what is missing, `ring bench` measures how
//! fast they are, `ring new` writes a project with a kernel of one's own, `ring init` adds one to a package,
//! `ring build` compiles such kernels to PTX, `ring top` shows live what the kernels of a program do, `ring serve` serves a kernel to other
//! processes and hosts, and `ring call` calls it.
//!
//! `validate` opens a device (a GPU if there is one, else CPU threads), adds vectors on it and checks
//! every element, times round trips, and then checks that of a million messages none is lost,
//! duplicated, reordered or changed. Exit status: 0 if all of it held, or if the device of `doctor`
//! was opened, or if every answer of `bench` was right; 1 if not; 2 for a wrong command line; 130 if
//! Ctrl-C ended `validate` or `bench` before they were done, which then report what they had done.
//!
//! The folders: [`args`] is the command line, `validate` the checks, one a file, `doctor` what is found
//! out and said of it, `bench` the measurements, [`new`] and `build` what one's own kernels begin with, `top` the screen that shows metrics,
//! `serve` and `call` the two ends of a service, and `services` how they find each other;
//! `host` opens devices, with the `kernels` that were asked for; `interrupt` is Ctrl-C; `times`, `table`, `reasons`,
//! [`text`] and `progress` are what they print with.
//!
//! The program is `main.rs`. All else is a library, so that what reads text can be fuzzed (`fuzz/`).

pub mod args;
mod bench;
mod build;
mod call;
mod doctor;
mod failure;
mod host;
mod interrupt;
mod kernels;

pub mod new;
mod progress;
mod reasons;
mod serve;
mod services;
mod table;
pub mod text;
mod times;
mod top;
mod validate;

pub use bench::html::escaped;
pub use failure::Failure;

use args::{Arguments, Command};
use std::io::Write;

/// Does what the command line asks for, and reports to `out`.
///
/// # Errors
/// When not all of it held; what the report does not have is in the error.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<(), Failure> {
    if let Some(list) = arguments.command.list() {
        return Ok(out.write_all(list.as_bytes())?);
    }
    match &arguments.command {
        Command::Validate(options) => validate::run(options, out),
        Command::Doctor(options) => doctor::run(options, out),
        Command::Bench(options) => bench::run(options, out),
        Command::New(options) => new::run(options, out),
        Command::Init(options) => new::init::run(options, out),
        Command::Build(options) => build::run(options, out),
        Command::Top(options) => top::run(options, out),
        Command::Serve(options) => serve::run(options, out),
        Command::Call(options) => call::run(options, out),
    }
}
