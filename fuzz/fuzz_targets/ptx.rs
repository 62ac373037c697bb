//! PTX that somebody else made: what the host checks before a driver sees it, what the builder reads from
//! its compiler's, and this repository's own rules. Any bytes, no panic; and host and builder agree.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ring_builder::{Arch, ptx};
use ring_host::image::{Image, ImageError};
use ring_shared::ABI_VERSION;
use std::path::Path;
use xtask::golden;
use xtask::pins::MODULES;

fuzz_target!(|bytes: &[u8]| {
    let image = Image::new(bytes.to_vec());
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(matches!(image, Err(ImageError::NotPtx(_))), "no text: {image:?}");
        return;
    };
    let (entries, version) = (ptx::entries(text), ptx::abi_version(text));
    match &image {
        Ok(image) => {
            assert_eq!(image.ptx(), text);
            assert!(image.entries().eq(entries.iter().map(String::as_str)), "other entries");
            assert_eq!(version, Some(ABI_VERSION), "a version that the builder does not see");
            let there = image.entries().any(|name| name == "ring_echo");
            assert_eq!(image.check_entry("ring_echo").is_ok(), there);
        }
        Err(ImageError::Abi { found }) => assert_eq!(version, Some(*found)),
        Err(ImageError::NoAbi) => assert_eq!(version, None, "a version that the host does not see"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = ptx::check_header(text, Arch::OLDEST);
    if let Err(error) = ptx::names_none(text, &[Path::new("/home/me"), Path::new("/")]) {
        assert!(error.to_string().contains("/home/me"), "{error}");
    }
    for module in MODULES {
        for violation in golden::check(module, text) {
            assert!(violation.line <= text.lines().count(), "{violation}");
        }
    }
});
