//! The targets and corpora in `fuzz/`.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure};
use fs_err as fs;

use crate::Result;

/// Names of all targets, sorted: each has a file.
pub fn targets(folder: &Path) -> Result<Vec<String>> {
    let sources = folder.join("fuzz_targets");
    let paths = fs::read_dir(&sources)?.flatten().map(|entry| entry.path());
    let mut names: Vec<String> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    ensure!(!names.is_empty(), "no target in {}", sources.display());
    Ok(names)
}

/// Copies a target's corpus into a folder of its own below `to`, which is emptied before.
pub fn copy(folder: &Path, target: &str, to: &Path) -> Result<PathBuf> {
    let (from, to) = (folder.join("corpus").join(target), empty(&to.join(target))?);
    let inputs = fs::read_dir(&from).map_err(|error| {
        anyhow!("{error}\n  try: a corpus for each target, of one small input at least")
    })?;
    for input in inputs.flatten() {
        fs::copy(input.path(), to.join(input.file_name()))?;
    }
    Ok(to)
}

/// The folder, with nothing in it.
pub fn empty(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    Ok(folder.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{copy, targets};
    use crate::Workspace;
    use std::fs;

    #[test]
    fn each_target_has_a_corpus_that_is_copied_afresh() {
        let folder = Workspace::locate().unwrap().root().join("fuzz");
        let to = std::env::temp_dir().join(format!("ring-fuzz-corpus-{}", std::process::id()));
        for target in targets(&folder).unwrap() {
            let count = || fs::read_dir(copy(&folder, &target, &to).unwrap()).unwrap().count();
            let first = count();
            assert!(first > 0, "{target} has no corpus");
            fs::write(to.join(&target).join("more"), "").unwrap();
            assert_eq!(count(), first);
        }
        assert!(copy(&folder, "none", &to).unwrap_err().to_string().contains("none"));
        fs::remove_dir_all(to).unwrap();
    }
}
