//! Finding the driver's library.

use cudarc::driver::sys;
use libloading::Library;
use std::sync::OnceLock;

/// The library, if it can be loaded. It is looked for where the dynamic linker looks, and then in
/// WSL2's folder, which many installations leave out of the linker's path. It is looked for once.
pub(super) fn get() -> Option<&'static Library> {
    static LIBRARY: OnceLock<Option<&'static Library>> = OnceLock::new();
    // SAFETY: the library is there, so that this does not panic; its initialisation is meant to be run
    // by any process.
    *LIBRARY.get_or_init(|| find().then(|| unsafe { sys::culib() }))
}

fn find() -> bool {
    // SAFETY: only looks for the library.
    let present = || unsafe { sys::is_culib_present() };
    present() || (load_from_wsl() && present())
}

/// Loads the library of WSL2 by its path: who asks for it by name after that gets this one.
#[cfg(unix)]
fn load_from_wsl() -> bool {
    use crate::device::platform::WSL_LIBRARIES;
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    let path = format!("{WSL_LIBRARIES}/libcuda.so.1");
    // SAFETY: the driver's own library, whose initialisation is meant to be run by any process.
    match unsafe { Library::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) } {
        Ok(library) => {
            tracing::info!(path, "driver library loaded from WSL2's folder");
            std::mem::forget(library); // it stays loaded
            true
        }
        Err(_) => false,
    }
}

#[cfg(not(unix))]
fn load_from_wsl() -> bool {
    false
}
