//! The command `ring`: see the library's documentation.

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = ring_cli::args::Arguments::parse();
    match ring_cli::run(&arguments, &mut std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("ring: {}", failure.message());
            failure.status().into()
        }
    }
}
