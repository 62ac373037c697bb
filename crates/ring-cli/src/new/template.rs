//! The files of a project. They lie in `template/`, whole but for what is in `{{...}}`.

use super::{Name, Source};
use ring_builder::pins::NIGHTLY;

/// A file's path in the project, and its text.
pub type File = (&'static str, String);

const CARGO: &str = include_str!("../../template/host.toml");
const BUILD: &str = include_str!("../../template/build.rs");
const MAIN: &str = include_str!("../../template/main.rs");
const KERNELS_CARGO: &str = include_str!("../../template/kernels.toml");
const KERNELS: &str = include_str!("../../template/lib.rs");
const README: &str = include_str!("../../template/README.md");
const IGNORED: &str = include_str!("../../template/gitignore");

/// What makes a package a workspace of its own, with its kernels in it.
pub const WORKSPACE: &str = "\n[workspace]\nmembers = [\"kernels\"]\n";

/// The files of a project of that name, in a folder of the working folder. It is a workspace of its own if
/// it stands `alone`; else it is a member of one that lies above it.
pub fn files(name: &Name, source: &Source, alone: bool) -> Vec<File> {
    let mut files = vec![
        ("Cargo.toml", fill(CARGO, name, source, 1)),
        ("build.rs", fill(BUILD, name, source, 1)),
        ("src/main.rs", fill(MAIN, name, source, 1)),
        ("README.md", fill(README, name, source, 1)),
        (".gitignore", fill(IGNORED, name, source, 1)),
    ];
    if alone {
        files[0].1.push_str(WORKSPACE);
    }
    files.extend(kernels(name, source, 1));
    files
}

/// The crate of the kernels of a package that lies `below` the working folder by so many folders.
pub fn kernels(name: &Name, source: &Source, below: usize) -> [File; 2] {
    [
        ("kernels/Cargo.toml", fill(KERNELS_CARGO, name, source, below + 1)),
        ("kernels/src/lib.rs", fill(KERNELS, name, source, below + 1)),
    ]
}

/// What a package that is there already gets beside the crate of its kernels: a build script, and the program
/// that asks them.
pub fn beside(name: &Name, source: &Source) -> [File; 2] {
    [
        ("build.rs", fill(BUILD, name, source, 0)),
        ("examples/square.rs", fill(MAIN, name, source, 0)),
    ]
}

/// What stands in a Cargo.toml `below` the working folder by so many folders: tables, keys and values that make
/// a package one that launches its kernels.
pub fn dependencies(name: &Name, source: &Source, below: usize) -> [[String; 3]; 4] {
    let own = |text: &str| text.to_owned();
    [
        [own("features"), own("gpu"), own("[\"dep:ring-builder\"]")],
        [own("dependencies"), name.kernels(), own("{ path = \"kernels\" }")],
        [own("dependencies"), own("ring-host"), source.of("ring-host", below, "")],
        [
            own("build-dependencies"),
            own("ring-builder"),
            source.of("ring-builder", below, ", optional = true"),
        ],
    ]
}

/// Fills in what is in `{{...}}`, once: in what the user wrote nothing is.
fn fill(text: &str, name: &Name, source: &Source, below: usize) -> String {
    let text = text.replace("\r\n", "\n");
    let mut parts = text.split("{{");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (key, rest) = part.split_once("}}").unwrap_or((part, ""));
        filled += &match key {
            "name" => name.as_str().to_owned(),
            "kernels" => name.kernels(),
            "crate" => name.kernels().replace('-', "_"),
            "nightly" => NIGHTLY.to_owned(),
            "ring-builder" => source.of(key, below, ", optional = true"),
            key => source.of(key, below, ""),
        };
        filled += rest;
    }
    filled
}
