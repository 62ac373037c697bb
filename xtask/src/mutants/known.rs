//! Mutants that may live, each with the reason: they do the same, or the same only slower.
//!
//! They are named by file, change and source line, so that other lines of the file may come and go.

use std::path::Path;

use anyhow::bail;

use crate::{Result, Workspace, workspace};

/// Where they are listed.
pub const LIST: &str = "xtask/mutants.txt";

/// One that may live.
#[derive(Debug, PartialEq, Eq)]
pub struct Known {
    file: String,
    /// What is changed, as cargo-mutants says it.
    change: String,
    /// The line that is changed, less the space around it.
    line: String,
    /// Why it may live.
    pub why: String,
}

/// Reads the list: blocks of file, one or more changes, source line and reason, with empty lines between;
/// lines that begin with `#` are for readers.
///
/// # Errors
/// When it cannot be read, or a block is not complete.
pub fn read(ws: &Workspace) -> Result<Vec<Known>> {
    parse(&workspace::read(&ws.root().join(LIST))?)
}

fn parse(text: &str) -> Result<Vec<Known>> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let blocks = lines.split(|line| line.trim().is_empty()).filter(|block| !block.is_empty());
    let mut all = Vec::new();
    for block in blocks {
        let is_change = |line: &&&str| {
            ["replace ", "delete "].iter().any(|begin| line.trim().starts_with(begin))
        };
        let [file, rest @ ..] = block else { continue };
        let (changes, rest) = rest.split_at(rest.iter().take_while(is_change).count());
        let [line, why @ ..] = rest else {
            bail!("{LIST}: `{file}` is not complete");
        };
        if changes.is_empty() || why.is_empty() {
            let lacks = if why.is_empty() { "reason" } else { "change" };
            bail!("{LIST}: {file}, `{line}`: no {lacks} is given");
        }
        let why = why.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        all.extend(changes.iter().map(|change| {
            let [file, change, line] = [file, change, line].map(|text| text.trim().to_owned());
            Known { file, change, line, why: why.clone() }
        }));
    }
    Ok(all)
}

impl Known {
    /// Whether it is the mutant of that name (`FILE:LINE:COLUMN: CHANGE`) in the clone.
    #[must_use]
    pub fn is(&self, root: &Path, mutant: &str) -> bool {
        let Some((file, number, change)) = split(mutant) else { return false };
        if file != self.file || change != self.change {
            return false;
        }
        let Ok(text) = workspace::read(&root.join(file)) else { return false };
        text.lines().nth(number.wrapping_sub(1)).is_some_and(|line| line.trim() == self.line)
    }
}

/// File, line and change of a mutant's name.
fn split(mutant: &str) -> Option<(&str, usize, &str)> {
    let (at, change) = mutant.split_once(": ")?;
    let mut at = at.rsplitn(3, ':');
    let (_column, line, file) = (at.next()?, at.next()?, at.next()?);
    Some((file, line.parse().ok()?, change))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_read_and_their_lines_found() {
        let text = "# words\n\na/b.rs\nreplace + with - in f\nlet a = b + c;\nwhy\n  so\n\n\n";
        let known = parse(text).unwrap();
        assert_eq!(known.len(), 1);
        assert_eq!(known[0].why, "why so");
        for bad in ["a\n", "a\nreplace b\n", "a\nreplace b\nc\n", "a\nb\nc\n"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let known = parse("a.rs\nreplace + with -\ndelete !\n!b + c\nwhy\n").unwrap();
        let changes: Vec<_> = known.iter().map(|known| known.change.as_str()).collect();
        assert_eq!(changes, ["replace + with -", "delete !"]);
        assert!(known.iter().all(|known| known.line == "!b + c" && known.why == "why"));
        assert_eq!(
            split("a/b.rs:3:17: replace x: y with z"),
            Some(("a/b.rs", 3, "replace x: y with z"))
        );
        assert_eq!(split("nonsense"), None);
    }

    #[test]
    fn a_mutant_is_known_by_its_line_wherever_that_is() {
        let root = std::env::temp_dir().join(format!("ring-known-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("b.rs"), "x\n  let a = b + c;\n").unwrap();
        let known = &parse("b.rs\nreplace + with - in f\nlet a = b + c;\nwhy\n").unwrap()[0];
        assert!(known.is(&root, "b.rs:2:13: replace + with - in f"));
        assert!(!known.is(&root, "b.rs:1:13: replace + with - in f"), "another line");
        assert!(!known.is(&root, "b.rs:2:13: replace + with * in f"), "another change");
        assert!(!known.is(&root, "c.rs:2:13: replace + with - in f"), "another file");
        std::fs::remove_dir_all(&root).unwrap();
    }
}
