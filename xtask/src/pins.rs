//! What the PTX depends on, pinned. A change here is a change of the PTX's inputs.

/// The name under which rustup knows the pinned nightly.
pub const NIGHTLY: &str = "nightly-2026-05-20";
/// Its version, as `rustc -vV` says it.
pub const RUSTC_RELEASE: &str = "1.97.0-nightly";
/// Its commit: any installed toolchain of this commit is the pinned one.
pub const RUSTC_COMMIT: &str = "e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a";

/// The target triple of the device.
pub const TARGET: &str = "nvptx64-nvidia-cuda";
/// The oldest architecture served: the first with the PTX memory model.
pub const TARGET_CPU: &str = "sm_70";
/// PTX 8.4 is the first with 16-byte system-scope accesses (driver 550 or newer).
pub const TARGET_FEATURE: &str = "+ptx84";
/// The highest `.version` that the checked-in PTX may ask of a driver.
pub const PTX_VERSION: (u32, u32) = (8, 4);

/// Flags of every crate in the device build, `core` included.
///
/// None of them names a folder: a path in a flag would enter the crates' hashes and so the symbols.
/// `location-detail=none` leaves no source path to embed. The linker is a no-op because `--emit=asm`
/// after fat LTO already is the whole module.
pub const RUSTFLAGS: [&str; 8] = [
    "-C",
    "target-cpu=sm_70",
    "-C",
    "target-feature=+ptx84",
    "-C",
    "linker=true",
    "-Z",
    "location-detail=none",
];

/// A crate that is compiled to a PTX module of its own, and where that is checked in.
#[derive(Debug)]
pub struct Module {
    /// The crate. Its feature `entries` makes it a module.
    pub package: &'static str,
    /// Folders of all crates of this workspace that become part of it.
    pub crates: &'static [&'static str],
    /// The PTX, from the root on. Its manifest lies beside it.
    pub ptx: &'static str,
    /// The entry points that it must have.
    pub entries: &'static [&'static str],
}

/// The kernels that `ring-host` brings along.
pub const BUILT_IN: Module = Module {
    package: "ring-device",
    crates: &["crates/ring-shared", "crates/ring-device"],
    ptx: "crates/ring-host/ptx/kernels.ptx",
    entries: &["ring_echo", "ring_vector_add", "ring_layout_probe"],
};

/// The kernels of `ring bench`.
pub const BENCH: Module = Module {
    package: "ring-bench",
    crates: &["crates/ring-shared", "crates/ring-device", "crates/ring-bench"],
    ptx: "crates/ring-cli/src/bench/kernels.ptx",
    entries: &[
        "bench_echo_16",
        "bench_echo_64_warp",
        "bench_echo_64_block",
        "bench_echo_256",
        "bench_echo_1024",
        "bench_echo_4096",
        "bench_digest",
        "bench_flag",
        "bench_once",
        "bench_count",
        "bench_add",
        "bench_between",
        "bench_head_tail",
    ],
};

/// Every module.
pub const MODULES: [&Module; 2] = [&BUILT_IN, &BENCH];

impl Module {
    /// The arguments of cargo for the device build, less folders.
    #[must_use]
    pub fn cargo_args(&self) -> [&'static str; 14] {
        [
            "rustc",
            "--locked",
            "-p",
            self.package,
            "--profile",
            "device",
            "--features",
            "entries",
            "--crate-type",
            "cdylib",
            "--target",
            TARGET,
            "-Zbuild-std=core",
            "--quiet",
        ]
    }
}

/// Debian's package of the standard library's source: what serves where rustup can fetch nothing.
pub const DEBIAN_PACKAGE: &str = "rust-src";
/// Its version. `core` of 1.97.1 compiles with the pinned nightly, to the same PTX.
pub const DEBIAN_VERSION: &str = "1.97.1+dfsg1-1";
/// The suites that carry it.
pub const DEBIAN_SUITES: &str = "sid forky";

/// PyPI's package with `ptxas`.
pub const NVCC_WHEEL: &str = "nvidia-cuda-nvcc-cu12==12.9.86";
/// The oldest `ptxas` on PATH that is taken instead: the first that knows sm_120.
pub const PTXAS_MIN: (u32, u32) = (12, 8);
/// The architectures that the PTX is assembled for.
pub const ARCHITECTURES: [u32; 6] = [70, 75, 80, 90, 100, 120];

/// The global that carries the ABI version.
pub const ABI_GLOBAL: &str = "RING_ABI_VERSION";
