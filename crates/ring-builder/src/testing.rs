//! Folders that tests write into.

use std::fs;
use std::path::{Path, PathBuf};

/// A folder that goes when the test ends.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    /// An empty folder for the test `name`.
    pub fn new(name: &str) -> Scratch {
        let folder = format!("ring-builder-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    /// Writes a file, making its folders.
    pub fn put(&self, file: impl AsRef<Path>, text: &str) -> PathBuf {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
