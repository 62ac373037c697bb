//! Why the command ends with status 1, and what the user can do.

use crate::interrupt;
use crate::text;
use ring_builder::BuildError;
use ring_host::{ControlError, Device, DeviceFault, KernelFileError, LaunchError, OpenError};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why the command ends with status 1.
#[derive(Debug, Error)]
pub enum Failure {
    /// The device was not opened.
    #[error("cannot open device {device}: {source}")]
    Open {
        /// The device asked for.
        device: Device,
        /// Why.
        source: OpenError,
    },
    /// Several devices were not opened, or no ring was made through them.
    #[error("no ring through these devices: {0}")]
    Devices(Box<ring_host::Error>),
    /// The device was not opened; why has been printed.
    #[error("cannot open device {0}")]
    Unopened(Device),
    /// A file with PTX was not taken.
    #[error(transparent)]
    KernelFile(#[from] KernelFileError),
    /// A file with PTX has nothing that the command looks for.
    #[error(
        "{} has no kernel that this command runs: it looks for {}; the file has {}",
        path.display(),
        runs.join(", "),
        has.join(", ")
    )]
    NoKernel {
        /// The file.
        path: PathBuf,
        /// The entries that are looked for.
        runs: Vec<&'static str>,
        /// The entries that it has.
        has: Vec<&'static str>,
    },
    /// PTX was given, and the device is CPU threads; why.
    #[error("--ptx is for a GPU; the CPU device ({0}) runs handlers compiled for the host")]
    PtxOnCpu(String),
    /// A kernel was not launched.
    #[error("cannot launch {kernel}: {source}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// Why.
        source: LaunchError,
    },
    /// A kernel did not become active.
    #[error("cannot activate: {0}")]
    Activate(#[from] ControlError),
    /// Checks failed; what was wrong has been printed.
    #[error("{failed} of {} failed", text::plural(*of as u64, "check"))]
    Checks {
        /// Checks that failed.
        failed: usize,
        /// All checks.
        of: usize,
    },
    /// The GPU could not be used for what kernels are compared with; why.
    #[error("cannot load the kernels to compare with: {0}")]
    Baselines(String),
    /// Ctrl-C ended it before it was done; what was done has been printed.
    #[error("interrupted before it was done")]
    Interrupted,
    /// Measurements went wrong; what was wrong has been printed.
    #[error("{} went wrong", text::plural(*wrong as u64, "measurement"))]
    Bench {
        /// How many.
        wrong: usize,
    },
    /// A kernel is not served, or no more.
    #[error("cannot serve {service}: {why}")]
    Serve {
        /// The service.
        service: String,
        /// Why.
        why: String,
    },
    /// A service was not called, or no more.
    #[error("cannot call {service}: {why}")]
    Call {
        /// The service.
        service: String,
        /// Why.
        why: String,
    },
    /// Answers were wrong, or are unknown.
    #[error("{wrong} of {} wrong, {unknown} unknown", text::plural(*of, "answer"))]
    Answers {
        /// Answers that were wrong.
        wrong: u64,
        /// Requests of which nobody knows whether they were handled.
        unknown: u64,
        /// All.
        of: u64,
    },
    /// Kernels were not compiled.
    #[error("cannot compile to PTX: {0}")]
    Build(BuildError),
    /// The folder for a new project is there, and not empty.
    #[error("{} exists and is not empty", .0.display())]
    Exists(PathBuf),
    /// A folder that is no clone of ring.
    #[error("{} is no clone of ring: it lacks crates/ring-host", .0.display())]
    NoClone(PathBuf),
    /// There is no package to add kernels to.
    #[error("{}: {why}", folder.display())]
    NoPackage {
        /// Where it was looked for.
        folder: PathBuf,
        /// What is there.
        why: String,
    },
    /// A folder that is wanted for something else is there.
    #[error("{} exists, and is not the crate of this package's kernels", .0.display())]
    Taken(PathBuf),
    /// Cargo does not read a package; what it says.
    #[error("cargo does not take {}; nothing was changed:\n{said}", path.display())]
    Cargo {
        /// The package's Cargo.toml.
        path: PathBuf,
        /// What cargo says.
        said: String,
    },
    /// There is no terminal to show anything on.
    #[error("standard output is not a terminal, and `ring top` draws on one")]
    NoTerminal,
    /// The terminal could not be used, or what is needed beside it.
    #[error("cannot show anything on this terminal: {0}")]
    Terminal(#[source] io::Error),
    /// A program could not be run.
    #[error("cannot run {program}: {source}")]
    Program {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The report could not be written.
    #[error("cannot write the report: {0}")]
    Output(#[from] io::Error),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Interrupted => interrupt::STATUS,
            _ => 1,
        }
    }

    /// That a file could not be written.
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Failure {
        let path = path.to_owned();
        |source| Failure::File { path, source }
    }

    /// What happened, and in a line of its own what the user can do.
    pub fn message(&self) -> String {
        format!("{self}\n{}", self.advice())
    }

    fn advice(&self) -> &'static str {
        match self {
            Failure::Open { source: OpenError::Environment { .. }, .. } => {
                "RING_MODE and RING_MEMORY win over --mode and --memory."
            }
            Failure::Open { source: OpenError::Kernels(_), .. } => {
                "Does it open without --ptx? `ring doctor` says what this machine can do."
            }
            Failure::Open { .. } => {
                "`ring doctor` says what is missing; --device cpu needs no GPU and no driver."
            }
            Failure::Devices(_) => {
                "`ring doctor` says which GPUs there are; --devices cpu,cpu needs none."
            }
            Failure::Unopened(_) => "The end of the report says what to do.",
            Failure::KernelFile(_) => {
                "Give PTX of ring kernels, made of the sources of this version."
            }
            Failure::NoKernel { .. } => {
                "Leave that file out; kernels of your own run by a program of yours."
            }
            Failure::PtxOnCpu(_) => "Leave --ptx out, or choose a GPU: --device cuda.",
            Failure::Launch { source, .. } => launch_advice(source),
            Failure::Activate(ControlError::Fault(fault)) => fault_advice(fault),
            Failure::Activate(_) => "Wait longer with --timeout, or ask for fewer --channels.",
            Failure::Checks { .. } => {
                "The report says what was wrong. Does it pass with --device cpu?"
            }
            Failure::Baselines(_) => {
                "`ring doctor` says what this machine can do; --device cpu needs no GPU."
            }
            Failure::Interrupted => "The report says what was done until then.",
            Failure::Bench { .. } => {
                "The report says which, and why. Does `ring validate` pass on this device?"
            }
            Failure::Serve { .. } => "`ring call` with the same --name finds who serves it now.",
            Failure::Call { .. } => {
                "`ring serve` with the same --name serves it; --connect needs the endpoint of its --listen."
            }
            Failure::Answers { .. } => {
                "Unknown ones were with a server that has ended; does `ring validate` pass where it runs?"
            }
            Failure::Build(_) => {
                "On CPU threads the same kernels run without PTX and without a nightly."
            }
            Failure::Exists(_) => "Give another name, or remove what is there.",
            Failure::NoClone(_) => "Give --ring the folder of a clone, a git URL, or a version.",
            Failure::NoPackage { .. } => {
                "Give the folder of the package that is to launch kernels; `ring new FOLDER` writes a new one."
            }
            Failure::Taken(_) => "Move it: the crate of the kernels is written there.",
            Failure::Cargo { .. } => {
                "`cargo metadata` in its folder says the same; mend that first."
            }
            Failure::NoTerminal => {
                "Run it in a terminal, its output not redirected; the page itself is read by curl."
            }
            Failure::Terminal(_) => "Try another terminal; the page itself is read by curl.",
            Failure::Program { .. } => {
                "Give a program that is there and can be run, and its arguments, after `--`."
            }
            Failure::Output(_) => "Check where standard output goes.",
            Failure::File { .. } => "Give a file in a folder that is there and can be written to.",
        }
    }
}

