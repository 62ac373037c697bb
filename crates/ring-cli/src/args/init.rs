//! Options of `ring init`.

use crate::new::Source;
use clap::Args;
use std::path::PathBuf;

/// Options of `ring init`.
#[derive(Clone, Debug, Args)]
pub struct Init {
    /// Folder of the package
    #[arg(value_name = "PATH", default_value = ".")]
    pub path: PathBuf,

    /// Clone, git URL, version [default: its own clone or version]
    #[arg(long, value_name = "FROM")]
    pub ring: Option<Source>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    #[test]
    fn every_option_is_read() {
        let init = |options: &[&str]| parsed::<Init>(options).unwrap();
        assert_eq!((init(&[]).path, init(&[]).ring), (".".into(), None));
        let options = init(&["a/b", "--ring", "../ring"]);
        assert_eq!(options.path, PathBuf::from("a/b"));
        assert_eq!(options.ring, Some(Source::Folder("../ring".into())));
    }
}
