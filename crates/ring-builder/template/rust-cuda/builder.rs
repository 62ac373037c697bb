//! Compiles the kernels beside it to PTX by Rust-CUDA, for an architecture by NVVM's name (`compute_70`), into the
//! file that is named.

use cuda_builder::{CudaBuilder, NvvmArch};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [arch, ptx] = arguments.as_slice() else {
        eprintln!("an architecture and a file are needed");
        return ExitCode::FAILURE;
    };
    let Ok(arch) = arch.parse::<NvvmArch>() else {
        eprintln!("Rust-CUDA knows no architecture '{arch}'\n  try: --arch sm_70, sm_80 or sm_90");
        return ExitCode::FAILURE;
    };
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
    match CudaBuilder::new(kernels).arch(arch).build_args(&["--quiet"]).copy_to(ptx).build() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
