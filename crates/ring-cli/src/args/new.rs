//! Options of `ring new`.

use crate::new::{Folder, Source};
use clap::Args;

/// Options of `ring new`.
#[derive(Clone, Debug, Args)]
pub struct New {
    /// The folder, new or empty; its name is the package's
    #[arg(value_name = "FOLDER")]
    pub folder: Folder,

    /// Clone, git URL, version [default: its own clone or version]
    #[arg(long, value_name = "FROM")]
    pub ring: Option<Source>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;
    use clap::error::ErrorKind;

    fn new(options: &[&str]) -> Result<New, clap::Error> {
        parsed(options)
    }

    #[test]
    fn every_option_is_read() {
        let options = new(&["my-kernels"]).unwrap();
        assert_eq!((options.folder.name().as_str(), options.ring), ("my-kernels", None));
        let options = new(&["x", "--ring", "../ring"]).unwrap();
        assert_eq!(options.ring, Some(Source::Folder("../ring".into())));
    }

    #[test]
    fn a_name_is_needed_and_must_be_one() {
        assert_eq!(new(&[]).unwrap_err().kind(), ErrorKind::MissingRequiredArgument);
        let error = new(&["1st"]).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::ValueValidation, 2));
        assert!(error.to_string().contains("'1st'"), "{error}");
    }
}
