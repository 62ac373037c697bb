//! `cargo xtask book`: the documents as a site, by mdBook.
//!
//! The documents are written to be read in the repository. Here they are laid out as mdBook wants them, in the target folder: the
//! README and its neighbours beside what is in `docs`, with links between them as they are then.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure};
use fs_err as fs;

use crate::{Result, Workspace, pins, shell, workspace};

/// The chapters in their order: names, and files from the root of the repository on.
const CHAPTERS: [(&str, &str); 15] = [
    ("ring", "README.md"),
    ("Architecture", "docs/architecture.md"),
    ("Building kernels", "docs/building-kernels.md"),
    ("Kernels that talk", "docs/kernels-that-talk.md"),
    ("From a model to a resident kernel", "docs/inference.md"),
    ("Services", "docs/services.md"),
    ("Platforms", "docs/platforms.md"),
    ("Performance", "docs/performance.md"),
    ("Reliability", "docs/reliability.md"),
    ("Operations", "docs/operations.md"),
    ("Measured results", "docs/results/README.md"),
    ("Changes", "CHANGELOG.md"),
    ("Contributing", "CONTRIBUTING.md"),
    ("Security", "SECURITY.md"),
    ("The kernels' registers", "xtask/ptxas.txt"),
];

/// The folder of the repository whose files lie at the top of the site.
const DOCS: &str = "docs";

/// Builds the site into the target folder, and says where.
///
/// # Errors
/// When mdBook cannot be installed, a document is in no chapter, a link leads nowhere, or mdBook fails.
pub fn run(ws: &Workspace) -> Result {
    let book = ws.target("book");
    workspace::remove(&book)?;
    let pages = book.join("src");
    lay_out(ws, &pages)?;
    workspace::write(&book.join("book.toml"), CONFIGURATION)?;
    let mdbook = pins::MDBOOK.program(ws)?;
    shell::show_and_run(shell::command(mdbook).arg("build").arg(&book))?;
    println!("book: {}", book.join("site/index.html").display());
    Ok(())
}

const CONFIGURATION: &str = "\
[book]
title = \"ring\"
description = \"Kernels that stay on the GPU and answer messages\"
language = \"en\"

[build]
build-dir = \"site\"
create-missing = false

[output.html]
no-section-label = true
";

/// Copies all documents, with their links as they are there, and writes the summary.
fn lay_out(ws: &Workspace, pages: &Path) -> Result {
    let root = ws.root();
    let docs = workspace::files(&root.join(DOCS))?;
    for file in &docs {
        let chapter = format!("{DOCS}/{}", file.display());
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        let is_result = file.starts_with("results");
        ensure!(
            !is_page || is_result || CHAPTERS.iter().any(|(_, file)| *file == chapter),
            "{chapter} is in no chapter\n  try: name it in xtask/src/book.rs"
        );
        let to = pages.join(file);
        fs::create_dir_all(to.parent().unwrap_or(pages))?;
        fs::copy(root.join(DOCS).join(file), to)?;
    }
    let mut summary = String::from("# Summary\n\n");
    for (name, file) in CHAPTERS {
        let text = workspace::read(&root.join(file))?;
        let text =
            if file.ends_with(".md") { text } else { format!("# {name}\n\n```text\n{text}```\n") };
        let page = page(file);
        let folder = Path::new(file).parent().unwrap_or(Path::new(""));
        workspace::write(&pages.join(&page), &linked(&text, folder, &page))?;
        writeln!(summary, "- [{name}]({})", page.display())?;
    }
    workspace::write(&pages.join("SUMMARY.md"), &summary)?;
    for (_, file) in CHAPTERS {
        links_lead_somewhere(pages, &page(file))?;
    }
    Ok(())
}

/// Where a file of the repository lies in the site, if it is no chapter.
fn place(file: &str) -> &Path {
    Path::new(file.strip_prefix("docs/").unwrap_or(file))
}

/// The page of a chapter.
fn page(file: &str) -> PathBuf {
    place(file).with_extension("md")
}

/// A document's text with its links as they are in the site; what is not in the site is named without a link.
fn linked(text: &str, folder: &Path, page: &Path) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("](") {
        let (before, link) = rest.split_at(at);
        let Some(end) = link.find(')') else { break };
        let target = &link[2..end];
        let (file, anchor) = target.split_at(target.find('#').unwrap_or(target.len()));
        let is_relative = !file.is_empty() && !file.contains("://");
        done += before;
        if is_relative {
            let file = normal(&folder.join(file));
            match in_site(&file) {
                Some(place) => {
                    let up = page.parent().map_or(0, |parent| parent.components().count());
                    let _ = write!(done, "]({}{}{anchor})", "../".repeat(up), place.display());
                }
                None => unlink(&mut done),
            }
        } else {
            done += &link[..=end];
        }
        rest = &link[end + 1..];
    }
    done + rest
}

/// Takes the bracket that a link's words began with, and ends them.
fn unlink(done: &mut String) {
    if let Some(at) = done.rfind('[') {
        done.remove(at);
    }
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(normal.pop()),
            std::path::Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Where a file of the repository lies in the site, if it does.
fn in_site(file: &Path) -> Option<PathBuf> {
    let name = file.to_str()?;
    let in_docs = file.starts_with(DOCS) && file != Path::new(DOCS);
    let is_chapter = CHAPTERS.iter().any(|(_, chapter)| *chapter == name);
    let chapter = is_chapter.then(|| page(name));
    chapter.or_else(|| in_docs.then(|| place(name).to_owned()))
}

fn links_lead_somewhere(pages: &Path, page: &Path) -> Result {
    let text = workspace::read(&pages.join(page))?;
    let folder = page.parent().unwrap_or(Path::new(""));
    for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
        let is_relative = !link.is_empty() && !link.contains("://") && !link.contains(' ');
        if is_relative && !pages.join(normal(&folder.join(link))).exists() {
            bail!("{}: the link to {link} leads nowhere in the site", page.display());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::linked;
    use std::path::Path;

    #[test]
    fn links_are_those_of_the_site() {
        let readme = |text: &str| linked(text, Path::new(""), Path::new("README.md"));
        assert_eq!(readme("[a](docs/platforms.md#b)."), "[a](platforms.md#b).");
        assert_eq!(readme("![a](docs/pictures/a.svg)"), "![a](pictures/a.svg)");
        assert_eq!(readme("see [`crates/a`](crates/a) and [b](#c)"), "see `crates/a` and [b](#c)");
        assert_eq!(readme("[a](https://a/b) [c"), "[a](https://a/b) [c");
        let result = linked(
            "[a](../platforms.md) [b](x.txt)",
            Path::new("docs/results"),
            Path::new("results/README.md"),
        );
        assert_eq!(result, "[a](../platforms.md) [b](../results/x.txt)");
    }
}
