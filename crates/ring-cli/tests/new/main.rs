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
use std::path::PathBuf;

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
    let package = "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
    fs::write(parent.join("Cargo.toml"), package).unwrap();
    fs::create_dir(parent.join("src")).unwrap();
    fs::write(parent.join("src/lib.rs"), "").unwrap();
    let ran = build(&parent, " --toolchain ring-none");
    ran.ends(1).complains(&["ring-none", "rustup toolchain install ring-none", "rust-src"]);
    ring("build --device cpu").ends(2);
}
