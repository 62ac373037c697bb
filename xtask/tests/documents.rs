//! Fails when a document names a file, a link or an identifier that does not exist.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use xtask::Workspace;

/// Folders whose sources the architecture speaks of.
const SOURCES: [&str; 6] =
    ["crates", "examples", "fuzz/src", "fuzz/fuzz_targets", "tests", "xtask"];

#[test]
fn links_of_documents_lead_somewhere() {
    let root = Workspace::locate().unwrap().root().to_owned();
    let mut documents = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        documents.push(entry.unwrap().path());
    }
    documents.push(root.join("docs/results/README.md"));
    let (mut links, mut missing) = (0, Vec::new());
    for document in documents.iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(document).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap();
            if link.starts_with("http") || file.is_empty() {
                continue;
            }
            links += 1;
            if !document.with_file_name(file).exists() {
                missing.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(links > 30, "only {links} links were found");
    assert!(missing.is_empty(), "links to nothing: {missing:#?}");
}

#[test]
fn what_the_architecture_names_exists() {
    let root = Workspace::locate().unwrap().root().to_owned();
    let mut words = HashSet::new();
    SOURCES.iter().for_each(|folder| read(&root.join(folder), &mut words));
    let text = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let (mut paths, mut names, mut missing) = (0, 0, Vec::new());
    let mut folder = String::new(); // that a table's row is about
    for line in text.lines().filter(|line| !line.starts_with("```")) {
        for span in line.split('`').skip(1).step_by(2) {
            if span.contains('/') || span.ends_with(".rs") {
                paths += 1;
                let places = ["", "crates/", &folder].map(|place| root.join(place).join(span));
                if !places.iter().any(|path| path.exists()) {
                    missing.push(span.to_owned());
                }
                if span.contains('/') && !span.ends_with(".rs") {
                    folder = format!("crates/{span}/");
                }
            } else if span.chars().all(|c| c.is_alphanumeric() || "_:".contains(c)) {
                names += 1;
                if !span.split("::").all(|name| words.contains(name)) {
                    missing.push(span.to_owned());
                }
            }
        }
    }
    assert!(paths > 100 && names > 50, "only {paths} paths and {names} names were found");
    assert!(missing.is_empty(), "not in the repository: {missing:#?}");
}

/// Adds all words of the sources in a folder, and the names of its files.
fn read(folder: &Path, words: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if path.file_name().is_some_and(|name| name != "target") {
                read(&path, words);
            }
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let split = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.extend(split.filter(|word| !word.is_empty()).map(str::to_owned));
        }
    }
}
