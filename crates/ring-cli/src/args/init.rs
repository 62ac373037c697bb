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

    /// Clone, git URL or version [default: the clone built from]
    #[arg(long, value_name = "FROM")]
    pub ring: Option<Source>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Arguments, Command};
    use clap::Parser;

    #[test]
    fn every_option_is_read() {
        let init = |line: &str| match Arguments::try_parse_from(line.split(' ')).unwrap().command {
            Command::Init(options) => options,
            other => panic!("{other:?}"),
        };
        assert_eq!((init("ring init").path, init("ring init").ring), (".".into(), None));
        let options = init("ring init a/b --ring ../ring");
        assert_eq!(options.path, PathBuf::from("a/b"));
        assert_eq!(options.ring, Some(Source::Folder("../ring".into())));
    }
}
