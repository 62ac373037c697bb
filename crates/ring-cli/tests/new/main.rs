//! `ring new`, `ring init` and `ring build`, as a user goes through them: from nothing, or from a package, to a
//! kernel of one's own.

#[allow(dead_code, reason = "others look at how long a run took")]
#[path = "../common/mod.rs"]
mod common;
mod init;
mod project;

use common::{ring, ring_at};
use project::{FIRST, build, cargo, folder, has_nightly, lock, package, read, turn};
use std::fs;
use std::path::{Path, PathBuf};

/// A new project in a folder of that name, with the versions of this clone's Cargo.lock.
fn project(name: &str) -> PathBuf {
    let parent = folder(name);
    let ran = ring_at(&parent, FIRST, "new my-kernels", &[]).ends(0);
    ran.says(&["wrote my-kernels/ with ring from", "next cd my-kernels cargo test"]);
    let project = parent.join("my-kernels");
    lock(&project);
    project
}

/// A workspace of one package, with further lines for its Cargo.toml.
fn workspace(name: &str, members: &str) -> PathBuf {
    let root = folder(name);
    let toml = format!("[workspace]\nresolver = \"3\"\n{members}\n");
    fs::write(root.join("Cargo.toml"), toml).unwrap();
    package(&root.join("mine"), "mine");
    lock(&root);
    root
}

#[test]
fn a_new_project_passes_its_test_at_once() {
    let _turn = turn();
    let project = project("at-once");
    let said = cargo(&project, "test");
    assert!(said.contains("test tests::every_answer_is_right ... ok"), "{said}");
    let said = cargo(&project, "run --quiet -- cpu 5000");
    assert!(said.contains("5000 answers, all right"), "{said}");
}

#[test]
fn a_new_project_s_kernels_become_ptx() {
    let _turn = turn();
    if !has_nightly() {
        return;
    }
    let project = project("ptx");
    // On a GPU, where there is one.
    let said = cargo(&project, "run --features gpu -- auto 5000");
    assert!(said.contains("5000 answers, all right"), "{said}");
    let said = cargo(&project, "build --verbose --features gpu");
    assert!(said.contains("Fresh my-kernels"), "nothing changed, but it was built again:\n{said}");

    let kernels = project.join("kernels");
    let found =
        ["compiled kernels for sm_70", "kernels.ptx (written)", "entries ring_Square", "next"];
    build(&project, "").ends(0).says(&found);
    let ptx = fs::read_to_string(kernels.join("kernels.ptx")).unwrap();
    assert!(ring_ptx::entries(&ptx).eq(["ring_Square"]));
    assert!(
        fs::read_to_string(kernels.join("kernels.manifest")).unwrap().contains("abi-version = ")
    );
    build(&project, " kernels").ends(0).says(&["kernels.ptx (as it was)"]);

    let broken = kernels.join("src/lib.rs");
    fs::write(&broken, fs::read_to_string(&broken).unwrap() + "fn broken() -> u32 {}\n").unwrap();
    build(&project, "").ends(1).complains(&["cannot compile to PTX", "mismatched types"]);
    fs::write(&broken, "#![no_std]\npub use ring_device::Echo;\n").unwrap();
    build(&project, "").ends(1).complains(&["kernels has no entry point", "forget ring_kernel!?"]);
}

#[test]
fn a_workspace_with_a_new_project_in_it_builds_and_so_does_the_project() {
    let _turn = turn();
    // One that takes every folder for a member of its own.
    let root = workspace("in-all", "members = [\"*\"]");
    let ran = ring_at(&root, FIRST, "new my-app", &[]).ends(0);
    ran.says(&["It is a member of the workspace of", "in-all/Cargo.toml"]);
    let said = cargo(&root, "test");
    assert!(said.contains("test tests::every_answer_is_right ... ok"), "{said}");
    cargo(&root.join("my-app"), "build");
    if has_nightly() {
        let said = cargo(&root.join("my-app"), "run --features gpu -- auto 5000");
        assert!(said.contains("5000 answers, all right"), "{said}");
    }

    // Those that do not: cargo reads both, or neither would build.
    for (name, members) in [
        ("in-one", "members = [\"mine\", \"crates/theirs\"]"),
        ("in-deeper", "members = [\"mine\", \"crates/*\"]"),
        ("in-without", "members = [\"mine\", \"*\"]\nexclude = [\"my-app\", \"crates\"]"),
    ] {
        let root = workspace(name, members);
        package(&root.join("crates/theirs"), "theirs");
        ring_at(&root, FIRST, "new my-app", &[]).ends(0);
        read(&root);
        read(&root.join("my-app"));
    }
}

/// What `ring_host` calls its kernels, and those of the project.
#[test]
fn a_program_names_kernels_of_both() {
    let _turn = turn();
    let project = project("both");
    let main = project.join("src/main.rs");
    let text = fs::read_to_string(&main).unwrap();
    let text = text.replace("use ring_host::{", "use ring_host::{kernels, ");
    fs::write(main, text + "\n/// Ours.\npub type Ours = kernels::Echo;\n").unwrap();
    cargo(&project, "build");
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    ring("new 1st").ends(2).complains(&["'1st'", "a letter first"]);
    ring("new kernels").ends(2).complains(&["'kernels'", "taken by"]);
    ring("new").ends(2).complains(&["<FOLDER>"]);
    let parent = folder("refused");
    let ran = ring_at(&parent, FIRST, "new x --ring none/of/it", &[]);
    ran.ends(1).complains(&["none/of/it is no clone of ring", "--ring"]);
    assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    fs::create_dir(parent.join("x")).unwrap();
    fs::write(parent.join("x/mine"), "").unwrap();
    ring_at(&parent, FIRST, "new x", &[]).ends(1).complains(&["x exists and is not empty"]);
    assert_eq!(fs::read_dir(parent.join("x")).unwrap().count(), 1);
}

