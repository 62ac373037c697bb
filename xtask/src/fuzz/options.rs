//! What the command line asks of `fuzz`.

use crate::{Error, Result};

/// What `cargo xtask fuzz` is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long each target runs.
    pub seconds: u32,
    /// The only target, if not all.
    pub target: Option<String>,
}

/// Long enough to see that a target still finds its way; findings take longer.
const USUAL: u32 = 30;

impl Options {
    /// Reads `[--seconds N] [TARGET]`.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(args: &[&str]) -> Result<Options> {
        let mut options = Options { seconds: USUAL, target: None };
        let mut args = args.iter();
        while let Some(&arg) = args.next() {
            match arg {
                "--seconds" => {
                    let number = args.next().and_then(|number| number.parse().ok());
                    // To libFuzzer zero is for ever.
                    options.seconds = number
                        .filter(|n| *n > 0)
                        .ok_or_else(|| Error::new("--seconds needs a number from 1 on"))?;
                }
                name if !name.starts_with('-') && options.target.is_none() => {
                    options.target = Some(name.to_owned());
                }
                other => return Err(Error::new(format!("`fuzz` does not know `{other}`"))),
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::Options;

    #[test]
    fn seconds_and_one_target_are_read() {
        let read = |args: &[&str]| Options::parse(args).map(|o| (o.seconds, o.target)).unwrap();
        assert_eq!(read(&[]), (30, None));
        assert_eq!(read(&["ptx"]), (30, Some("ptx".to_owned())));
        assert_eq!(read(&["--seconds", "600"]), (600, None));
        assert_eq!(read(&["ptx", "--seconds", "5"]), (5, Some("ptx".to_owned())));
    }

    #[test]
    fn what_is_not_known_is_named() {
        for (args, said) in [
            (&["--seconds"][..], "a number"),
            (&["--seconds", "0"], "from 1 on"),
            (&["--seconds", "-1"], "a number"),
            (&["--second", "1"], "`--second`"),
            (&["a", "b"], "`b`"),
        ] {
            let error = Options::parse(args).unwrap_err().to_string();
            assert!(error.contains(said), "{args:?}: {error}");
        }
    }
}
