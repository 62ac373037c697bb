//! `ring init`, as a user goes through it: a kernel for a package that is there already.

use crate::common::{Ran, ring_at};
use crate::project::{self, FIRST, Outside, cargo, folder, has_nightly, lock, package, read, turn};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

#[track_caller]
fn init(folder: &Path, options: &str) -> Ran {
    ring_at(folder, FIRST, &format!("init{options}"), &[])
}

/// All files below a folder, and what is in them.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.insert(path.clone(), String::new()); // empty ones count too
            files.extend(self::files(&path));
        } else {
            files.insert(path.clone(), fs::read_to_string(&path).unwrap());
        }
    }
    files
}

#[test]
fn a_package_gets_a_kernel_and_keeps_what_it_has() {
    let _turn = turn();
    let parent = Outside::new("init");
    cargo(&parent.0, "new --quiet --vcs none my-app");
    let package = parent.0.join("my-app");
    let before = files(&package);
    init(&package, "").ends(0).says(&[
        "added to my-app with ring from",
        "kernels/src/lib.rs the kernel",
        "Cargo.toml [dependencies] my-app-kernels = { path = \"kernels\" }",
        "next cargo run --release --example square -- cpu",
    ]);
    let after = files(&package);
    for (path, text) in &before {
        let changed = path.ends_with("Cargo.toml");
        assert!(changed || after.get(path) == Some(text), "{}", path.display());
    }
    init(&package, "").ends(0).says(&["nothing to add: my-app has its kernels"]);
    assert_eq!(files(&package), after, "a second time");

    lock(&package);
    cargo(&package, "test");
    let said = cargo(&package, "run --quiet --example square -- cpu 5000");
    assert!(said.contains("5000 answers, all right"), "{said}");
    assert!(cargo(&package, "run --quiet").contains("Hello"), "its own program");
    if has_nightly() {
        let said = cargo(&package, "run --quiet --example square --features gpu -- auto 5000");
        assert!(said.contains("5000 answers, all right"), "{said}");
    }
}

#[test]
fn a_package_of_a_workspace_gets_a_kernel() {
    let _turn = turn();
    for (name, members) in [("init-all", "*"), ("init-one", "mine"), ("init-deep", "m*")] {
        let root = folder(name);
        let toml = format!("[workspace]\nresolver = \"3\"\nmembers = [\"{members}\"]\n");
        fs::write(root.join("Cargo.toml"), &toml).unwrap();
        package(&root.join("mine"), "mine");
        lock(&root);
        init(&root, " mine").ends(0).says(&["added to mine", "next cd mine"]);
        assert_eq!(fs::read_to_string(root.join("Cargo.toml")).unwrap(), toml);
        let said = fs::read_to_string(root.join("mine/Cargo.toml")).unwrap();
        assert!(!said.contains("[workspace]"), "{said}");
        let packages = read(&root);
        assert!(packages.contains("\"mine-kernels\""), "{packages}");
        if members == "*" {
            let said = cargo(&root, "run --quiet -p mine --example square -- cpu 5000");
            assert!(said.contains("5000 answers, all right"), "{said}");
        }
    }
}

#[test]
fn what_is_there_is_not_written_over() {
    let parent = Outside::new("init-there");
    let package = parent.0.join("mine");
    project::package(&package, "mine");
    fs::write(package.join("build.rs"), "fn main() {}\n").unwrap();
    fs::create_dir(package.join("examples")).unwrap();
    fs::write(package.join("examples/square.rs"), "fn main() {}\n").unwrap();
    let toml = package.join("Cargo.toml");
    let text = fs::read_to_string(&toml).unwrap();
    let more = "[features] # mine\ngpu = []\n\n[dependencies] # too\n\n[profile.dev]\ndebug = 1\n";
    fs::write(&toml, text.clone() + more).unwrap();
    init(&package, "").ends(0).says(&[
        "left as it was, and to be seen to",
        "build.rs the build script is",
        "ring_builder::Builder::new(\"kernels\")",
        "feature gpu does not name \"dep:ring-builder\"",
    ]);
    for file in ["build.rs", "examples/square.rs"] {
        assert_eq!(fs::read_to_string(package.join(file)).unwrap(), "fn main() {}\n", "{file}");
    }
    let said = fs::read_to_string(&toml).unwrap();
    assert!(said.starts_with(&text) && said.contains("gpu = []\n"), "{said}");
    assert!(
        said.contains("[dependencies] # too\nmine-kernels = { path = \"kernels\" }\n"),
        "{said}"
    );
    assert!(said.contains("\n\n[profile.dev]\ndebug = 1\n"), "{said}");
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let outside = Outside::new("init-refused");
    let root = outside.0.join("x");
    fs::create_dir(&root).unwrap();
    let refused = |folder: &Path, options: &str, parts: &[&str]| {
        let before = files(folder);
        init(folder, options).ends(1).complains(parts);
        assert_eq!(files(folder), before, "{parts:?}");
    };
    refused(&root, "", &[".: there is no Cargo.toml", "`ring new FOLDER`"]);
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\n";
    fs::write(root.join("Cargo.toml"), workspace).unwrap();
    for name in ["a", "b"] {
        package(&root.join(name), name);
    }
    refused(&root, "", &["is a workspace without a package", "a in a, b in b"]);

    let a = root.join("a");
    refused(&a, " --ring none/of/it", &["none/of/it is no clone of ring", "--ring"]);
    fs::create_dir(a.join("kernels")).unwrap();
    refused(&root, " a", &["a/kernels exists", "Move it"]);
    package(&a.join("kernels"), "others");
    refused(&a, "", &["kernels exists, and is not the crate of this package's kernels"]);

    // Another package of the workspace has the name that the crate of the kernels would get.
    let b = root.join("b/Cargo.toml");
    let text = fs::read_to_string(&b).unwrap();
    package(&root.join("c"), "b-kernels");
    fs::write(root.join("Cargo.toml"), workspace.replace("\"b\"", "\"b\", \"c\"")).unwrap();
    refused(&root.join("b"), "", &["cargo does not take ./Cargo.toml; nothing was changed"]);
    fs::write(&b, text + "[broken\n").unwrap();
    refused(&root.join("b"), "", &["cargo does not take", "mend that first"]);
}
