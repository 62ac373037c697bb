//! What can be measured, by name.

use std::fmt;
use std::str::FromStr;

/// A part of the bench that can be asked for alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Round trips at depth 1, in turn with what they are compared with.
    Latency,
    /// Messages a second.
    Throughput,
    /// Large messages in, beside plain copies.
    Bandwidth,
    /// Every mode in every memory.
    Modes,
    /// Sixteen kernels at once.
    Many,
    /// The CPU device beside other queues.
    Cpu,
    /// More messages and larger rings.
    Growth,
}

impl Section {
    /// All, in the order in which they are measured.
    pub const ALL: [Section; 7] = [
        Section::Latency,
        Section::Throughput,
        Section::Bandwidth,
        Section::Modes,
        Section::Many,
        Section::Cpu,
        Section::Growth,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Section::Latency => "latency",
            Section::Throughput => "throughput",
            Section::Bandwidth => "bandwidth",
            Section::Modes => "modes",
            Section::Many => "many",
            Section::Cpu => "cpu",
            Section::Growth => "growth",
        }
    }

    /// What it measures.
    pub fn says(self) -> &'static str {
        match self {
            Section::Latency => {
                "one 64-byte message there and back, in turn with a bare flag, a launch, a graph \
                 launch, and copies around a launch (GPU)"
            }
            Section::Throughput => {
                "messages a second against message size, channels, batch, depth, scope and threads, \
                 beside rings with head and tail (GPU)"
            }
            Section::Bandwidth => "4096-byte messages in, 16 bytes out, beside cuMemcpyAsync (GPU)",
            Section::Modes => "round trip and throughput of every mode in every memory",
            Section::Many => "round trips of 16 kernels at once, beside those of one (GPU)",
            Section::Cpu => "the CPU device beside rtrb and crossbeam's ArrayQueue, two threads",
            Section::Growth => {
                "throughput from 1,000,000 messages on (--growth: to 1,000,000,000), and with 256 \
                 to 65,536 slots; memory meanwhile"
            }
        }
    }

    /// Whether it makes no sense without a GPU.
    pub fn needs_gpu(self) -> bool {
        use Section::{Bandwidth, Latency, Many, Throughput};
        matches!(self, Latency | Throughput | Bandwidth | Many)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Section {
    type Err = String;

    fn from_str(name: &str) -> Result<Section, String> {
        let found = Section::ALL.into_iter().find(|section| section.name() == name);
        found.ok_or_else(|| {
            let names = Section::ALL.map(Section::name);
            format!("there is no section '{name}'; use {}", crate::reasons::listed(&names, "or"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        for section in Section::ALL {
            assert_eq!(section.to_string().parse(), Ok(section));
            assert!(!section.says().is_empty());
        }
        let error = "speed".parse::<Section>().unwrap_err();
        assert!(error.contains("'speed'") && error.contains("latency, throughput"), "{error}");
    }
}
