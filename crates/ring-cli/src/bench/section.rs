//! The sections of the bench, by name.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::Serialize;
use std::fmt;

/// A part of the bench that can be asked for alone. The words beside each are what `--list` says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Section {
    /// one 64-byte message there and back, in turn with a bare flag, a launch, a graph launch, and copies
    /// around a launch (GPU)
    Latency,
    /// one message's time with 1 to 8192 in flight, at 10,000 to 50,000,000 due a second, and on 1 to 16 channels
    Load,
    /// calls of 1 to 64 threads by one client, that wait or have tickets, beside a channel of one's own
    Calls,
    /// messages a second against message size, channels, batch, depth, scope and threads, beside rings with
    /// head and tail (GPU)
    Throughput,
    /// 4096-byte messages in, 16 bytes out, beside cuMemcpyAsync (GPU)
    Bandwidth,
    /// every scope and size: one message there and back, and messages a second
    Scopes,
    /// kernels that send messages to each other: one through chains of 1 to 5, and messages a second over links
    Graphs,
    /// kernels of two devices that send messages to each other: through chains, and messages a second over links (two
    /// GPUs, or the CPU device)
    Peers,
    /// whole computations: PageRank by a grid and by messages between kernels, and a wave equation
    Compute,
    /// round trip and throughput of every mode in every memory
    Modes,
    /// round trips of 16 kernels at once, beside those of one (GPU)
    Many,
    /// the CPU device beside rtrb and crossbeam's ArrayQueue, two threads
    Cpu,
    /// throughput from 1,000,000 messages on (--growth: to 1,000,000,000), and with 256 to 65,536 slots;
    /// memory meanwhile
    Growth,
}

impl Section {
    /// All, in the order in which they are measured.
    pub fn all() -> &'static [Section] {
        Section::value_variants()
    }

    fn described(self) -> PossibleValue {
        self.to_possible_value().expect("none is hidden")
    }

    /// What it measures.
    pub fn says(self) -> String {
        self.described().get_help().map(ToString::to_string).unwrap_or_default()
    }

    /// Whether it makes no sense without a GPU.
    pub fn needs_gpu(self) -> bool {
        use Section::{Bandwidth, Latency, Many, Throughput};
        matches!(self, Latency | Throughput | Bandwidth | Many)
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.described().get_name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_written() {
        for section in Section::all() {
            assert_eq!(Section::from_str(&section.to_string(), false), Ok(*section));
            assert!(!section.says().is_empty());
        }
    }
}
