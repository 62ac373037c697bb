use super::*;

#[test]
fn a_name_may_lack_the_triple() {
    assert!(is_named("nightly-2026-05-20-x86_64-unknown-linux-gnu", "nightly-2026-05-20"));
    assert!(is_named("nightly-x86_64-unknown-linux-gnu", "nightly"));
    assert!(is_named("ring-nightly", "ring-nightly"));
    assert!(!is_named("nightly-2026-05-20-x86_64-unknown-linux-gnu", "nightly"));
    assert!(!is_named("nightlyx", "nightly"));
}

#[test]
fn without_rustup_it_says_where_to_get_it() {
    let said = find_in(Path::new("/ring/none"), None).unwrap_err().to_string();
    let parts = ["/ring/none", "https://rustup.rs", pins::NIGHTLY, "rust-src", VARIABLE];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}

/// Toolchains whose rustc only says its version.
#[cfg(unix)]
mod made_up {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::PermissionsExt;

    const SOURCE: &str = "lib/rustlib/src/rust/library/core/src/lib.rs";

    fn add(home: &Scratch, name: &str, release: &str, commit: &str) {
        let text = format!("#!/bin/sh\necho 'commit-hash: {commit}'\necho 'release: {release}'\n");
        let rustc = home.put(format!("{name}/bin/rustc"), &text);
        std::fs::set_permissions(rustc, PermissionsExt::from_mode(0o755)).unwrap();
        home.put(format!("{name}/bin/cargo"), "");
        home.put(Path::new(name).join(RUSTUPS), "");
    }

    #[test]
    fn what_is_missing_is_reported_with_its_command() {
        let home = Scratch::new("toolchains");
        add(&home, "stable-host", "1.95.0", "aa");
        let said = |wanted| find_in(&home.0, wanted).unwrap_err().to_string();
        let none = said(None);
        assert!(none.contains("nightly-2026-05-20 is not installed; there is: stable-host"));
        assert!(none.contains(
            "rustup toolchain install nightly-2026-05-20 --profile minimal --component rust-src"
        ));
        assert!(said(Some("nightly")).contains("toolchain nightly is not installed"));
        assert!(said(Some("stable")).contains("stable is Rust 1.95.0, but PTX needs a nightly"));

        add(&home, "nightly-2026-05-20-host", pins::RUSTC_RELEASE, pins::RUSTC_COMMIT);
        let command = "rustup component add rust-src --toolchain nightly-2026-05-20";
        assert!(said(None).contains(command) && said(Some(pins::NIGHTLY)).contains(command));

        // Any toolchain of the pinned commit serves, the one with the source first.
        add(&home, "zz-linked", pins::RUSTC_RELEASE, pins::RUSTC_COMMIT);
        home.put(Path::new("zz-linked").join(SOURCE), "");
        assert_eq!(find_in(&home.0, None).unwrap().sysroot(), home.0.join("zz-linked"));
    }

    #[test]
    fn a_missing_source_is_reported_of_the_toolchain_that_was_found() {
        let home = Scratch::new("no-source");
        let said = |wanted: Option<&str>| find_in(&home.0, wanted).unwrap_err().to_string();
        // Of the pinned commit, but rustup has it as the nightly of the day.
        add(&home, "nightly-host", pins::RUSTC_RELEASE, pins::RUSTC_COMMIT);
        let found = said(None);
        assert!(found.contains("toolchain nightly-host has no source"), "{found}");
        assert!(found.contains("rust-src --toolchain nightly-host"), "{found}");
        assert!(!found.contains(pins::NIGHTLY), "that one is not installed: {found}");
        // rustup takes no folders, but knows this one by its name.
        let named = said(home.0.join("nightly-host").to_str());
        assert!(named.contains("rust-src --toolchain nightly-host"), "{named}");
    }

    #[test]
    fn what_rustup_adds_nothing_to_is_reported_with_its_folder() {
        let home = Scratch::new("linked");
        let elsewhere = Scratch::new("linked-to");
        add(&elsewhere, "built", pins::RUSTC_RELEASE, pins::RUSTC_COMMIT);
        std::fs::remove_file(elsewhere.0.join("built").join(RUSTUPS)).unwrap();
        std::os::unix::fs::symlink(elsewhere.0.join("built"), home.0.join("mine")).unwrap();
        let by_path = elsewhere.0.join("built");
        for wanted in [None, Some("mine"), by_path.to_str()] {
            let said = find_in(&home.0, wanted).unwrap_err().to_string();
            assert!(!said.contains("component add"), "rustup refuses that: {said}");
            let folder = if wanted == by_path.to_str() { &by_path } else { &home.0.join("mine") };
            let source = folder.join("lib/rustlib/src/rust/library");
            for part in [folder, &source].map(|path| path.to_str().unwrap()) {
                assert!(said.contains(part), "{said}");
            }
            let install = "rustup toolchain install nightly-2026-05-20 --profile minimal";
            assert!(said.contains(install), "{said}");
        }
    }

    #[test]
    fn another_nightly_is_taken_if_named() {
        let home = Scratch::new("nightly");
        add(&home, "nightly-2027-01-01-host", "1.99.0-nightly", "bb");
        home.put(Path::new("nightly-2027-01-01-host").join(SOURCE), "");
        assert!(find_in(&home.0, None).is_err());
        let found = find_in(&home.0, Some("nightly-2027-01-01")).unwrap();
        assert_eq!((found.release(), found.is_pinned()), ("1.99.0-nightly", false));
        let sysroot = home.0.join("nightly-2027-01-01-host");
        assert!(find_in(Path::new("/ring/none"), sysroot.to_str()).is_ok());
    }

    #[test]
    fn a_folder_without_a_compiler_or_cargo_is_named() {
        let home = Scratch::new("no-cargo");
        let said = find_in(&home.0, home.0.to_str()).unwrap_err().to_string();
        assert!(said.contains(home.0.to_str().unwrap()) && said.contains("rustc: "), "{said}");
        add(&home, "x", "1.99.0-nightly", "bb");
        std::fs::remove_file(home.0.join("x/bin/cargo")).unwrap();
        let said = find_in(&home.0, home.0.join("x").to_str()).unwrap_err().to_string();
        assert!(said.contains("it has no cargo"), "{said}");
    }
}
