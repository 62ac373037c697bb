//! Compiles the kernels beside it to PTX by Rust-CUDA: into `kernels.ptx`, or the file that is named.

use cuda_builder::{CudaBuilder, NvvmArch};
use std::process::ExitCode;

fn main() -> ExitCode {
    let ptx = std::env::args().nth(1).unwrap_or_else(|| "kernels.ptx".to_owned());
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
    match CudaBuilder::new(kernels).arch(NvvmArch::Compute70).copy_to(&ptx).build() {
        Ok(_) => {
            println!("wrote {ptx}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}; what is wrong is above");
            ExitCode::FAILURE
        }
    }
}
