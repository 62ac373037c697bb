//! Options of `ring doctor`.

use super::Emulate;
use clap::Args;
use ring_host::Device;

/// Options of `ring doctor`.
#[derive(Clone, Debug, Args)]
pub struct Doctor {
    /// auto (GPU or CPU), cpu, cuda, cuda:N
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub device: Device,

    /// Take things away: wsl2, no-pinned, ... (list: all)
    #[arg(long, value_name = "NAMES")]
    pub emulate: Option<Emulate>,

    /// Print one JSON object, times in microseconds
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    fn doctor(options: &[&str]) -> Result<Doctor, clap::Error> {
        parsed(options)
    }

    #[test]
    fn every_option_is_read() {
        let options = doctor(&[]).unwrap();
        assert_eq!((options.device, options.emulate, options.json), (Device::Auto, None, false));
        let options = doctor(&["--device", "cuda:3", "--emulate", "wsl2", "--json"]).unwrap();
        assert_eq!((options.device, options.json), (Device::Cuda(3), true));
        assert_eq!(options.emulate.unwrap().to_string(), "wsl2");
    }

    #[test]
    fn a_wrong_value_has_status_2() {
        for options in [["--device", "gpu"], ["--emulate", "wsl3"]] {
            assert_eq!(doctor(&options).unwrap_err().exit_code(), 2, "{options:?}");
        }
    }
}
