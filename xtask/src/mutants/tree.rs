//! A copy of the clone, in which mutants are made: a run leaves the clone alone, and a later run finds
//! what the last one has compiled.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result, Workspace, shell};

/// Brings the copy up to date with the clone, files that git does not know included.
///
/// # Errors
/// When git does not list the files, or one of them cannot be copied.
pub fn copy(ws: &Workspace, to: &Path) -> Result {
    let mut git = shell::command("git");
    git.current_dir(ws.root()).args(["ls-files", "-co", "--exclude-standard"]);
    let listed = shell::output(&mut git)?;
    let files: BTreeSet<PathBuf> =
        listed.lines().map(PathBuf::from).filter(|file| ws.root().join(file).is_file()).collect();
    let mut old = Vec::new();
    walk(to, Path::new(""), &mut old)?;
    for file in old.iter().filter(|file| !files.contains(*file)) {
        let gone = to.join(file);
        fs::remove_file(&gone).map_err(|e| Error::io(&gone, &e))?;
    }
    for file in &files {
        let (from, to) = (ws.root().join(file), to.join(file));
        let new = fs::read(&from).map_err(|e| Error::io(&from, &e))?;
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue; // its time stays, and nothing is compiled for it
        }
        let folder = to.parent().unwrap_or(&to);
        fs::create_dir_all(folder).map_err(|e| Error::io(folder, &e))?;
        fs::write(&to, new).map_err(|e| Error::io(&to, &e))?;
    }
    Ok(())
}

/// The files below `root`, as paths from there.
fn walk(root: &Path, at: &Path, found: &mut Vec<PathBuf>) -> Result {
    let Ok(entries) = fs::read_dir(root.join(at)) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(|e| Error::io(root, &e))?;
        let path = at.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(root, &path, found)?,
            _ => found.push(path),
        }
    }
    Ok(())
}
