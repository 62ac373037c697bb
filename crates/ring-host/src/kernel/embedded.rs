//! Kernels as text that is compiled into a program: the built-in ones, and those of `ring-builder`.

use crate::device::image::{self, Image, ImageError};
use crate::device::layout_probe::LAYOUT_PROBE;
use std::fmt;

/// PTX of a crate's kernels, for [`LaunchConfig::kernels`](crate::LaunchConfig::kernels) or
/// [`RuntimeConfig::kernels`](crate::RuntimeConfig::kernels).
///
/// Made by [`include_kernels!`](crate::include_kernels) of what the package's build script compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Kernels {
    ptx: &'static str,
    built_in: bool,
}

/// Its length: the text has hundreds of kilobytes.
impl fmt::Debug for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernels").field("bytes", &self.ptx.len()).finish()
    }
}

impl Kernels {
    /// The kernels that come with this crate: [`kernels`](crate::kernels), and the layout probe. They have
    /// cubins for some GPUs, which load faster than PTX; [`Report::loaded`](crate::Report::loaded) says what
    /// was taken.
    pub const BUILT_IN: Kernels = Kernels { ptx: image::BUILT_IN, built_in: true };

    /// Kernels in PTX, which a GPU's driver compiles; say PTX that was made in another way, say by `ring build` and checked in. A program that
    /// reads PTX when it runs leaks the text, or lets [`KernelFiles`](crate::KernelFiles) keep it: what a
    /// device has loaded is never unloaded.
    ///
    /// # Safety
    /// A GPU will run this code with access to all memory it can reach, the host's pinned memory
    /// included. Its entries must be what `ring_device::run` makes of the kernel types that are
    /// launched with it, and must touch nothing else.
    pub const unsafe fn new(ptx: &'static str) -> Kernels {
        Kernels { ptx, built_in: false }
    }

    /// The text.
    pub const fn ptx(&self) -> &'static str {
        self.ptx
    }

    /// The text, checked.
    pub fn image(&self) -> Result<Image, ImageError> {
        match self.built_in {
            true => Ok(Image::built_in()),
            false => Image::new(self.ptx.as_bytes()),
        }
    }

    /// The text, checked as kernels that stand for the built-in ones.
    pub(crate) fn of_runtime(&self) -> Result<Image, ImageError> {
        let image = self.image()?;
        if !image.is_built_in() {
            image.check_entry(LAYOUT_PROBE)?;
        }
        Ok(image)
    }
}

/// The kernels that this package's build script compiled with `ring-builder`: a
/// [`Kernels`](crate::Kernels), in a constant if you like.
///
/// ```ignore
/// // build.rs compiled the crate `my-app-kernels`, where `Square` is.
/// const KERNELS: ring_host::Kernels = ring_host::include_kernels!();
/// let kernel = runtime.launch::<my_app_kernels::Square>(LaunchConfig::default().kernels(KERNELS))?;
/// ```
///
/// A name is that of `Builder::name`, for a build script that compiles several crates:
/// `include_kernels!("more")`. Only files of `OUT_DIR` can be included so, which none but the build
/// script writes; for others there is [`Kernels::new`](crate::Kernels::new).
#[macro_export]
macro_rules! include_kernels {
    () => {
        $crate::include_kernels!("kernels")
    };
    ($name:literal) => {{
        const {
            let mut name = $name.as_bytes();
            while let [first, rest @ ..] = name {
                assert!(*first != b'/' && *first != b'\\', "the name of Builder::name, no path");
                name = rest;
            }
        }
        const PTX: &str = include_str!(concat!(env!("OUT_DIR"), "/", $name, ".ptx"));
        // SAFETY: written by this package's build script through ring-builder, from the crate whose
        // kernel types are launched with it: its entries are made by `ring_kernel!`.
        unsafe { $crate::Kernels::new(PTX) }
    }};
}
