//! Which PTX GPUs run in the tests: what is checked in, or files that a variable of the environment names.

use ring_example_kernels::PTX;
use ring_host::{Kernel, KernelFile, KernelFiles, Kernels, LaunchConfig, Runtime, RuntimeConfig};
use ring_whole_device_kernels::Wave;
use std::io::Write;
use std::sync::OnceLock;

/// Names PTX files by absolute paths, parted as those of `PATH`. A kernel is that of the first file that has its
/// entry; a kernel that none of them has is the checked-in one. The built-in kernels are all those of the file
/// with the layout probe.
pub const VARIABLE: &str = "RING_TEST_PTX";

// SAFETY: `cargo xtask ptx` made it of the crate whose kernels are launched with it.
const EXAMPLES: Kernels = unsafe { Kernels::new(PTX) };

// SAFETY: likewise.
const WHOLE_DEVICE: Kernels = unsafe { Kernels::new(ring_whole_device_kernels::PTX) };

/// The files. What they are is written to standard error, past a harness that keeps what tests print.
/// Ends the process if one cannot be used: no test may run other PTX than was asked for.
pub fn files() -> &'static KernelFiles {
    static FILES: OnceLock<KernelFiles> = OnceLock::new();
    FILES.get_or_init(|| {
        let Some(paths) = std::env::var_os(VARIABLE).filter(|paths| !paths.is_empty()) else {
            return KernelFiles::default();
        };
        // SAFETY: who sets the variable vouches for the files' code.
        match unsafe { KernelFiles::read(std::env::split_paths(&paths)) } {
            Ok(files) => {
                let names = files.files().iter().map(|file| file.path().display().to_string());
                let names = names.collect::<Vec<_>>().join(", ");
                say(format_args!("{VARIABLE}: a GPU runs the kernels of {names}"));
                files
            }
            Err(error) => {
                say(format_args!("{VARIABLE}: {error}"));
                std::process::exit(1);
            }
        }
    })
}

/// What a GPU is opened with.
pub fn config() -> RuntimeConfig {
    RuntimeConfig { kernels: files().built_in(), ..RuntimeConfig::default() }
}

/// PTX with `K`, which is a kernel of the examples.
pub fn of_examples<K: Kernel>() -> Kernels {
    files().with_entry(K::ENTRY, EXAMPLES)
}

/// PTX with `K`, which is a kernel of `ring_whole_device_kernels`.
pub fn of_whole_device<K: Kernel>() -> Kernels {
    files().with_entry(K::ENTRY, WHOLE_DEVICE)
}

/// Runs a test of kernels of `ring_whole_device_kernels` on every device there is.
pub fn on_each_device_of_whole_device(test: impl Fn(&Runtime)) {
    let launch = LaunchConfig::default().kernels(of_whole_device::<Wave>());
    crate::on_each_device_with::<Wave>(&launch, test);
}

/// Whether a panic of `K`, which is a kernel of the examples, is a trap on a GPU: the process then loses all
/// that it has there.
pub fn traps<K: Kernel>() -> bool {
    ring_ptx::traps_on_panic(of_examples::<K>().ptx())
}

/// Whether a GPU goes on after a panic of `K`, which is a kernel of the examples. If not, it is said out loud
/// that `what` is left out there.
pub fn bears_panics<K: Kernel>(what: &str) -> bool {
    let traps = traps::<K>();
    if traps {
        let path = files().find(K::ENTRY).map(KernelFile::path).unwrap_or("".as_ref()).display();
        say(format_args!(
            "SKIPPED ON A GPU, run on the CPU device only: {what}: a panic of {path} is a trap, which \
             ends all that the process has on the GPU"
        ));
    }
    !traps
}

fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
