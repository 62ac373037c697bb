//! What the command line says.

use clap::{Args, Parser, Subcommand};
use ring_host::Device;
use std::time::Duration;

/// The longest wait that can be asked for: a day.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

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
    /// Check that kernels answer on this machine: every sum, every message, in order
    Validate(Validate),
}

/// Options of `ring validate`.
#[derive(Clone, Debug, Args)]
pub struct Validate {
    /// auto (GPU or CPU), cpu, cuda, cuda:N
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub device: Device,

    /// Messages of the soak, 0 for none
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub messages: u64,

    /// Lanes of each kernel, all soaked
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub lanes: u32,

    /// Slots of each ring, a power of two
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub capacity: u32,

    /// Threads of each block on a GPU
    #[arg(long, value_name = "N", default_value_t = 256)]
    pub threads: u32,

    /// Longest wait for an answer
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let timeout = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok());
    match timeout {
        Some(timeout) if !timeout.is_zero() && timeout <= LONGEST_TIMEOUT => Ok(timeout),
        _ => {
            Err(format!("not a number of seconds above 0 and up to {}", LONGEST_TIMEOUT.as_secs()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    fn validate(options: &[&str]) -> Result<Validate, clap::Error> {
        let arguments = Arguments::try_parse_from(["ring", "validate"].iter().chain(options))?;
        let Command::Validate(options) = arguments.command;
        Ok(options)
    }

    #[test]
    fn the_definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_fits_the_page() {
        let help = validate(&["--help"]).unwrap_err().to_string();
        assert!(help.lines().all(|line| line.len() <= crate::text::WIDTH), "{help}");
    }

    #[test]
    fn defaults() {
        let options = validate(&[]).unwrap();
        assert!(matches!(options.device, Device::Auto));
        assert_eq!(options.messages, 1_000_000);
        assert_eq!((options.lanes, options.capacity, options.threads), (1, 4096, 256));
        assert_eq!(options.timeout, Duration::from_secs(10));
    }

    #[test]
    fn every_option_is_read() {
        let line =
            "--device cuda:1 --messages 0 --lanes 4 --capacity 64 --threads 128 --timeout .5";
        let options = validate(&line.split(' ').collect::<Vec<_>>()).unwrap();
        assert!(matches!(options.device, Device::Cuda(1)));
        assert_eq!(options.messages, 0);
        assert_eq!(options.lanes, 4);
        assert_eq!(options.capacity, 64);
        assert_eq!(options.threads, 128);
        assert_eq!(options.timeout, Duration::from_millis(500));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let lines = [
            ["--device", "gpu"],
            ["--device", "cuda:x"],
            ["--messages", "many"],
            ["--messages", "1e6"],
            ["--lanes", "-1"],
            ["--capacity", "4294967296"],
            ["--threads", "two"],
            ["--timeout", "0"],
            ["--timeout", "-1"],
            ["--timeout", "nan"],
            ["--timeout", "inf"],
            ["--timeout", "86401"],
            ["--timeout", "soon"],
        ];
        for [option, value] in lines {
            let joined = format!("{option}={value}");
            let error = validate(&[&joined]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{joined}");
            assert_eq!(error.exit_code(), 2, "{joined}");
            assert!(error.to_string().contains(value), "{joined}: {error}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(validate(&["--gpu"]).unwrap_err().kind(), ErrorKind::UnknownArgument);
        let error = Arguments::try_parse_from(["ring", "frobnicate"]).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert_eq!(Arguments::try_parse_from(["ring"]).unwrap_err().exit_code(), 2);
    }
}
