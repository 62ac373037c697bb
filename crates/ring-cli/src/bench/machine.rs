//! The machine that the figures were measured on.

use super::cores::Cores;
use crate::kernels::KernelSource;
use crate::reasons::each;
use ring_host::{DeviceInfo, DeviceKind, Runtime};
use std::env::consts;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What everything was measured on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Processors that this process may use.
    pub cores: usize,
    /// The device.
    pub device: DeviceInfo,
    /// All that is known of it, with names, as it is printed.
    pub facts: Vec<(&'static str, String)>,
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
    pub fn look(runtime: &Runtime, kernels: &KernelSource, cores: &Cores) -> Machine {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
        let system = format!("{} {} on {}", consts::OS, release.trim(), consts::ARCH);
        let pinned = if cores.pinned() { "threads pinned" } else { "threads NOT pinned" };
        let speed = cpu_info("cpu MHz").and_then(|mhz| mhz.parse::<f64>().ok());
        let speed = speed.map_or(String::new(), |mhz| format!(", {mhz:.0} MHz at the start"));
        let governor = read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        let governor = governor.map_or(String::new(), |name| format!(", governor {}", name.trim()));
        let device = runtime.device();
        let mut facts = vec![
            ("when", date(at)),
            ("ring", format!("{}, {}", env!("CARGO_PKG_VERSION"), build())),
            ("system", system),
            ("processor", cpu_info("model name").unwrap_or_else(|| "not known".to_owned())),
            ("processors", format!("{}, {pinned}{speed}{governor}", cores.count())),
            ("clock", format!("monotonic; two readings are {} ns apart", cores.on(0, clock))),
            ("device", format!("{}: {}", crate::host::kind(device), device.name)),
            ("why this one", runtime.why().to_string()),
            ("kernels", kernels.in_words(device.kind)),
        ];
        if device.kind == DeviceKind::Cuda {
            facts.extend(gpu(device));
        }
        let runs = match &runtime.report().selection {
            Ok(choice) => choice.to_string(),
            Err(refused) => format!("no kernel runs: {}", each(refused)),
        };
        facts.push(("kernels run", runs));
        Machine { at, cores: cores.count(), device: device.clone(), facts }
    }

    /// Whether it is about a GPU.
    pub fn is_gpu(&self) -> bool {
        self.device.kind == DeviceKind::Cuda
    }
}

fn gpu(device: &DeviceInfo) -> [(&'static str, String); 2] {
    let (major, minor) = device.compute_capability;
    let (mhz, cuda) = (device.clock_khz / 1000, device.driver_version);
    let DeviceInfo { multiprocessors, copy_engines, .. } = device;
    let module = crate::host::kernel_module().unwrap_or_else(|| "version not known".to_owned());
    let what = format!(
        "compute capability {major}.{minor}, {multiprocessors} multiprocessors, up to {mhz} MHz, \
         {copy_engines} copy engines"
    );
    [("GPU", what), ("driver", format!("CUDA {}.{}; {module}", cuda / 1000, cuda % 1000 / 10))]
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

fn build() -> &'static str {
    match cfg!(debug_assertions) {
        true => "built WITHOUT optimisation: figures mean nothing",
        false => "release build",
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
