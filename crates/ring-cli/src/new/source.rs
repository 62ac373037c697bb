//! Where a project takes ring from.

use crate::failure::Failure;
use ring_builder::cargo::quoted;
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
    /// What was asked for, or else the clone that this command was built in; where it was built in none, as from a
    /// registry, its own version.
    pub fn chosen(wish: Option<&Source>) -> Result<Source, Failure> {
        let built_in = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
        Source::chosen_or(wish, built_in.unwrap_or(Path::new("")))
    }

    /// What was asked for, or else that clone, if it is one.
    pub(super) fn chosen_or(wish: Option<&Source>, clone: &Path) -> Result<Source, Failure> {
        match wish {
            Some(Source::Folder(folder)) if !is_clone(folder) => {
                Err(Failure::NoClone(folder.clone()))
            }
            Some(source) => Ok(source.clone()),
            None if is_clone(clone) => Ok(Source::Folder(clone.to_owned())),
            None => Ok(Source::Version(env!("CARGO_PKG_VERSION").to_owned())),
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

    /// What stands behind the name of a crate in a Cargo.toml that lies `below` the working folder by so
    /// many folders; `more` follows, within the braces.
    pub fn of(&self, name: &str, below: usize, more: &str) -> String {
        let (key, value) = match self {
            Source::Folder(clone) => {
                let up: PathBuf = std::iter::repeat_n("..", below).collect();
                let path = up.join(clone).join("crates").join(name);
                let path: PathBuf = path.components().collect();
                let path = path.to_string_lossy();
                let path = if cfg!(windows) { path.replace('\\', "/") } else { path.into() };
                ("path", quoted(&path))
            }
            Source::Git(url) => ("git", quoted(url)),
            Source::Version(version) if more.is_empty() => return quoted(version),
            Source::Version(version) => ("version", quoted(version)),
        };
        format!("{{ {key} = {value}{more} }}")
    }

    /// What to know of a source that may not have ring.
    pub fn note(&self) -> Option<String> {
        match self {
            Source::Version(version) => Some(format!(
                "ring {version} is taken from the registry; if cargo does not find it there, --ring takes the \
                 folder of a clone or a git URL"
            )),
            _ => None,
        }
    }
}

fn is_clone(folder: &Path) -> bool {
    let is_there = |name: &str| folder.join("crates").join(name).join("Cargo.toml").is_file();
    is_there("ring-host") && is_there("ring-builder")
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
        text.parse::<Source>().unwrap().of("ring-host", 1, "")
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
    fn a_manifest_may_lie_deeper_and_say_more() {
        let of = |text: &str, below| {
            text.parse::<Source>().unwrap().of("ring-host", below, ", optional = true")
        };
        assert_eq!(of("a", 0), "{ path = \"a/crates/ring-host\", optional = true }");
        assert_eq!(of("..", 2), "{ path = \"../../../crates/ring-host\", optional = true }");
        assert_eq!(of("0.1.0", 1), "{ version = \"0.1.0\", optional = true }");
    }

    #[test]
    fn the_clone_of_this_command_is_found() {
        let source = Source::chosen(None).unwrap();
        assert!(matches!(source, Source::Folder(_)), "{source}");
        assert_eq!(Source::chosen(Some(&source)).unwrap(), source);
        let none = Source::Folder("/ring/none".into());
        let said = Source::chosen(Some(&none)).unwrap_err().message();
        assert!(said.contains("/ring/none") && said.contains("--ring"), "{said}");
    }

    #[test]
    fn without_a_clone_it_is_this_version_and_a_note_says_what_else_there_is() {
        let source = Source::chosen_or(None, Path::new("/ring/none")).unwrap();
        assert_eq!(source, Source::Version(env!("CARGO_PKG_VERSION").to_owned()));
        let note = source.note().unwrap();
        for part in [env!("CARGO_PKG_VERSION"), "registry", "--ring", "clone", "git URL"] {
            assert!(note.contains(part), "{part} is not in: {note}");
        }
        let git = Source::Git("https://host/ring".to_owned());
        assert_eq!(Source::chosen_or(Some(&git), Path::new("/ring/none")).unwrap(), git);
        assert!(git.note().is_none());
    }
}
