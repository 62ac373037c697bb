//! Writing a project: all of it, or nothing.

use crate::failure::Failure;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Writes files into a folder that is not there yet, or is empty. They are written beside it first, so
/// that nothing is left if it fails.
pub fn write(folder: &Path, files: &[(&str, String)]) -> Result<(), Failure> {
    let there = fs::symlink_metadata(folder).is_ok();
    if there && !is_empty(folder) {
        return Err(Failure::Exists(folder.to_owned()));
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let beside = folder.with_file_name(format!(".{name}.new-{}", std::process::id()));
    let written = fill(&beside, files).and_then(|()| {
        if there {
            fs::remove_dir(folder).map_err(failed(folder))?;
        }
        fs::rename(&beside, folder).map_err(failed(folder))
    });
    if written.is_err() {
        let _ = fs::remove_dir_all(&beside);
    }
    written.map_err(|(path, source)| {
        // The user knows the folder, not where it is written first.
        let path = path.strip_prefix(&beside).map_or(path.clone(), |file| folder.join(file));
        Failure::File { path, source }
    })
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> (PathBuf, io::Error) {
    let path = path.to_owned();
    |source| (path, source)
}

fn fill(root: &Path, files: &[(&str, String)]) -> Result<(), (PathBuf, io::Error)> {
    fs::create_dir(root).map_err(failed(root))?;
    for (file, text) in files {
        let path = root.join(file);
        let folder = path.parent().unwrap_or(root);
        fs::create_dir_all(folder).map_err(failed(folder))?;
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}
