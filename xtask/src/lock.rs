//! Which crates of the registry reach the device code, from Cargo.lock.

use std::collections::BTreeSet;

use anyhow::Context;
use toml_edit::{DocumentMut, Table};

use crate::Result;

/// `name version checksum` of the packages in `lock` reachable from `roots`, which are names.
///
/// Packages without a checksum (this workspace's own) are passed over. Cargo.lock does not tell
/// optional dependencies from used ones, so the answer may hold a crate too many, never one too few.
///
/// # Errors
/// When it is no TOML.
pub fn closure(lock: &str, roots: &[&str]) -> Result<Vec<String>> {
    let lock: DocumentMut = lock.parse().context("Cargo.lock")?;
    let text = |package: &Table, key: &str| -> String {
        package.get(key).and_then(|value| value.as_str()).unwrap_or_default().to_owned()
    };
    let all = lock.get("package").and_then(|packages| packages.as_array_of_tables());
    let packages: Vec<&Table> = all.into_iter().flatten().collect();
    let mut todo: Vec<String> = roots.iter().map(|name| (*name).to_owned()).collect();
    let mut found = BTreeSet::new();
    while let Some(name) = todo.pop() {
        for package in packages.iter().filter(|package| text(package, "name") == name) {
            let checksum = text(package, "checksum");
            let line = format!("{name} {} {checksum}", text(package, "version"));
            if !checksum.is_empty() && found.insert(line) {
                // Each is `name` or `name version`.
                let names = package.get("dependencies").and_then(|names| names.as_array());
                let names = names.into_iter().flatten().filter_map(|name| name.as_str());
                todo.extend(names.filter_map(|name| name.split(' ').next()).map(str::to_owned));
            }
        }
    }
    Ok(found.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::closure;

    const LOCK: &str = r#"
[[package]]
name = "a"
version = "1.0.0"
checksum = "aa"
dependencies = [
 "b",
]

[[package]]
name = "b"
version = "2.0.0"
checksum = "bb"

[[package]]
name = "c"
version = "3.0.0"
checksum = "cc"
"#;

    #[test]
    fn follows_dependencies_and_nothing_else() {
        assert_eq!(closure(LOCK, &["a"]).unwrap(), ["a 1.0.0 aa", "b 2.0.0 bb"]);
        assert_eq!(closure(LOCK, &["unknown"]).unwrap(), Vec::<String>::new());
    }
}
