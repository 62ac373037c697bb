//! The error type: what is wrong, and a remedy.

use std::fmt;

/// `Result` with this crate's [`Error`].
pub type Result<T = ()> = std::result::Result<T, Error>;

/// What went wrong, in words, with an optional remedy.
#[derive(Debug)]
pub struct Error {
    what: String,
    hint: Option<String>,
}

impl Error {
    /// An error that says `what` is wrong.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), hint: None }
    }

    /// The same error with a remedy, best a command that can be pasted.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An I/O error on `path`.
    pub fn io(path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "\n  try: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// Its words already hold the remedy.
impl From<ring_builder::BuildError> for Error {
    fn from(error: ring_builder::BuildError) -> Self {
        Self::new(error.to_string())
    }
}
