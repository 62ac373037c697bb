//! Fails when files of a crate use each other in a circle. A re-export is no use: whoever names a
//! re-exported item uses the file that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use xtask::Workspace;

/// A module's path, from the crate's root.
type Module = Vec<String>;

#[derive(Default)]
struct Source {
    /// Paths that its code names.
    uses: Vec<Module>,
    /// Paths that it re-exports.
    exports: Vec<Module>,
}

#[test]
fn files_of_the_host_point_one_way() {
    point_one_way("ring-host", 50);
}

#[test]
fn files_of_the_device_point_one_way() {
    point_one_way("ring-device", 25);
}

#[test]
fn shared_files_point_one_way() {
    point_one_way("ring-shared", 15);
}

/// Checks a crate that has so many modules at least.
fn point_one_way(name: &str, least: usize) {
    let mut sources = BTreeMap::new();
    let folder = Workspace::locate().unwrap().root().join(format!("crates/{name}/src"));
    read(&folder, &[], &mut sources);
    assert!(sources.len() >= least, "only {} modules were found", sources.len());
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, source) in &sources {
        let used = source.uses.iter().filter_map(|path| resolve(&sources, module, path));
        edges.insert(module.clone(), used.filter(|used| used != module).collect());
    }
    // A file that uses none that is left is in no circle.
    loop {
        let before = edges.len();
        let left: BTreeSet<_> = edges.keys().cloned().collect();
        edges.retain(|_, used| !used.is_disjoint(&left));
        if edges.len() == before {
            break;
        }
    }
    assert!(edges.is_empty(), "in circles, or using those: {edges:#?}");
}

/// Reads the files of a folder, but for tests.
fn read(folder: &Path, module: &[String], sources: &mut BTreeMap<Module, Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["fake", "models", "order", "rig", "tests"].contains(&&*name) {
            continue;
        }
        let mut module = module.to_vec();
        if !["lib", "mod"].contains(&&*name) {
            module.push(name);
        }
        match path.is_dir() {
            true => read(&path, &module, sources),
            false => drop(sources.insert(module, parse(&fs::read_to_string(path).unwrap()))),
        }
    }
}

fn parse(text: &str) -> Source {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let mut source = Source::default();
    for (at, _) in code.match_indices("use ") {
        let line = &code[code[..at].rfind('\n').map_or(0, |n| n + 1)..at];
        if line.trim().is_empty() || line.trim_start().starts_with("pub") {
            let tree: String =
                code[at + 4..].split(';').next().unwrap().split_whitespace().collect();
            let found = if line.trim().is_empty() { &mut source.uses } else { &mut source.exports };
            expand(&tree, &[], found);
        }
    }
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let path = code[at..].split(|c: char| !(c.is_alphanumeric() || "_:".contains(c)));
            expand(path.into_iter().next().unwrap(), &[], &mut source.uses);
        }
    }
    source
}

/// The paths of a use tree without its spaces.
fn expand(tree: &str, before: &[String], found: &mut Vec<Module>) {
    let mut path = before.to_vec();
    let Some((head, group)) = tree.split_once('{') else {
        let names =
            tree.split("::").filter(|name| !name.is_empty() && *name != "self" || path.is_empty());
        path.extend(names.map(str::to_owned).collect::<Vec<_>>());
        return found.push(path);
    };
    path.extend(head.split("::").filter(|name| !name.is_empty()).map(str::to_owned));
    let (mut depth, mut begun) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                expand(&group[begun..at], &path, found);
                begun = at + 1;
            }
            _ => {}
        }
    }
}

/// The module that has what `path` names in `from`, if it is of this crate.
fn resolve(sources: &BTreeMap<Module, Source>, from: &Module, path: &[String]) -> Option<Module> {
    let (mut module, mut rest) = (from.clone(), path);
    match &*rest.first()?.clone() {
        "crate" => (module, rest) = (Module::new(), &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {}
        name => {
            module.push(name.to_owned());
            let is_child = sources.contains_key(&module);
            module.pop();
            if !is_child {
                return None;
            }
        }
    }
    while rest.first().is_some_and(|name| name == "super") {
        (_, rest) = (module.pop(), &rest[1..]);
    }
    while let Some(name) = rest.first() {
        module.push(name.clone());
        if !sources.contains_key(&module) {
            module.pop();
            let exports = &sources[&module].exports;
            let export = exports.iter().find(|export| export.last() == Some(name));
            return export.and_then(|path| resolve(sources, &module, path)).or(Some(module));
        }
        rest = &rest[1..];
    }
    Some(module)
}
