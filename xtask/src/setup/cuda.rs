//! A CUDA toolkit with libNVVM: the machine's own, else one that is laid out of PyPI's packages under the target
//! folder.

use std::path::{Path, PathBuf};

use fs_err as fs;
use ring_builder::rust_cuda::{CUDA_FOLDERS, CUDA_VARIABLES};

use super::linked::link;
use super::{ptxas, pypi};
use crate::{Result, Workspace, pins, workspace};

/// Where the package with the headers goes.
const CUDART: &str = "cudart";
/// What is made last in the toolkit: it marks completion.
const LAST: &str = "nvvm";
/// What serves where pip does not.
const OTHERWISE: &str = "CUDA_PATH=FOLDER of a CUDA toolkit";

/// The toolkit to compile by Rust-CUDA with; nothing where the machine has one that a build finds by itself.
///
/// # Errors
/// When pip is missing or cannot fetch one.
pub fn ensure(ws: &Workspace) -> Result<Option<PathBuf>> {
    let is_named = CUDA_VARIABLES.iter().any(|name| std::env::var_os(name).is_some());
    let is_there = |folder: &&str| Path::new(folder).join("include/cuda.h").is_file();
    if is_named || CUDA_FOLDERS.iter().any(is_there) {
        return Ok(None);
    }
    let toolkit = ws.tools().join("cuda");
    if toolkit.join(LAST).exists() {
        return Ok(Some(toolkit));
    }
    let nvvm = pypi::folder(ws, ptxas::NVCC).join("nvidia/cuda_nvcc/nvvm");
    let library = nvvm.join("lib64/libnvvm.so");
    if !library.is_file() {
        pypi::install(ws, ptxas::NVCC, pins::NVCC_WHEEL, OTHERWISE)?;
    }
    pypi::install(ws, CUDART, pins::CUDART_WHEEL, OTHERWISE)?;
    let name = nvvm.join("lib64/libnvvm.so.4"); // what is linked with it asks for, and the package lacks
    if !name.exists() {
        link(&library, &name)?;
    }
    workspace::remove(&toolkit)?;
    fs::create_dir_all(&toolkit)?;
    let headers = pypi::folder(ws, CUDART).join("nvidia/cuda_runtime/include");
    link(&headers, &toolkit.join("include"))?;
    link(&nvvm, &toolkit.join(LAST))?;
    Ok(Some(toolkit))
}
