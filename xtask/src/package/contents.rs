//! What a package says of itself, what it holds, and how large it is.

use std::path::Path;

use anyhow::ensure;
use serde_json::Value;

use super::Published;
use crate::{Result, shell};

/// The most bytes of a package's file.
const LARGEST: u64 = 1 << 20;

/// Files that each has: the last is cargo's copy of the Cargo.toml as it was written.
const EACH: [&str; 5] =
    ["README.md", "LICENSE-APACHE", "LICENSE-MIT", "Cargo.toml", "Cargo.toml.orig"];

/// Folders whose files are for those who work on the package, not for those who use it.
const OTHERS: [&str; 4] = ["tests", "benches", "examples", "docs"];

/// Whether a package can be published, and its file holds what it must and no more.
///
/// # Errors
/// Says what it lacks, or holds besides.
pub fn check(package: &Published, file: &Path) -> Result {
    let Published { name, .. } = package;
    let lacks = lacks(&package.said);
    ensure!(
        lacks.is_empty(),
        "{name} lacks what a registry or its reader asks for: {}\n  try: add it to {}",
        lacks.join(", "),
        package.folder.join("Cargo.toml").display()
    );
    let mut tar = shell::command("tar");
    let listed = shell::output(tar.arg("--list").arg("--file").arg(file))?;
    let prefix = format!("{name}-{}/", package.version);
    let held: Vec<&str> = listed.lines().filter_map(|path| path.strip_prefix(&prefix)).collect();
    let wrong = wrong(&held);
    ensure!(wrong.is_empty(), "{} {}", file.display(), wrong.join(", "));
    let size = fs_err::metadata(file)?.len();
    ensure!(
        size <= LARGEST,
        "{} has {size} bytes, {LARGEST} at most\n  try: `include` in its Cargo.toml",
        file.display()
    );
    println!("package: {name:<28}{:>4} files {:>6.1} KiB", held.len(), kib(size));
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "of bytes below a megabyte")]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

/// What a package does not say of itself.
fn lacks(said: &Value) -> Vec<String> {
    let mut lacks: Vec<String> = Vec::new();
    for key in ["description", "license", "readme", "rust_version"] {
        if said[key].as_str().is_none_or(str::is_empty) {
            lacks.push(key.to_owned());
        }
    }
    // A registry takes five of each at most, and keywords of 20 letters.
    for key in ["keywords", "categories"] {
        let words = said[key].as_array().map(Vec::as_slice).unwrap_or_default();
        if words.is_empty() || words.len() > 5 {
            lacks.push(format!("one to five {key}"));
        }
    }
    let keywords = said["keywords"].as_array().into_iter().flatten().filter_map(Value::as_str);
    lacks.extend(
        keywords.filter(|word| word.len() > 20).map(|word| format!("'{word}' in 20 letters")),
    );
    if said.pointer("/metadata/docs/rs").is_none() {
        lacks.push("[package.metadata.docs.rs]".to_owned());
    }
    // A dependency by path alone is none in a registry.
    for dependency in said["dependencies"].as_array().into_iter().flatten() {
        let is_shipped = dependency["kind"] != "dev";
        if is_shipped && dependency["path"].is_string() && dependency["req"] == "*" {
            lacks.push(format!("a version of {}", dependency["name"]));
        }
    }
    lacks
}

/// What is missing of the files of a package, and what it should not hold.
fn wrong(held: &[&str]) -> Vec<String> {
    let missing = EACH.iter().filter(|name| !held.contains(name));
    let missing = missing.map(|name| format!("lacks {name}"));
    let besides = held.iter().filter(|path| {
        let first = path.split('/').next().unwrap_or_default();
        OTHERS.contains(&first)
    });
    missing.chain(besides.map(|path| format!("holds {path}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::{lacks, wrong};
    use serde_json::json;

    #[test]
    fn what_a_package_does_not_say_is_named() {
        let whole = json!({
            "description": "d", "license": "MIT", "readme": "README.md", "rust_version": "1.95",
            "keywords": ["gpu"], "categories": ["concurrency"], "metadata": {"docs": {"rs": {}}},
            "dependencies": [
                {"name": "a", "path": "/a", "req": "^0.2.0", "kind": null},
                {"name": "b", "path": "/b", "req": "*", "kind": "dev"},
            ],
        });
        assert_eq!(lacks(&whole), [""; 0]);
        let without = |pointer: &str, value| {
            let mut said = whole.clone();
            *said.pointer_mut(pointer).unwrap() = value;
            lacks(&said).join(", ")
        };
        assert_eq!(without("/description", json!("")), "description");
        assert_eq!(without("/readme", json!(null)), "readme");
        assert_eq!(without("/keywords", json!([])), "one to five keywords");
        assert_eq!(
            without("/categories", json!(["1", "2", "3", "4", "5", "6"])),
            "one to five categories"
        );
        assert_eq!(
            without("/keywords/0", json!("a-word-of-more-letters")),
            "'a-word-of-more-letters' in 20 letters"
        );
        assert_eq!(without("/metadata", json!(null)), "[package.metadata.docs.rs]");
        assert_eq!(without("/dependencies/0/req", json!("*")), "a version of \"a\"");
    }

    #[test]
    fn what_a_package_lacks_or_holds_besides_is_named() {
        let mut held =
            vec!["README.md", "LICENSE-APACHE", "LICENSE-MIT", "Cargo.toml", "Cargo.toml.orig"];
        held.extend(["src/lib.rs", "src/tests.rs", "ptx/kernels.manifest"]);
        assert_eq!(wrong(&held), [""; 0]);
        assert_eq!(wrong(&held[1..]), ["lacks README.md"]);
        held.push("tests/a.rs");
        assert_eq!(wrong(&held), ["holds tests/a.rs"]);
    }
}