#[test]
fn ring_may_come_from_elsewhere() {
    let parent = folder("elsewhere");
    for (name, from, expected) in [
        ("a", "https://host/ring", "ring-host = { git = \"https://host/ring\" }"),
        ("b", "0.1.0", "ring-host = \"0.1.0\""),
    ] {
        ring_at(&parent, FIRST, &format!("new {name} --ring {from}"), &[]).ends(0);
        let toml = fs::read_to_string(parent.join(name).join("Cargo.toml")).unwrap();
        assert!(toml.contains(expected), "{toml}");
    }
}

/// A package without kernels, in no workspace.
fn empty_package(at: &Path) {
    package(at, "x");
    let toml = at.join("Cargo.toml");
    fs::write(&toml, fs::read_to_string(&toml).unwrap() + "[workspace]\n").unwrap();
}

#[test]
fn what_cannot_be_compiled_is_named() {
    let parent = folder("build");
    for (options, parts) in [
        ("", ["no Cargo.toml in", "cargo init --lib"]),
        (" none", ["there is no folder", "none"]),
        (" --arch sm_60", ["'sm_60' is no GPU architecture from sm_70 on", "sm_80"]),
    ] {
        build(&parent, options).ends(1).complains(&parts).complains(&["On CPU threads"]);
    }
    empty_package(&parent);
    let ran = build(&parent, " --toolchain ring-none");
    ran.ends(1).complains(&["ring-none", "rustup toolchain install ring-none", "rust-src"]);
    ring("build --device cpu").ends(2);
}

/// A program that only says `said`.
#[cfg(unix)]
fn program(path: &Path, said: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\nprintf '{said}'\n")).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Each tool in turn is missing, then another than it must be, then as it must be.
#[cfg(unix)]
#[test]
fn tools_that_rust_cuda_lacks_are_named() {
    use common::LIMIT;
    use ring_builder::rust_cuda::{NIGHTLY, RUSTC_COMMIT};
    let at = folder("rust-cuda");
    empty_package(&at);
    let (llvm, cuda, nightly) = (at.join("llvm-config"), at.join("cuda"), at.join("nightly"));
    let complains = |options: &str, parts: &[&str]| {
        let paths = [&llvm, &cuda].map(|path| path.to_str().unwrap());
        let variables =
            [("LLVM_CONFIG", paths[0]), ("CUDA_PATH", paths[1]), ("RING_TOOLCHAIN", "")];
        let options = format!("build . --compiler rust-cuda {options}");
        ring_at(&at, LIMIT, &options, &variables).ends(1).complains(parts).complains(&["try: "]);
    };
    complains("", &["no llvm-config of it", "set LLVM_CONFIG", "rust-cuda/Containerfile"]);
    program(&llvm, "14.0.6");
    complains("", &["linked with LLVM 7.x, but", "is of LLVM 14.0.6"]);
    program(&llvm, "7.1.0");
    fs::create_dir_all(cuda.join("include")).unwrap();
    fs::write(cuda.join("include/cuda.h"), "#define CUDA_VERSION 13000\n").unwrap();
    complains("", &["is 13.0, but", "12.4 or newer, but older than 13.0", "CUDA_PATH=FOLDER"]);
    fs::write(cuda.join("include/cuda.h"), "#define CUDA_VERSION 12080\n").unwrap();
    fs::write(cuda.join("include/cuda_runtime_api.h"), "").unwrap();
    complains("", &["has no nvvm/include/nvvm.h", "the package cuda-nvcc"]);
    for part in ["include/nvvm.h", "lib64/libnvvm.so", "libdevice/libdevice.10.bc"] {
        complains("", &[&format!("has no nvvm/{part}")]);
        let part = cuda.join("nvvm").join(part);
        fs::create_dir_all(part.parent().unwrap()).unwrap();
        fs::write(part, "").unwrap();
    }
    let install =
        format!("rustup toolchain install {NIGHTLY} --profile minimal --component rustc-dev");
    complains("--toolchain ring-none", &["toolchain ring-none is not installed", &install]);
    program(&nightly.join("bin/rustc"), "release: 1.97.0-nightly\\ncommit-hash: abc\\n");
    fs::write(nightly.join("bin/cargo"), "").unwrap();
    complains("--toolchain ./nightly", &["was chosen, of commit abc", &install]);
    let said = format!("release: 1.96.0-nightly\\ncommit-hash: {RUSTC_COMMIT}\\n");
    program(&nightly.join("bin/rustc"), &said);
    fs::create_dir_all(nightly.join("lib/rustlib")).unwrap();
    fs::write(nightly.join("lib/rustlib/components"), "rust-src\n").unwrap();
    complains("--toolchain ./nightly", &["has no rustc-dev", "rustup component add rustc-dev"]);
}
