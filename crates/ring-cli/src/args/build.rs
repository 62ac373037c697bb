//! Options of `ring build`.

use clap::Args;
use ring_builder::Compiler;
use std::path::PathBuf;

/// Options of `ring build`.
#[derive(Clone, Debug, Args)]
pub struct Build {
    /// Folder of the crate [default: kernels if it is there, else .]
    #[arg(value_name = "PATH")]
    pub path: Option<PathBuf>,

    /// Oldest GPU architecture to run it
    #[arg(long, value_name = "SM", default_value = "sm_70")]
    pub arch: String,

    /// Features of the crate, with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub features: Vec<String>,

    /// Or rust-cuda (LLVM 7, CUDA 12)
    #[arg(long, value_name = "NAME", default_value_t)]
    pub compiler: Compiler,

    /// Another nightly: its name, or its sysroot
    #[arg(long, value_name = "NAME")]
    pub toolchain: Option<String>,

    /// Folder of kernels.ptx and .manifest [default: PATH]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    fn build(line: &str) -> Build {
        parsed(&line.split_whitespace().collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn every_option_is_read() {
        let options = build("");
        assert_eq!((options.path, options.arch.as_str()), (None, "sm_70"));
        assert_eq!((options.features, options.toolchain, options.out), (vec![], None, None));
        assert_eq!(options.compiler, Compiler::Upstream);
        let options = build(
            "a/b --compiler rust-cuda --arch sm_90 --features x,y --toolchain nightly --out z",
        );
        assert_eq!(options.compiler, Compiler::RustCuda);
        assert_eq!((options.path, options.arch.as_str()), (Some("a/b".into()), "sm_90"));
        assert_eq!(options.features, ["x", "y"]);
        assert_eq!(options.toolchain.as_deref(), Some("nightly"));
        assert_eq!(options.out, Some("z".into()));
    }
}