fn fault_advice(fault: &DeviceFault) -> &'static str {
    match fault {
        DeviceFault::Driver { .. } => {
            "Leave --mode and --memory out: what fails is then done in another way, if there is one."
        }
        _ => "What is on the device is lost; begin anew. Does it pass with --device cpu?",
    }
}

fn launch_advice(source: &LaunchError) -> &'static str {
    match source {
        LaunchError::Unfit { .. } => {
            "`ring doctor` says what works; --mode and --memory choose, or RING_MODE and RING_MEMORY."
        }
        LaunchError::Budget(_) => {
            "Leave --time-budget, --idle-budget and --iterations out, or give more than 0."
        }
        LaunchError::MaxMessages => "Leave --max-messages out, or give 1 or more.",
        LaunchError::Fault(fault) => fault_advice(fault),
        LaunchError::Driver(_) | LaunchError::Image { .. } => {
            "`ring doctor` says what this machine can do."
        }
        _ => "What can be chosen: --channels, --capacity and --threads.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::error::{Budget, DriverError, DriverReason};
    use ring_host::image::ImageError;
    use ring_host::{Memory, Mode, Obstacle, Refusal};

    fn launch(source: LaunchError) -> Failure {
        Failure::Launch { kernel: "echo", source }
    }

    #[test]
    fn projects_are_refused_with_what_is_in_their_way() {
        let why = "there is no Cargo.toml".to_owned();
        let cases: [(Failure, &[&str]); 3] = [
            (
                Failure::NoPackage { folder: "a".into(), why },
                &["a: there is no", "`ring new FOLDER`"],
            ),
            (Failure::Taken("a/kernels".into()), &["a/kernels exists", "Move it"]),
            (
                Failure::Cargo { path: "a/Cargo.toml".into(), said: "x".to_owned() },
                &["a/Cargo.toml; nothing was changed:\nx", "mend that"],
            ),
        ];
        for (failure, parts) in cases {
            let said = failure.message();
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
    }

    #[test]
    fn each_says_what_happened_and_what_to_do() {
        let out_of_range = OpenError::OutOfRange { index: 99, count: 1 };
        let source = "resident".parse::<Mode>().unwrap_err();
        let environment = OpenError::Environment { variable: "RING_MODE", source };
        let device = Device::Cuda(99);
        let unfit = LaunchError::Unfit {
            kernel: "echo",
            mode: Mode::Persistent,
            memory: Memory::StagedSync,
            refused: vec![Refusal {
                mode: Mode::Persistent,
                memory: Memory::StagedSync,
                why: Obstacle::OneLaunch,
            }],
        };
        let error = |call, code, words: &str| DriverError {
            call,
            code,
            reason: DriverReason::Words(words.into()),
        };
        let fault = || DeviceFault::Device {
            kernel: "echo",
            device: "cuda:0, NVIDIA H200".into(),
            source: Box::new(error(
                "cuStreamQuery",
                700,
                "an illegal memory access was encountered",
            )),
        };
        let source = Box::new(error("launch", 304, "graphs fail"));
        let driver = DeviceFault::Driver { kernel: "echo", source };
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let file = Failure::File { path: "a/b.json".into(), source: denied() };
        let no_kernel = Failure::NoKernel {
            path: "a/b.ptx".into(),
            runs: vec!["ring_echo"],
            has: vec!["ring_other", "ring_more"],
        };
        let kernels = OpenError::Kernels(ImageError::NoAbi);
        let program = Failure::Program { program: "a/b".to_owned(), source: denied() };
        let cases: [(Failure, &[&str]); 24] = [
            (
                KernelFileError::NoKernel("a/b.ptx".into()).into(),
                &["a/b.ptx", "no kernel", "Give PTX"],
            ),
            (no_kernel, &["a/b.ptx", "for ring_echo;", "has ring_other, ring_more", "out"]),
            (
                Failure::PtxOnCpu("no GPU".to_owned()),
                &["--ptx", "device (no GPU)", "compiled for the host", "--device cuda"],
            ),
            (
                Failure::Open { device, source: kernels },
                &["cuda:99", "RING_ABI_VERSION", "without --ptx"],
            ),
            (Failure::NoTerminal, &["not a terminal", "`ring top`", "in a terminal"]),
            (Failure::Terminal(denied()), &["this terminal: permission denied", "another"]),
            (program, &["cannot run a/b: permission denied", "after `--`"]),
            (Failure::Interrupted, &["interrupted before", "until then"]),
            (Failure::Exists("a/b".into()), &["a/b exists", "another name"]),
            (Failure::NoClone("a/b".into()), &["a/b is no clone", "--ring", "git URL"]),
            (file, &["cannot write a/b.json", "permission denied", "folder"]),
            (Failure::Bench { wrong: 1 }, &["1 measurement went wrong", "`ring validate`"]),
            (Failure::Baselines("no room".to_owned()), &["no room", "--device cpu"]),
            (
                Failure::Open { device, source: out_of_range },
                &["device cuda:99", "has 1", "`ring doctor`", "--device cpu"],
            ),
            (
                Failure::Open { device, source: environment },
                &["RING_MODE", "'resident'", "event-driven", "unset", "RING_MEMORY"],
            ),
            (Failure::Unopened(device), &["device cuda:99", "end of the report"]),
            (launch(unfit), &["mode persistent", "between launches", "--mode", "`ring doctor`"]),
            (launch(LaunchError::Budget(Budget::Idle)), &["idle budget is zero", "--idle-budget"]),
            (launch(LaunchError::MaxMessages), &["at least 1 message", "--max-messages"]),
            (launch(LaunchError::Fault(fault())), &["700", "illegal memory", "is lost"]),
            (Failure::Activate(fault().into()), &["700", "illegal memory", "is lost"]),
            (Failure::Activate(driver.into()), &["graphs fail", "Leave --mode and --memory out"]),
            (Failure::Checks { failed: 1, of: 5 }, &["1 of 5 checks failed"]),
            (
                Failure::from(io::Error::from(io::ErrorKind::BrokenPipe)),
                &["cannot write the report"],
            ),
        ];
        for (failure, parts) in cases {
            let text = failure.message();
            assert!(parts.iter().all(|part| text.contains(part)), "{text}");
            assert_eq!(text.lines().count(), 2, "{text}");
            let status = if matches!(failure, Failure::Interrupted) { 130 } else { 1 };
            assert_eq!(failure.status(), status);
        }
    }
}
