//! Options of `ring bench`.

use super::values::whole;
use crate::bench::Section;
use clap::Args;
use ring_host::Device;
use std::path::PathBuf;

/// Options of `ring bench`.
#[derive(Clone, Debug, Args)]
pub struct Bench {
    /// auto (GPU or CPU), cpu, cuda, cuda:N
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub device: Device,

    /// A look within half a minute: fewer samples, shorter runs
    #[arg(long)]
    pub quick: bool,

    /// Only these sections, with commas between (see --list)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', hide_possible_values = true)]
    pub only: Vec<Section>,

    /// Name the sections, and measure nothing
    #[arg(long)]
    pub list: bool,

    /// Round trips timed of each kind [default: 50000, 5000]
    #[arg(long, value_name = "N", value_parser = samples)]
    pub samples: Option<u64>,

    /// Send 1,000,000,000 messages in the section growth, too
    #[arg(long)]
    pub growth: bool,

    /// PTX to run instead, vouched for by you; repeatable
    #[arg(long, value_name = "FILE")]
    pub ptx: Vec<PathBuf>,

    /// Write everything that was measured to a file, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a page with plots to a file, for a browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl Bench {
    /// Whether that section is asked for.
    pub fn measures(&self, section: Section) -> bool {
        self.only.is_empty() || self.only.contains(&section)
    }
}

/// A number of round trips.
fn samples(text: &str) -> Result<u64, String> {
    whole(text, 100..=100_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;
    use clap::error::ErrorKind;

    fn bench(options: &[&str]) -> Result<Bench, clap::Error> {
        parsed(options)
    }

    #[test]
    fn every_option_is_read() {
        assert_eq!(bench(&["--samples", "1_000"]).unwrap().samples, Some(1000));
        let options = bench(&[]).unwrap();
        assert_eq!((options.device, options.quick, options.list), (Device::Auto, false, false));
        assert_eq!((options.samples, options.only.len(), options.growth), (None, 0, false));
        let line = "--device cuda:1 --quick --only latency,cpu --samples 1000 --growth --list \
                    --ptx c.ptx --ptx d.ptx --json a.json --html b.html";
        let options = bench(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!(options.only, [Section::Latency, Section::Cpu]);
        assert_eq!((options.samples, options.device), (Some(1000), Device::Cuda(1)));
        assert!(options.quick && options.growth && options.list);
        assert_eq!(options.ptx, ["c.ptx", "d.ptx"].map(PathBuf::from));
        assert_eq!(options.json.unwrap().to_str(), Some("a.json"));
        assert_eq!(options.html.unwrap().to_str(), Some("b.html"));
    }

    #[test]
    fn a_wrong_value_is_named() {
        for value in
            ["--device=gpu", "--only=latency,speed", "--only=", "--samples=99", "--samples=many"]
        {
            let error = bench(&[value]).unwrap_err();
            let kinds = [ErrorKind::ValueValidation, ErrorKind::InvalidValue];
            assert!(kinds.contains(&error.kind()), "{value}: {error}");
            assert_eq!(error.exit_code(), 2, "{value}");
        }
        let error = bench(&["--only=speed"]).unwrap_err().to_string();
        assert!(error.contains("'speed'") && error.contains("latency"), "{error}");
    }
}
