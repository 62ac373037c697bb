//! Why the command ends with status 1, and what the user can do.

use crate::text;
use ring_host::{ControlError, Device, LaunchError, OpenError};
use std::fmt;
use std::io;

/// Why the command ends with status 1.
#[derive(Debug)]
pub enum Failure {
    /// The device was not opened.
    Open {
        /// The device asked for.
        device: Device,
        /// Why.
        source: OpenError,
    },
    /// A kernel was not launched.
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// Why.
        source: LaunchError,
    },
    /// A kernel did not become active.
    Activate(ControlError),
    /// Checks failed; what was wrong has been printed.
    Checks {
        /// Checks that failed.
        failed: usize,
        /// All checks.
        of: usize,
    },
    /// The report could not be written.
    Output(io::Error),
}

impl Failure {
    fn advice(&self) -> &'static str {
        match self {
            Failure::Open { .. } => "`ring validate --device cpu` needs no GPU and no driver.",
            Failure::Launch { .. } => "What can be chosen: --lanes, --capacity and --threads.",
            Failure::Activate(_) => "Wait longer with --timeout, or ask for fewer --lanes.",
            Failure::Checks { .. } => {
                "The report says what was wrong. Does it pass with --device cpu?"
            }
            Failure::Output(_) => "Check where standard output goes.",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Open { device, source } => write!(f, "cannot open device {device}: {source}")?,
            Failure::Launch { kernel, source } => write!(f, "cannot launch {kernel}: {source}")?,
            Failure::Activate(source) => write!(f, "cannot activate: {source}")?,
            Failure::Checks { failed, of } => {
                write!(f, "{failed} of {} failed", text::plural(*of as u64, "check"))?;
            }
            Failure::Output(source) => write!(f, "cannot write the report: {source}")?,
        }
        write!(f, "\n{}", self.advice())
    }
}

impl std::error::Error for Failure {}

impl From<ControlError> for Failure {
    fn from(source: ControlError) -> Failure {
        Failure::Activate(source)
    }
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Failure {
        Failure::Output(source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_happened_and_what_to_do() {
        let open = Failure::Open {
            device: Device::Cuda(99),
            source: OpenError::OutOfRange { index: 99, count: 1 },
        };
        let checks = Failure::Checks { failed: 1, of: 5 };
        let output = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        let cases: [(Failure, &[&str]); 3] = [
            (open, &["device cuda:99", "99", "has 1", "--device cpu"]),
            (checks, &["1 of 5 checks failed"]),
            (output, &["cannot write the report"]),
        ];
        for (failure, parts) in cases {
            let text = failure.to_string();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
            assert_eq!(text.lines().count(), 2, "{text}");
        }
    }
}
