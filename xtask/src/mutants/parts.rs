//! Which files are mutated, and which tests judge them.

/// Files, and the tests that judge them: cheap ones first; what these let live goes to the next.
#[derive(Debug)]
pub struct Part {
    /// As it is called on the command line.
    pub name: &'static str,
    /// The package of the files.
    pub package: &'static str,
    /// The files, as globs from the root on.
    pub files: &'static [&'static str],
    /// Of these, those that no test can reach here.
    pub except: &'static [&'static str],
    /// The tests, one stage behind the other.
    pub stages: &'static [Stage],
}

/// A build, and the tests of it that are run.
#[derive(Debug)]
pub struct Stage {
    /// What it is, in words.
    pub what: &'static str,
    /// The package of the tests, if it is another one.
    pub tests_of: Option<&'static str>,
    /// Arguments of `cargo test`, for the build too, as they are typed.
    pub cargo: &'static str,
    /// Arguments of the test programs, as they are typed: names of tests.
    pub names: &'static str,
    /// Variables.
    pub env: &'static [(&'static str, &'static str)],
    /// Seconds before which the tests of a mutant are not taken for hanging; nor, where they are the
    /// package's own, before five times what they take without one.
    pub seconds: u32,
}

/// A package's own tests: what a stage does not say is as here.
const OWN: Stage = Stage { what: "", tests_of: None, cargo: "", names: "", env: &[], seconds: 12 };

/// Few random cases: what they let live is tried with more.
const FEW: (&str, &str) = ("PROPTEST_CASES", "16");

/// As many as usual.
const MANY: (&str, &str) = ("PROPTEST_CASES", "256");

/// Slots moved by atomics, where assembly does it else.
const PLAIN: (&str, &str) = ("RUSTFLAGS", "--cfg ring_atomic_slots");

/// Atomics that loom watches.
const LOOM: (&str, &str) = ("RUSTFLAGS", "--cfg loom");

/// The models of a package, optimised: they run for minutes as it is.
const MODELS: Stage = Stage {
    what: "loom",
    cargo: "--config=profile.mutants.opt-level=3 --test=loom",
    env: &[LOOM],
    seconds: 900,
    ..OWN
};

/// The suite's tests of one module each, on CPU threads.
const SUITE: Stage = Stage {
    what: "the suite",
    tests_of: Some("ring-tests"),
    cargo: "--test=suite",
    names: "modes:: messages:: life_cycle:: panics:: state:: vectors:: abandoned:: hostile::idle payload:: \
            lease:: quirks::",
    env: &[("RING_SEQUENCES", "0.03")],
    seconds: 240,
};

/// Every part, in the order in which they are run.
pub const PARTS: [Part; 3] = [
    Part {
        name: "shared",
        package: "ring-shared",
        files: &["crates/ring-shared/src/**/*.rs"],
        // The atomics of loom, and of a GPU by another compiler.
        except: &[
            "crates/ring-shared/src/atomics/model.rs",
            "crates/ring-shared/src/atomics/rust_cuda.rs",
        ],
        stages: &[
            Stage {
                what: "its tests, few cases",
                cargo: "--lib --test=hostile --test=ends --test=words --test=properties",
                env: &[FEW],
                ..OWN
            },
            Stage {
                what: "its tests, slots by plain atomics",
                cargo: "--lib --test=hostile --test=properties",
                env: &[FEW, PLAIN],
                ..OWN
            },
            Stage {
                what: "its tests, and threads",
                cargo: "--test=hostile --test=properties --test=threads",
                env: &[MANY],
                seconds: 240,
                ..OWN
            },
            MODELS,
        ],
    },
    Part {
        name: "dispatch",
        package: "ring-device",
        files: &[
            "crates/ring-device/src/block/*.rs",
            "crates/ring-device/src/dispatch/*.rs",
            "crates/ring-device/src/memory/*.rs",
            "crates/ring-device/src/scope/*.rs",
        ],
        // The GPU's.
        except: &["crates/ring-device/src/block/gpu.rs"],
        stages: &[
            Stage {
                what: "its tests that need little time",
                cargo: "--lib --test=resume --test=stream --test=lost --test=stamps --test=scopes \
                        --test=telemetry --test=lease",
                ..OWN
            },
            Stage {
                what: "its tests of budgets, clocks and channels beside each other",
                cargo: "--test=budgets --test=beside --test=clock --test=idle",
                seconds: 60,
                ..OWN
            },
            SUITE,
            MODELS,
        ],
    },
    Part {
        name: "host",
        package: "ring-host",
        files: &[
            "crates/ring-host/src/kernel/channel.rs",
            "crates/ring-host/src/kernel/channel/idle_polls.rs",
            "crates/ring-host/src/kernel/channel/receiver.rs",
            "crates/ring-host/src/kernel/channel/sender.rs",
            "crates/ring-host/src/kernel/core.rs",
            "crates/ring-host/src/drive/device_kernel.rs",
            "crates/ring-host/src/drive/launches.rs",
            "crates/ring-host/src/drive/scheduler.rs",
            "crates/ring-host/src/drive/staged.rs",
            "crates/ring-host/src/drive/staging.rs",
        ],
        except: &[],
        stages: &[
            Stage {
                what: "its unit tests on a device that does as it is told",
                cargo: "--all-features --lib",
                names: "fake:: channel:: staging::",
                ..OWN
            },
            Stage { what: "all its unit tests", cargo: "--all-features --lib", seconds: 90, ..OWN },
            SUITE,
            Stage {
                what: "its models",
                cargo: "--config=profile.mutants.opt-level=3 --no-default-features --lib",
                names: "models::",
                ..MODELS
            },
        ],
    },
];
