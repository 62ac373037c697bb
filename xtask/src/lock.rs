//! Which crates of the registry reach the device code, from Cargo.lock.

use std::collections::BTreeMap;

use ring_builder::text;

/// One package of Cargo.lock.
#[derive(Debug, Default)]
struct Package<'a> {
    version: &'a str,
    checksum: &'a str,
    dependencies: Vec<&'a str>,
}

/// `name version checksum` of the packages in `lock` reachable from `roots`, which are names.
///
/// Packages without a checksum (this workspace's own) are passed over. Cargo.lock does not tell
/// optional dependencies from used ones, so the answer may hold a crate too many, never one too few.
#[must_use]
pub fn closure(lock: &str, roots: &[&str]) -> Vec<String> {
    let packages = parse(lock);
    let mut todo: Vec<&str> = roots.to_vec();
    let mut found = BTreeMap::new();
    while let Some(name) = todo.pop() {
        for package in packages.get(name).into_iter().flatten() {
            let line = format!("{name} {} {}", package.version, package.checksum);
            if !package.checksum.is_empty() && found.insert(line, ()).is_none() {
                todo.extend(&package.dependencies);
            }
        }
    }
    found.into_keys().collect()
}

fn parse(lock: &str) -> BTreeMap<&str, Vec<Package<'_>>> {
    let mut packages: BTreeMap<&str, Vec<Package<'_>>> = BTreeMap::new();
    for block in lock.split("[[package]]").skip(1) {
        let (mut name, mut package) = ("", Package::default());
        for line in block.lines().map(str::trim) {
            let value = text::quoted(line).unwrap_or_default();
            match text::key(line) {
                "name" => name = value,
                "version" => package.version = value,
                "checksum" => package.checksum = value,
                // Inside `dependencies = [...]` a line is `"name"` or `"name version"`.
                _ if line.starts_with('"') => {
                    package.dependencies.extend(value.split_whitespace().next());
                }
                _ => {}
            }
        }
        packages.entry(name).or_default().push(package);
    }
    packages
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
        assert_eq!(closure(LOCK, &["a"]), ["a 1.0.0 aa", "b 2.0.0 bb"]);
        assert_eq!(closure(LOCK, &["unknown"]), Vec::<String>::new());
    }
}
