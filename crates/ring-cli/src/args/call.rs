//! Options of `ring call`.

use super::Served;
use super::values::{number, seconds, small_number};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// Options of `ring call`.
#[derive(Clone, Debug, Args)]
pub struct Call {
    /// The kernel
    #[arg(long, value_name = "NAME", default_value = "echo")]
    pub kernel: Served,

    /// Name of the service [default: the kernel's]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Call another host's at tcp/ADDRESS:PORT or tls/HOST:PORT; repeatable
    #[arg(long, value_name = "ENDPOINT")]
    pub connect: Vec<String>,

    /// zenoh's configuration: TLS, access control, routers
    #[arg(long, value_name = "FILE")]
    pub zenoh: Option<PathBuf>,

    /// Requests, one after the other
    #[arg(long, value_name = "N", default_value = "1_000", value_parser = number)]
    pub count: u64,

    /// Requests under way at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = small_number)]
    pub depth: u32,

    /// Longest wait for a server, and for an answer
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;

    #[test]
    fn every_option_is_read() {
        let options: Call = parsed(&[]).unwrap();
        assert_eq!((options.kernel, options.count, options.depth), (Served::Echo, 1000, 1));
        let line = "--name a --connect tcp/10.0.0.1:7447 --zenoh a.json5 --count 1_000_000 --depth 64 --timeout 0.5";
        let options: Call = parsed(&line.split(' ').collect::<Vec<_>>()).unwrap();
        assert_eq!(
            (options.name.as_deref(), options.count, options.depth),
            (Some("a"), 1_000_000, 64)
        );
        assert_eq!(options.zenoh, Some("a.json5".into()));
        assert_eq!(options.connect, ["tcp/10.0.0.1:7447"]);
        assert_eq!(options.timeout, Duration::from_millis(500));
    }
}
