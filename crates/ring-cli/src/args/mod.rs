//! The command line.

mod bench;
mod build;
mod call;
mod doctor;
mod emulation;
mod init;
mod new;
mod serve;
mod top;
mod validate;
mod values;

pub use bench::Bench;
pub use build::Build;
pub use call::Call;
pub use doctor::Doctor;
pub use emulation::{Emulate, Emulation};
pub use init::Init;
pub use new::New;
pub use serve::{Serve, Served};
pub use top::{Page, Top};
pub use validate::Validate;
pub use values::DeviceList;

use clap::{Parser, Subcommand};

/// Persistent kernels that answer messages, on an NVIDIA GPU or on CPU threads.
#[derive(Clone, Debug, Parser)]
#[command(name = "ring", version)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Check that kernels answer here: every sum, every message, in order
    Validate(Validate),
    /// Say how kernels will run here and why, and what is missing
    Doctor(Doctor),
    /// Measure how fast kernels answer, beside what else there is
    Bench(Bench),
    /// Write a project with a kernel of your own, ready to run
    New(New),
    /// Add a kernel to a package that is there already
    Init(Init),
    /// Compile a crate with kernels to PTX
    Build(Build),
    /// Show live what the kernels of a program do, from its metrics
    Top(Top),
    /// Serve a kernel to other processes and hosts, until Ctrl-C
    Serve(Serve),
    /// Call a kernel that is served, check its answers, time them
    Call(Call),
}

impl Command {
    /// A list that is asked for in place of doing anything.
    pub fn list(&self) -> Option<String> {
        let emulate = match self {
            Command::Validate(options) => options.emulate.as_ref(),
            Command::Doctor(options) => options.emulate.as_ref(),
            _ => None,
        };
        (emulate? == &Emulate::List).then(|| emulation::known() + "\n")
    }
}

/// The options of a task, read alone.
#[cfg(test)]
fn parsed<T: clap::Args>(options: &[&str]) -> Result<T, clap::Error> {
    let task = T::augment_args(clap::Command::new("ring").no_binary_name(true));
    T::from_arg_matches(&task.try_get_matches_from(options)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_fits_the_page() {
        for task in [
            "",
            " validate",
            " doctor",
            " bench",
            " new",
            " init",
            " build",
            " top",
            " serve",
            " call",
        ] {
            let line = format!("ring{task} --help");
            let help = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(help.kind(), ErrorKind::DisplayHelp);
            let help = help.to_string();
            let fits = |line: &str| line.chars().count() <= crate::text::WIDTH;
            assert!(help.lines().all(fits), "{help}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for (line, kind) in [
            ("ring validate --gpu", ErrorKind::UnknownArgument),
            ("ring doctor --messages 1", ErrorKind::UnknownArgument),
            ("ring bench --messages 1", ErrorKind::UnknownArgument),
            ("ring new x --device cpu", ErrorKind::UnknownArgument),
            ("ring init --device cpu", ErrorKind::UnknownArgument),
            ("ring build --device cpu", ErrorKind::UnknownArgument),
            ("ring top --device cpu", ErrorKind::UnknownArgument),
            ("ring serve --count 1", ErrorKind::UnknownArgument),
            ("ring call --listen x", ErrorKind::UnknownArgument),
            ("ring top program", ErrorKind::UnknownArgument),
            ("ring frobnicate", ErrorKind::InvalidSubcommand),
            ("ring", ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand),
        ] {
            let error = Arguments::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!((error.kind(), error.exit_code()), (kind, 2), "{line}");
        }
    }
}
