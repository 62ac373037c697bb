//! Giving code to the driver: PTX, which it compiles, or a cubin, which it takes as it is.

use super::api;
use super::call::{Bound, check};
use crate::device::image::{Cubin, Image, ImageError, NotPtx};
use crate::error::DriverError;
use cudarc::driver::sys;
use std::ffi::{CString, c_void};
use std::marker::PhantomData;

/// A module just loaded, while its context is bound.
#[derive(Debug)]
pub(super) struct RawModule<'a>(pub sys::CUmodule, PhantomData<&'a Bound>);

/// Bytes of what the driver's compiler says that are kept.
const LOG_BYTES: usize = 8192;

/// Has the driver compile an image's PTX.
pub(super) fn ptx<'a>(_: &'a Bound, image: &Image) -> Result<RawModule<'a>, ImageError> {
    let text = CString::new(image.ptx()).map_err(|_| ImageError::NotPtx(NotPtx::Nul))?;
    let mut log = vec![0u8; LOG_BYTES];
    let mut module = std::ptr::null_mut();
    let mut options = [
        sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER,
        sys::CUjit_option_enum::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
    ];
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len() - 1)];
    // SAFETY: the text is terminated; two options with their values, the log as long as said.
    let result = unsafe {
        let (options, values) = (options.as_mut_ptr(), values.as_mut_ptr());
        api::cuModuleLoadDataEx(&mut module, text.as_ptr().cast(), 2, options, values)
    };
    if let Err(error) = check("cuModuleLoadDataEx", result) {
        let said = String::from_utf8_lossy(&log);
        let said = said.trim_end_matches('\0').trim();
        let log = format!("{error}{}{said}", if said.is_empty() { "" } else { ": " });
        return Err(ImageError::Refused { code: error.code, log });
    }
    Ok(RawModule(module, PhantomData))
}

/// Has the driver take a cubin.
pub(super) fn cubin<'a>(_: &'a Bound, cubin: &Cubin) -> Result<RawModule<'a>, DriverError> {
    let (mut module, none) = (std::ptr::null_mut(), std::ptr::null_mut());
    let image = cubin.elf.as_ptr().cast();
    // SAFETY: a whole ELF file, which tells its own length: `cargo xtask ptx` wrote what ptxas made, and the digests
    // of its manifest are tested. No options, so none are read.
    let result = unsafe { api::cuModuleLoadDataEx(&mut module, image, 0, none, none.cast()) };
    check("cuModuleLoadDataEx", result)?;
    Ok(RawModule(module, PhantomData))
}
