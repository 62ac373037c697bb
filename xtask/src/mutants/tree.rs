//! A copy of the clone, in which mutants are made: a run leaves the clone alone, and a later run finds
//! what the last one has compiled.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::{Result, Workspace, shell, workspace};

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
    for file in workspace::files(to)?.iter().filter(|file| !files.contains(*file)) {
        fs::remove_file(to.join(file))?;
    }
    for file in &files {
        let (from, to) = (ws.root().join(file), to.join(file));
        let new = fs::read(from)?;
        if fs::read(&to).is_ok_and(|old| old == new) {
            continue; // its time stays, and nothing is compiled for it
        }
        fs::create_dir_all(to.parent().unwrap_or(&to))?;
        fs::write(to, new)?;
    }
    Ok(())
}
