//! Options of `ring validate`.

use super::Emulate;
use super::values::{DeviceList, Milliseconds, number, processing, seconds, small_number};
use clap::Args;
use ring_host::{Budgets, Device, LaunchConfig, Memory, Mode, Processing};
use std::path::PathBuf;
use std::time::Duration;

/// Options of `ring validate`.
#[derive(Clone, Debug, Args)]
pub struct Validate {
    /// auto (GPU or CPU), cpu, cuda, cuda:N
    #[arg(long, value_name = "NAME", default_value = "auto")]
    pub device: Device,

    /// A ring through several instead: all, cuda:0,cuda:1
    #[arg(long, value_name = "LIST", conflicts_with_all = ["device", "ptx"])]
    pub devices: Option<DeviceList>,

    /// Messages of the soak, 0 for none
    #[arg(long, value_name = "N", default_value = "1_000_000", value_parser = number)]
    pub messages: u64,

    /// Longest wait for an answer
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub timeout: Duration,

    /// Take things away: wsl2, no-pinned, ... (list: all)
    #[arg(long, value_name = "NAMES")]
    pub emulate: Option<Emulate>,

    /// PTX to run instead, vouched for by you; repeatable
    #[arg(long, value_name = "FILE")]
    pub ptx: Vec<PathBuf>,

    /// How the kernels are launched.
    #[command(flatten)]
    pub kernel: KernelOptions,
}

/// How a kernel is launched.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Kernels")]
pub struct KernelOptions {
    /// persistent, event-driven, graph
    #[arg(long, value_name = "NAME", default_value_t = Mode::Auto)]
    pub mode: Mode,

    /// mapped, staged-async, staged-sync
    #[arg(long, value_name = "NAME", default_value_t = Memory::Auto)]
    pub memory: Memory,

    /// Channels of each kernel, all soaked
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = small_number)]
    pub channels: u32,

    /// Slots of each ring [default: 32768, or 4 MiB of them]
    #[arg(long, value_name = "N", value_parser = small_number)]
    pub capacity: Option<u32>,

    /// Threads of each block on a GPU
    #[arg(long, value_name = "N", default_value_t = LaunchConfig::DEFAULT_THREADS, value_parser = small_number)]
    pub threads: u32,

    /// continuous, batch, adaptive
    #[arg(long, value_name = "NAME", default_value = "batch", value_parser = processing)]
    pub processing: Processing,

    /// Most messages of an iteration [default: all]
    #[arg(long, value_name = "N", value_parser = small_number)]
    pub max_messages: Option<u32>,

    /// Longest a launch stays
    #[arg(long, value_name = "MS", default_value_t = Milliseconds(Budgets::default().time))]
    pub time_budget: Milliseconds,

    /// Longest it stays without a message
    #[arg(long, value_name = "MS", default_value_t = Milliseconds(Budgets::default().idle))]
    pub idle_budget: Milliseconds,

    /// Most iterations of a launch [default: any number]
    #[arg(long, value_name = "N", value_parser = number)]
    pub iterations: Option<u64>,
}

