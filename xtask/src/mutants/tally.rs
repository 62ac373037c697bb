//! What became of the mutants of a part, over all stages and runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::{Result, workspace};

/// What can become of a mutant that is done with: the files in which cargo-mutants lists them.
pub const ENDS: [&str; 3] = ["caught.txt", "timeout.txt", "unviable.txt"];

/// Mutants by what became of them.
#[derive(Debug)]
pub struct Tally {
    folder: PathBuf,
    /// All that there are.
    pub listed: BTreeSet<String>,
    /// Those done with, in the order of [`ENDS`].
    pub done: [BTreeSet<String>; 3],
    /// Those that lived through the last stage that they came to.
    pub lived: BTreeSet<String>,
}

impl Tally {
    /// Of these mutants, what earlier runs have found, as kept in `folder`.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn open(folder: &Path, listed: BTreeSet<String>) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let kept = |name: &str| {
            let names = names(&folder.join(name));
            names.into_iter().filter(|name| listed.contains(name)).collect::<BTreeSet<_>>()
        };
        let (done, lived) = (ENDS.map(kept), kept("lived.txt"));
        Ok(Tally { folder: folder.to_path_buf(), done, lived, listed })
    }

    /// Those that are not done with.
    #[must_use]
    pub fn left(&self) -> BTreeSet<String> {
        let done = |name: &&String| self.done.iter().any(|done| done.contains(*name));
        self.listed.iter().filter(|name| !done(name)).cloned().collect()
    }

    /// Those that no stage has judged.
    #[must_use]
    pub fn unjudged(&self) -> BTreeSet<String> {
        self.left().difference(&self.lived).cloned().collect()
    }

    /// Takes in what a stage has found, and keeps it.
    ///
    /// # Errors
    /// When it cannot be kept.
    pub fn take(&mut self, out: &Path) -> Result {
        for (done, name) in self.done.iter_mut().zip(ENDS) {
            done.extend(names(&out.join(name)).intersection(&self.listed).cloned());
            keep(&self.folder.join(name), done)?;
        }
        self.lived.extend(names(&out.join("missed.txt")).intersection(&self.listed).cloned());
        let left = self.left();
        self.lived.retain(|name| left.contains(name));
        keep(&self.folder.join("lived.txt"), &self.lived)
    }
}

/// The lines of a file; none if there is no such file.
fn names(file: &Path) -> BTreeSet<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn keep(file: &Path, names: &BTreeSet<String>) -> Result {
    workspace::write(file, &names.iter().map(|name| format!("{name}\n")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stages_find_is_added_up() {
        let folder = std::env::temp_dir().join(format!("ring-tally-{}", std::process::id()));
        let out = folder.join("out");
        fs::create_dir_all(&out).unwrap();
        let listed: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let mut tally = Tally::open(&folder, listed.clone()).unwrap();
        assert_eq!(tally.unjudged(), listed);
        fs::write(out.join("caught.txt"), "a\ngone\n").unwrap();
        fs::write(out.join("missed.txt"), "b\nc\n").unwrap();
        tally.take(&out).unwrap();
        assert_eq!((tally.left().len(), tally.lived.len(), tally.unjudged().len()), (3, 2, 1));
        fs::write(out.join("caught.txt"), "").unwrap();
        fs::write(out.join("missed.txt"), "c\n").unwrap();
        fs::write(out.join("timeout.txt"), "b\n").unwrap();
        tally.take(&out).unwrap();
        let again = Tally::open(&folder, listed).unwrap();
        assert_eq!(again.done.clone().map(|done| done.len()), [1, 1, 0]);
        assert_eq!(again.lived.iter().collect::<Vec<_>>(), ["c"]);
        assert_eq!(again.unjudged().iter().collect::<Vec<_>>(), ["d"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
