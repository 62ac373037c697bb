//! The files of a new project. They lie in `template/`, whole but for what is in `{{...}}`.

use super::{Name, Source};
use ring_builder::pins::NIGHTLY;

/// Where each file comes to lie, and its text.
const FILES: [(&str, &str); 7] = [
    ("Cargo.toml", include_str!("../../template/host.toml")),
    ("build.rs", include_str!("../../template/build.rs")),
    ("src/main.rs", include_str!("../../template/main.rs")),
    ("kernels/Cargo.toml", include_str!("../../template/kernels.toml")),
    ("kernels/src/lib.rs", include_str!("../../template/lib.rs")),
    ("README.md", include_str!("../../template/README.md")),
    (".gitignore", include_str!("../../template/gitignore")),
];

/// Crates of ring that the project uses.
const CRATES: [&str; 3] = ["ring-builder", "ring-device", "ring-host"];

/// The files of a project of that name, with their paths in it.
pub fn files(name: &Name, source: &Source) -> Vec<(&'static str, String)> {
    let dependencies = CRATES.map(|name| format!("{name} = {}", source.of(name))).join("\n");
    let fill = |text: &str| {
        // What the user wrote comes last: in it nothing is filled in.
        text.replace("\r\n", "\n")
            .replace("{{name}}", name.as_str())
            .replace("{{nightly}}", NIGHTLY)
            .replace("{{dependencies}}", &dependencies)
    };
    FILES.map(|(path, text)| (path, fill(text))).into()
}
