use super::*;

#[test]
fn each_says_which_value_and_what_to_do() {
    let path = || PathBuf::from("a/b");
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let name = || "x-1".to_owned();
    let install = "rustup toolchain install x-1 --profile minimal --component rust-src";
    let cases: [(BuildError, &[&str]); 19] = [
        (BuildError::Compiler { name: name() }, &["'x-1'", "upstream, or rust-cuda"]),
        (
            BuildError::UnknownArch { name: name(), known: vec!["y".to_owned(), name()] },
            &["x-1; it knows y, x-1", "sm_70"],
        ),
        (BuildError::NoFolder(path()), &["a/b", "try: "]),
        (BuildError::NoCargoToml(path()), &["a/b", "`cargo init --lib a/b`"]),
        (BuildError::NoPackage(path()), &["a/b", "[package]", "not of its workspace"]),
        (BuildError::Cargo { path: path(), said: name() }, &["does not take a/b:\nx-1"]),
        (BuildError::Arch { name: name() }, &["'x-1'", "from sm_70 on", "try: sm_70"]),
        (BuildError::FileName(name()), &["'x-1'", "try: kernels"]),
        (BuildError::NoRustup { folder: path(), name: name() }, &["a/b", install]),
        (BuildError::NoToolchain { name: name(), installed: vec![] }, &["none", install]),
        (
            BuildError::NoSource { name: name(), sysroot: path(), rustup: Some("y-1".to_owned()) },
            &["x-1", "rust-src --toolchain y-1"],
        ),
        (
            BuildError::NoSource { name: name(), sysroot: path(), rustup: None },
            &[
                "x-1 in a/b",
                "try: rustup toolchain install nightly-2026-05-20",
                "at a/b/lib/rustlib",
            ],
        ),
        (BuildError::NoCompiler { sysroot: path(), why: name() }, &["a/b", "x-1", "rustup"]),
        (BuildError::NotStarted { program: path(), source: denied() }, &["a/b", "denied"]),
        (BuildError::Modules { found: 3 }, &["3 PTX modules", "try: remove"]),
        (BuildError::NoKernel { package: name() }, &["x-1 declares no kernel", "ring_kernel!"]),
        (BuildError::NoAbi { package: name() }, &["x-1", "RING_ABI_VERSION", "ring-device"]),
        (BuildError::NoEntry { package: name() }, &["x-1", "did you forget ring_kernel!?"]),
        (BuildError::Io { path: path(), source: denied() }, &["a/b", "permission denied"]),
    ];
    for (error, parts) in cases {
        let said = error.to_string();
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(said.contains("\n  try: "), "{said}");
    }
    let said = BuildError::Compile { command: name(), said: "a\nb\n".to_owned() }.to_string();
    assert!(said.starts_with("a\nb\n`x-1` failed"), "{said}");
}
