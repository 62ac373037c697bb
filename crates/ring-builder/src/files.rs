//! Files and folders of a build.

use crate::BuildError;
use std::fs;
use std::path::{Path, PathBuf};

/// Where cargo keeps crates that it fetched.
pub fn registry() -> PathBuf {
    let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    cargo.unwrap_or_else(|| PathBuf::from(home.unwrap_or_default()).join(".cargo"))
}

/// The path from the root on.
pub fn absolute(path: &Path) -> Result<PathBuf, BuildError> {
    std::path::absolute(path).map_err(BuildError::io(path))
}

/// Writes a file unless it is so already; whether it was written.
pub fn write(path: &Path, text: &str) -> Result<bool, BuildError> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BuildError::io(folder))?;
    }
    fs::write(path, text).map_err(BuildError::io(path))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_file_is_written_if_it_changed() {
        let scratch = Scratch::new("write");
        let file = scratch.0.join("new/x");
        assert!(write(&file, "1").unwrap() && !write(&file, "1").unwrap());
        assert!(write(&file, "2").unwrap());
        let said = write(&file.join("below"), "").unwrap_err().to_string();
        assert!(said.contains("new/x") && said.contains("can be written to"), "{said}");
    }
}
