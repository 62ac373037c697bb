//! The machine that the figures were measured on.

use super::cores::Cores;
use crate::reasons::each;
use ring_host::{DeviceInfo, DeviceKind, Runtime};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What everything was measured on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// When, in seconds since 1970.
    pub at: u64,
    /// The version of this command.
    pub version: &'static str,
    /// Operating system and architecture.
    pub system: String,
    /// The processor.
    pub processor: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Whether threads stay on theirs.
    pub pinned: bool,
    /// Nanoseconds between two readings of the clock that follow each other: part of each round trip.
    pub clock: u64,
    /// How fast the first one ran when the bench began, in MHz.
    pub mhz: Option<f64>,
    /// Who sets how fast.
    pub governor: Option<String>,
    /// The device.
    pub device: DeviceInfo,
    /// Why that one.
    pub why: String,
    /// NVIDIA's kernel module.
    pub kernel_module: Option<String>,
    /// How `Auto` runs kernels here.
    pub runs: String,
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The value of the first line of `/proc/cpuinfo` with that key.
fn cpu_info(key: &str) -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

impl Machine {
    /// Looks around.
    pub fn look(runtime: &Runtime, cores: &Cores) -> Machine {
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let system =
            format!("{} {} on {}", std::env::consts::OS, release.trim(), std::env::consts::ARCH);
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let module = crate::host::kernel_module().filter(|_| is_gpu(runtime.device()));
        let runs = match &runtime.report().selection {
            Ok(choice) => choice.to_string(),
            Err(refused) => format!("no kernel runs: {}", each(refused)),
        };
        Machine {
            at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
            version: env!("CARGO_PKG_VERSION"),
            system,
            processor: cpu_info("model name").unwrap_or_else(|| "not known".to_owned()),
            cores: cores.count(),
            pinned: cores.pinned(),
            clock: cores.on(0, clock),
            mhz: cpu_info("cpu MHz").and_then(|mhz| mhz.parse().ok()),
            governor: governor.map(|name| name.trim().to_owned()),
            device: runtime.device().clone(),
            why: runtime.why().to_string(),
            kernel_module: module,
            runs,
        }
    }

    /// Whether it is about a GPU.
    pub fn is_gpu(&self) -> bool {
        is_gpu(&self.device)
    }

    /// Facts with their names, as they are printed.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let device = &self.device;
        let mut facts = vec![
            ("when", date(self.at)),
            ("ring", format!("{}, {}", self.version, build())),
            ("system", self.system.clone()),
            ("processor", self.processor.clone()),
        ];
        let speed = self.mhz.map_or(String::new(), |mhz| format!(", {mhz:.0} MHz at the start"));
        let governor = self.governor.iter().map(|name| format!(", governor {name}"));
        let pinned = if self.pinned { "threads pinned" } else { "threads NOT pinned" };
        let governor: String = governor.collect();
        facts.push(("processors", format!("{}, {pinned}{speed}{governor}", self.cores)));
        let clock = format!("monotonic; two readings are {} ns apart", self.clock);
        facts.push(("clock", clock));
        facts.push(("device", format!("{}: {}", crate::host::kind(device), device.name)));
        facts.push(("why this one", self.why.clone()));
        if self.is_gpu() {
            let (major, minor) = device.compute_capability;
            let (mhz, sms) = (device.clock_khz / 1000, device.multiprocessors);
            let engines = device.copy_engines;
            facts.push((
                "GPU",
                format!("compute capability {major}.{minor}, {sms} multiprocessors, up to {mhz} MHz, {engines} copy engines"),
            ));
            let cuda = device.driver_version;
            let module = self.kernel_module.as_deref().unwrap_or("version not known");
            facts.push(("driver", format!("CUDA {}.{}; {module}", cuda / 1000, cuda % 1000 / 10)));
        }
        facts.push(("kernels run", self.runs.clone()));
        facts
    }
}

/// The median time from one reading of the clock to the next, in nanoseconds.
fn clock() -> u64 {
    let mut apart = [0u64; 1001];
    for time in &mut apart {
        let begun = Instant::now();
        *time = begun.elapsed().as_nanos() as u64;
    }
    apart.sort_unstable();
    apart[apart.len() / 2]
}

fn is_gpu(device: &DeviceInfo) -> bool {
    device.kind == DeviceKind::Cuda
}

fn build() -> &'static str {
    if cfg!(debug_assertions) {
        "built WITHOUT optimisation: figures mean nothing"
    } else {
        "release build"
    }
}

/// Seconds since 1970 as a date and a time of day, UTC.
pub fn date(seconds: u64) -> String {
    let time = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(seconds));
    let minutes: String = time.to_string().replace('T', " ").chars().take(16).collect();
    format!("{minutes} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_795_269_600, "2026-11-21 14:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
