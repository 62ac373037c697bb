//! A CUDA toolkit with libNVVM: the machine's own, else one that is laid out of PyPI's packages under the target
//! folder.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use fs_err as fs;

use crate::{Result, Workspace, pins, shell};

/// The toolkit to compile by Rust-CUDA with; nothing where the machine has one that a build finds by itself.
///
/// # Errors
/// When pip is missing or cannot fetch one.
pub fn ensure(ws: &Workspace) -> Result<Option<PathBuf>> {
    let [_, of_cuda @ ..] = ring_builder::rust_cuda::VARIABLES;
    let is_named = of_cuda.iter().any(|name| std::env::var_os(name).is_some());
    if is_named || Path::new("/usr/local/cuda/include/cuda.h").is_file() {
        return Ok(None);
    }
    let toolkit = ws.tools().join("cuda");
    if toolkit.join(LAST).exists() {
        return Ok(Some(toolkit));
    }
    let wheels = ws.tools().join("toolkit");
    println!("setup: asking PyPI for {} and {}", pins::NVCC_WHEEL, pins::CUDART_WHEEL);
    let mut pip = shell::command("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]);
    pip.args(["--disable-pip-version-check", "--target"]).arg(&wheels);
    shell::output(pip.args([pins::NVCC_WHEEL, pins::CUDART_WHEEL])).map_err(|error| {
        anyhow!(
            "{error}\n  try: apt-get install python3-pip, or CUDA_PATH=FOLDER of a CUDA toolkit"
        )
    })?;
    crate::workspace::remove(&toolkit)?;
    fs::create_dir_all(&toolkit)?;
    let parts = wheels.join("nvidia");
    let library = parts.join("cuda_nvcc/nvvm/lib64");
    let name = library.join("libnvvm.so.4"); // what is linked with it asks for, and the package lacks
    if !name.exists() {
        link(&library.join("libnvvm.so"), &name)?;
    }
    link(&parts.join("cuda_runtime/include"), &toolkit.join("include"))?;
    link(&parts.join("cuda_nvcc/nvvm"), &toolkit.join(LAST))?;
    Ok(Some(toolkit))
}

/// What is made last: it marks completion.
const LAST: &str = "nvvm";

#[cfg(unix)]
fn link(original: &Path, link: &Path) -> Result {
    Ok(fs::os::unix::fs::symlink(original, link)?)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> Result {
    anyhow::bail!("Rust-CUDA is built on Linux\n  try: the image of rust-cuda/Containerfile")
}
