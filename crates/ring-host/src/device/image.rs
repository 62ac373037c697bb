//! The code of a kernel, checked before any driver sees it.

#[cfg(any(feature = "cuda", test))]
mod cubin;
mod error;
mod loaded;

#[cfg(feature = "cuda")]
pub(crate) use self::cubin::Cubin;
pub use self::error::{ImageError, NotPtx};
pub use self::loaded::{Architecture, Loaded, NoCubin};
use crate::sync::lock;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex};

/// PTX of the built-in kernels, built by `cargo xtask ptx` and checked in.
pub(crate) const BUILT_IN: &str = include_str!("../../ptx/kernels.ptx");

/// PTX that was checked: text, with an ABI version like ours.
#[derive(Clone)]
pub struct Image {
    ptx: Cow<'static, str>,
    built_in: bool,
    /// Names of its entries, of a text that stays for ever.
    entries: Option<Arc<[&'static str]>>,
}

/// Checked texts that stay for ever, by where they are: a program launches kernels of the same text again and again, and it takes
/// milliseconds to look through.
static CHECKED: Mutex<Vec<(&'static [u8], Image)>> = Mutex::new(Vec::new());

/// Its entries: the text has hundreds of kilobytes.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

impl Image {
    /// The built-in kernels.
    pub fn built_in() -> Image {
        Image { ptx: Cow::Borrowed(BUILT_IN), built_in: true, entries: None }
    }

    /// Whether these are [the built-in kernels](Image::built_in).
    pub fn is_built_in(&self) -> bool {
        self.built_in
    }

    /// What a GPU of that compute capability can load in place of the text.
    #[cfg(feature = "cuda")]
    pub(crate) fn cubin(&self, capability: (u32, u32)) -> Result<&'static Cubin, NoCubin> {
        if self.built_in { cubin::built_in(capability) } else { Err(NoCubin::NotBuiltIn) }
    }

    /// Checks PTX of a user's own. A text that stays for ever is looked through once.
    pub fn new(ptx: impl Into<Cow<'static, [u8]>>) -> Result<Image, ImageError> {
        match ptx.into() {
            Cow::Borrowed(bytes) => Image::of_static(bytes),
            Cow::Owned(bytes) => Image::checked(String::from_utf8(bytes).map(Cow::Owned).ok()),
        }
    }

    fn of_static(bytes: &'static [u8]) -> Result<Image, ImageError> {
        let is_same = |(checked, _): &&(&'static [u8], Image)| std::ptr::eq(*checked, bytes);
        if let Some((_, image)) = lock(&CHECKED).iter().find(is_same) {
            return Ok(image.clone());
        }
        let text = std::str::from_utf8(bytes).ok();
        let image = Image::checked(text.map(Cow::Borrowed))?;
        let entries = text.map(|text| ring_ptx::entries(text).collect());
        let image = Image { entries, ..image };
        lock(&CHECKED).push((bytes, image.clone()));
        Ok(image)
    }

    fn checked(text: Option<Cow<'static, str>>) -> Result<Image, ImageError> {
        let text = text.ok_or(ImageError::NotPtx(NotPtx::NotText))?;
        if text.trim().is_empty() {
            return Err(ImageError::Empty);
        }
        if text.contains('\0') {
            return Err(ImageError::NotPtx(NotPtx::Nul));
        }
        let header = ring_ptx::header(&text);
        if header.version.is_none() || header.target.is_none() {
            return Err(ImageError::NotPtx(NotPtx::NoDirective));
        }
        match ring_ptx::abi_version(&text) {
            Some(ring_shared::ABI_VERSION) => {
                Ok(Image { ptx: text, built_in: false, entries: None })
            }
            Some(found) => Err(ImageError::Abi { found }),
            None => Err(ImageError::NoAbi),
        }
    }

    /// The text.
    pub fn ptx(&self) -> &str {
        &self.ptx
    }

    /// Names of its entries.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        ring_ptx::entries(&self.ptx)
    }

    /// Checks that `entry` is there.
    pub fn check_entry(&self, entry: &'static str) -> Result<(), ImageError> {
        let has_it = match &self.entries {
            Some(entries) => entries.contains(&entry),
            None => self.entries().any(|name| name == entry),
        };
        if has_it { Ok(()) } else { Err(self.no_entry(entry)) }
    }

    /// The error for an entry that is not there: it names those that are.
    pub(crate) fn no_entry(&self, entry: &'static str) -> ImageError {
        let has = self.entries().map(str::to_owned).collect();
        ImageError::NoEntry { entry, has }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.4\n.target sm_70\n";

    #[test]
    fn built_in_passes() {
        let image = Image::new(BUILT_IN.as_bytes()).unwrap();
        for entry in ["ring_echo", "ring_vector_add", "ring_layout_probe"] {
            image.check_entry(entry).unwrap();
        }
    }

    #[test]
    fn a_text_that_stays_is_looked_through_once() {
        let ptx: &'static str = String::leak(BUILT_IN.to_owned());
        let first = Image::new(ptx.as_bytes()).unwrap();
        let again = Image::new(ptx.as_bytes()).unwrap();
        let entries = |image: &Image| image.entries.clone().unwrap();
        assert!(Arc::ptr_eq(&entries(&first), &entries(&again)));
        again.check_entry("ring_echo").unwrap();
        assert_eq!(again.check_entry("absent"), Err(again.no_entry("absent")));
        // A part of it is another text, and the same words elsewhere are looked through.
        let part = Image::new(ptx.trim_end().as_bytes()).unwrap();
        let elsewhere = Image::new(BUILT_IN.to_owned().into_bytes()).unwrap();
        assert!(!Arc::ptr_eq(&entries(&first), &entries(&part)) && elsewhere.entries.is_none());
        elsewhere.check_entry("ring_echo").unwrap();
    }

    #[test]
    fn bad_images_are_named() {
        let new = |s: &str| Image::new(s.to_owned().into_bytes()).unwrap_err();
        assert_eq!(new(""), ImageError::Empty);
        assert_eq!(new(" \n"), ImageError::Empty);
        let not_ptx = ImageError::NotPtx;
        assert_eq!(new("\u{7f}ELF"), not_ptx(NotPtx::NoDirective));
        assert_eq!(new(&format!("{HEAD}\0")), not_ptx(NotPtx::Nul));
        let not_text = Image::new(&[0xff, 0xfe][..]).map(drop);
        assert_eq!(not_text, Err(not_ptx(NotPtx::NotText)));
        assert_eq!(new(HEAD), ImageError::NoAbi);
        let abi = |v: &str| format!("{HEAD}.visible .global .align 4 .u32 RING_ABI_VERSION = {v};");
        assert_eq!(new(&abi("999")), ImageError::Abi { found: 999 });
        assert_eq!(new(&abi("{2, 1}")), ImageError::Abi { found: 258 });
        assert_eq!(new(&abi("x")), ImageError::NoAbi);
        let image = Image::new(abi(&ring_shared::ABI_VERSION.to_string()).into_bytes()).unwrap();
        let error = image.check_entry("ring_echo").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the PTX has no entry 'ring_echo'; it has: none; a kernel of your own is launched with its \
             own PTX (LaunchConfig::kernels)"
        );
    }
}