impl KernelOptions {
    /// The launch that was asked for.
    pub fn launch(&self) -> LaunchConfig {
        let iterations = self.iterations.unwrap_or(Budgets::default().iterations);
        let (time, idle) = (self.time_budget.0, self.idle_budget.0);
        let launch = LaunchConfig::default()
            .mode(self.mode)
            .memory(self.memory)
            .channels(self.channels)
            .threads(self.threads)
            .processing(self.processing)
            .budgets(Budgets { time, iterations, idle });
        let launch = match self.capacity {
            Some(slots) => launch.capacity(slots),
            None => launch,
        };
        match self.max_messages {
            Some(most) => launch.max_messages(most),
            None => launch,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parsed;
    use clap::error::ErrorKind;

    fn validate(options: &[&str]) -> Result<Validate, clap::Error> {
        parsed(options)
    }

    #[test]
    fn defaults_are_those_of_a_launch() {
        let options = validate(&[]).unwrap();
        assert!(matches!(options.device, Device::Auto));
        assert_eq!((options.messages, options.emulate), (1_000_000, None));
        assert_eq!((options.ptx.len(), options.devices), (0, None));
        assert_eq!(options.timeout, Duration::from_secs(10));
        let launch = format!("{:?}", options.kernel.launch());
        let default = LaunchConfig::default().threads(LaunchConfig::DEFAULT_THREADS);
        assert_eq!(launch, format!("{default:?}"));
    }

    #[test]
    fn every_option_is_read() {
        let line = "--device cuda:1 --messages 0 --timeout .5 --emulate wsl2,watchdog \
                    --ptx a.ptx --ptx b/c.ptx --mode event-driven --memory staged-async \
                    --channels 4 --capacity 64 \
                    --threads 128 --processing adaptive --max-messages 7 --time-budget 2.5 \
                    --idle-budget 0.02 --iterations 9";
        let options = validate(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert!(matches!(options.device, Device::Cuda(1)));
        assert_eq!((options.messages, options.timeout), (0, Duration::from_millis(500)));
        assert_eq!(options.emulate.as_ref().unwrap().to_string(), "wsl2,watchdog");
        assert_eq!(options.ptx, ["a.ptx", "b/c.ptx"].map(PathBuf::from));
        let (time, idle) = (Duration::from_micros(2500), Duration::from_micros(20));
        let expected = LaunchConfig::default()
            .mode(Mode::EventDriven)
            .memory(Memory::StagedAsync)
            .channels(4)
            .capacity(64)
            .threads(128)
            .processing(Processing::Adaptive)
            .max_messages(7)
            .budgets(Budgets { time, iterations: 9, idle });
        assert_eq!(format!("{:?}", options.kernel.launch()), format!("{expected:?}"));
    }

    #[test]
    fn digits_may_be_parted_by_underscores() {
        let line = "--messages 1_000_000 --timeout 1_0.5 --channels 1_6 --capacity 32_768 --threads 1_28 \
                    --max-messages 4_096 --time-budget 1_000.2_5 --idle-budget 0.0_2 --iterations 1_000";
        let options = validate(&line.split_whitespace().collect::<Vec<_>>()).unwrap();
        assert_eq!((options.messages, options.timeout), (1_000_000, Duration::from_millis(10_500)));
        let (time, idle) = (Duration::from_micros(1_000_250), Duration::from_micros(20));
        let expected = LaunchConfig::default()
            .channels(16)
            .capacity(32_768)
            .threads(128)
            .max_messages(4096)
            .budgets(Budgets { time, iterations: 1_000, idle });
        assert_eq!(format!("{:?}", options.kernel.launch()), format!("{expected:?}"));
    }

    #[test]
    fn a_wrong_value_is_named() {
        let lines = [
            ["--device", "gpu"],
            ["--device", "cuda:x"],
            ["--messages", "many"],
            ["--messages", "1e6"],
            ["--messages", "_1"],
            ["--messages", "1_"],
            ["--messages", "1__0"],
            ["--messages", "_"],
            ["--messages", "18_446_744_073_709_551_616"],
            ["--channels", "-1"],
            ["--capacity", "4294967296"],
            ["--threads", "two"],
            ["--timeout", "0"],
            ["--timeout", "-1"],
            ["--timeout", "nan"],
            ["--timeout", "inf"],
            ["--timeout", "86401"],
            ["--timeout", "soon"],
            ["--timeout", "1_.5"],
            ["--timeout", "1._5"],
            ["--mode", "resident"],
            ["--memory", "Mapped"],
            ["--processing", "all"],
            ["--max-messages", "-1"],
            ["--time-budget", "-0.5"],
            ["--idle-budget", "soon"],
            ["--iterations", "1.5"],
            ["--emulate", "wsl3"],
            ["--devices", "cpu,gpu"],
        ];
        for [option, value] in lines {
            let joined = format!("{option}={value}");
            let error = validate(&[&joined]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{joined}");
            assert_eq!(error.exit_code(), 2, "{joined}");
            assert!(error.to_string().contains(value), "{joined}: {error}");
        }
    }
}
