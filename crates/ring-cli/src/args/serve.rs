//! Options of `ring serve`.

use super::values::{seconds, small_number};
use clap::{Args, ValueEnum};
use ring_host::Device;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `ring serve`.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// The kernel
    #[arg(long, value_name = "NAME", default_value = "echo")]
    pub kernel: Served,

    /// Name of the service [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Serve other hosts at tcp/ADDRESS:PORT or tls/ADDRESS:PORT; repeatable
    #[arg(long, value_name = "ENDPOINT")]
    pub listen: Vec<String>,

    /// zenoh's configuration: TLS, access control, routers
    #[arg(long, value_name = "FILE")]
    pub zenoh: Option<PathBuf>,

    /// auto (GPU or CPU), cpu, cuda, cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: Device,

    /// Most clients at a time
    #[arg(long, value_name = "N", default_value_t = 128, value_parser = small_number)]
    pub clients: u32,

    /// End by itself after that
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,
}

/// A built-in kernel that is served and called by this command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Served {
    /// Answers 64 bytes by what can be checked of them
    Echo,
}

impl Served {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Served::Echo => "echo",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    #[test]
    fn every_option_is_read() {
        let options: Serve = parsed(&[]).unwrap();
        assert_eq!((options.kernel, options.name, options.listen.len()), (Served::Echo, None, 0));
        assert_eq!((options.device, options.clients, options.time), (Device::Auto, 128, None));
        let line = "--kernel echo --name a/b --listen tcp/127.0.0.1:7447 --listen tcp/[::1]:7447 --zenoh a.json5 --device cpu --clients 3 --for 1.5";
        let options: Serve = parsed(&line.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!((options.name.as_deref(), options.clients), (Some("a/b"), 3));
        assert_eq!(options.listen, ["tcp/127.0.0.1:7447", "tcp/[::1]:7447"]);
        assert_eq!(options.zenoh, Some("a.json5".into()));
        assert_eq!(options.time, Some(Duration::from_millis(1500)));
        assert!(parsed::<Serve>(&["--kernel", "nothing"]).is_err());
    }
}
