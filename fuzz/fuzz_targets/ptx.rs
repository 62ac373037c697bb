//! PTX that somebody else made: what is read from it, what the host checks before a driver sees it, what the
//! builder checks of its compiler's, and this repository's own rules. Any bytes, no panic.
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
    let lines = text.lines().count();
    for statement in ring_ptx::statements(text) {
        assert!((1..=lines).contains(&statement.line) && !statement.text.is_empty());
    }
    let plain = ring_ptx::without_comments(text);
    assert!(plain.lines().count() <= lines && plain.len() <= text.len(), "{plain:?}");
    let version = ring_ptx::abi_version(text);
    match &image {
        Ok(image) => {
            assert_eq!(image.ptx(), text);
            assert_eq!(version, Some(ABI_VERSION));
            let there = image.entries().any(|name| name == "ring_echo");
            assert_eq!(image.check_entry("ring_echo").is_ok(), there);
        }
        Err(ImageError::Abi { found }) => assert_eq!(version, Some(*found)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = ptx::check_header(text, Arch::OLDEST);
    if let Err(error) = ptx::names_none(text, &[Path::new("/home/me"), Path::new("/")]) {
        assert!(error.to_string().contains("/home/me"), "{error}");
    }
    for module in MODULES {
        for violation in golden::check(module, text) {
            assert!(violation.line <= lines, "{violation}");
        }
    }
});
