//! Where a project takes ring from.

use crate::failure::Failure;
use std::convert::Infallible;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the crates of ring come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A clone, from the working folder on.
    Folder(PathBuf),
    /// A git repository.
    Git(String),
    /// The registry.
    Version(String),
}

impl Source {
    /// The clone that this command was built in, or, if it is there no more, the version.
    pub fn of_this_command() -> Source {
        let clone = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        match clone.filter(|clone| is_clone(clone)) {
            Some(clone) => Source::Folder(clone.to_owned()),
            None => Source::Version(env!("CARGO_PKG_VERSION").to_owned()),
        }
    }

    /// Whether a folder is a clone of ring.
    pub fn check(&self) -> Result<(), Failure> {
        match self {
            Source::Folder(folder) if !is_clone(folder) => Err(Failure::NoClone(folder.clone())),
            _ => Ok(()),
        }
    }

    /// The same, for a project anywhere.
    pub fn absolute(self) -> Source {
        match self {
            Source::Folder(folder) => {
                Source::Folder(std::path::absolute(&folder).unwrap_or(folder))
            }
            other => other,
        }
    }

    /// What stands in the Cargo.toml of a project in the working folder behind the name of a crate.
    pub fn of(&self, name: &str) -> String {
        match self {
            Source::Folder(clone) => {
                let path = Path::new("..").join(clone).join("crates").join(name);
                let path: PathBuf = path.components().collect();
                let path = path.to_string_lossy();
                let path = if cfg!(windows) { path.replace('\\', "/") } else { path.into() };
                format!("{{ path = {} }}", quoted(&path))
            }
            Source::Git(url) => format!("{{ git = {} }}", quoted(url)),
            Source::Version(version) => quoted(version),
        }
    }
}

fn is_clone(folder: &Path) -> bool {
    let is_there = |name: &str| folder.join("crates").join(name).join("Cargo.toml").is_file();
    is_there("ring-host") && is_there("ring-builder")
}

/// A string of TOML, which has no control characters but by their number.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_ascii_control() => quoted += &format!("\\u{:04X}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Source, Infallible> {
        let digit = text.starts_with(|c: char| c.is_ascii_digit());
        let version = digit && text.contains('.') && !text.contains(['/', '\\']);
        Ok(match text {
            _ if text.contains("://") => Source::Git(text.to_owned()),
            _ if version && !Path::new(text).exists() => Source::Version(text.to_owned()),
            _ => Source::Folder(text.into()),
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Folder(folder) => write!(f, "{}", folder.display()),
            Source::Git(url) => f.write_str(url),
            Source::Version(version) => write!(f, "the registry, version {version}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        text.parse::<Source>().unwrap().of("ring-host")
    }

    #[test]
    fn each_is_written_as_cargo_wants_it() {
        assert_eq!(of("https://host/ring"), "{ git = \"https://host/ring\" }");
        assert_eq!(of("0.1.0"), "\"0.1.0\"");
        // No line of its own in the Cargo.toml, whatever the text is.
        assert_eq!(of("x://\n[y]\t\x7f"), "{ git = \"x://\\u000A[y]\\u0009\\u007F\" }");
        assert_eq!(of(".."), "{ path = \"../../crates/ring-host\" }");
        assert_eq!(of("a/b/"), "{ path = \"../a/b/crates/ring-host\" }");
        if cfg!(unix) {
            assert_eq!(of("/a/b"), "{ path = \"/a/b/crates/ring-host\" }");
            assert_eq!(of("/a\"b"), "{ path = \"/a\\\"b/crates/ring-host\" }");
            assert_eq!(of("/a\\b"), "{ path = \"/a\\\\b/crates/ring-host\" }");
            assert_eq!(of("/a\nb"), "{ path = \"/a\\u000Ab/crates/ring-host\" }");
        }
    }

    #[test]
    fn the_clone_of_this_command_is_found() {
        let source = Source::of_this_command();
        assert!(matches!(source, Source::Folder(_)), "{source}");
        assert!(source.check().is_ok());
        let said = Source::Folder("/ring/none".into()).check().unwrap_err().to_string();
        assert!(said.contains("/ring/none") && said.contains("--ring"), "{said}");
    }
}
