//! What the command line asks of `mutants`.

use crate::{Error, Result};

/// What `cargo xtask mutants` is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The only part, if not all.
    pub part: Option<String>,
    /// Only what the last run left: what lived, and what it did not come to.
    pub again: bool,
}

impl Options {
    /// Reads `[--again] [PART]`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(args: &[&str]) -> Result<Options> {
        let mut options = Options::default();
        for &arg in args {
            match arg {
                "--again" => options.again = true,
                name if !name.starts_with('-') && options.part.is_none() => {
                    options.part = Some(name.to_owned());
                }
                other => return Err(Error::new(format!("`mutants` does not know `{other}`"))),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn a_part_and_a_switch_are_read() {
        let read = |args: &[&str]| Options::parse(args).map(|o| (o.part, o.again)).unwrap();
        assert_eq!(read(&[]), (None, false));
        assert_eq!(read(&["--again", "host"]), (Some("host".to_owned()), true));
        for (args, said) in [(&["--more"][..], "`--more`"), (&["a", "b"], "`b`")] {
            let error = Options::parse(args).unwrap_err().to_string();
            assert!(error.contains(said), "{args:?}: {error}");
        }
    }
}
