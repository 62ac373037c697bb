//! Collects the facts that the doctor reports.

use super::facts::{Facts, Found, Library, Pair, Seen, Way};
use super::sharing::Sharing;
use crate::args::Emulation;
use crate::host::{self, Host};
use ring_host::device;
use ring_host::image::Image;
use ring_host::kernels::VectorAdd;
use ring_host::platform::{library_folders, wsl_signs};
use ring_host::{
    Device, DeviceKind, Devices, Kernels, LaunchConfig, LaunchError, Memory, Mode, OpenError,
    Refusal, Runtime, RuntimeConfig, Selection,
};
use ring_host::{MEMORY_VARIABLE, MODE_VARIABLE};

/// Looks at the machine, and opens the device to see what it does.
pub fn collect(asked: Device, emulation: Option<&Emulation>) -> Facts {
    let counted = count();
    let mut troubles = Vec::new();
    let gpu = match asked {
        Device::Auto => device::open(Device::Cuda(0), &Image::built_in()).err(),
        _ => None, // no GPU is wanted, or it is opened below
    };
    let fell_back = gpu.is_some();
    troubles.extend(gpu);
    let (mut device, mut seen, mut sharing) = (None, None, None);
    match host::open(asked, emulation, Kernels::BUILT_IN) {
        Err(trouble) => troubles.push(trouble),
        Ok(Host { info, why, runtime }) => {
            let why = if fell_back { "no GPU can be used".to_owned() } else { why };
            device = Some(Found::new(&info, why));
            match runtime {
                Err(trouble) => troubles.push(trouble),
                Ok(runtime) => {
                    seen = Some(see(&runtime));
                    sharing = stays_on_gpu(&runtime).then(|| Sharing::look(&runtime));
                }
            }
        }
    }
    let peers = match (&counted, asked) {
        (_, Device::Cpu) | (Ok(..=1) | Err(_), _) => Ok(Vec::new()),
        _ => peers(),
    };
    Facts {
        asked,
        emulated: emulation.map(Emulation::to_string),
        wsl: wsl_signs(),
        library: Library {
            path: variable("LD_LIBRARY_PATH"),
            places: library_folders(),
            loaded: loaded(&counted),
            kernel_module: host::kernel_module(),
        },
        gpus: counted.map_err(|error| error.to_string()),
        troubles,
        device,
        seen,
        sharing,
        peers,
        forced: forced(),
    }
}

/// GPUs that the driver counts: it is asked for one beyond them all, so that none is opened.
fn count() -> Result<usize, OpenError> {
    match device::open(Device::Cuda(usize::MAX), &Image::built_in()) {
        Err(OpenError::OutOfRange { count, .. }) => Ok(count),
        Err(error) => Err(error),
        Ok(_) => Ok(usize::MAX),
    }
}

/// Opens all GPUs, and sees which reach the memory of which.
fn peers() -> Result<Vec<Pair>, String> {
    let devices = Devices::open_all(RuntimeConfig::default()).map_err(|error| error.to_string())?;
    let all = 0..devices.len();
    let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
    let pairs = pairs.filter(|(from, to)| from != to);
    let lacks = |from, to| devices.reach(from, to).err().map(ToString::to_string);
    Ok(pairs.map(|(from, to)| Pair { from, to, lacks: lacks(from, to) }).collect())
}

/// Whether the driver's library was loaded to count.
fn loaded(counted: &Result<usize, OpenError>) -> Option<bool> {
    match counted {
        Err(OpenError::NotBuilt) => None,
        Err(OpenError::NoDriver) => Some(false),
        _ => Some(true),
    }
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
    Some(value.to_string_lossy().into_owned())
}

fn forced() -> Vec<(&'static str, String)> {
    let value = |name| variable(name).map(|value| (name, value));
    [MODE_VARIABLE, MEMORY_VARIABLE].into_iter().filter_map(value).collect()
}

/// Whether kernels stay on a GPU, in memory that both sides see: only then do turns of others show.
fn stays_on_gpu(runtime: &Runtime) -> bool {
    let persistent =
        |choice: &Selection| (choice.mode, choice.memory) == (Mode::Persistent, Memory::Mapped);
    let chosen = runtime.report().selection.as_ref().is_ok_and(persistent);
    chosen && runtime.device().kind == DeviceKind::Cuda
}

fn see(runtime: &Runtime) -> Seen {
    let report = runtime.report();
    let probe = report.probe.clone();
    Seen {
        loaded: report.loaded.clone(),
        pinned: report.pinned.clone(),
        quick_pages: report.quick_pages.clone(),
        mapped: probe.mapped,
        resident: probe.resident,
        beside: probe.concurrent_copy,
        launch: probe.launch,
        graph: probe.graph,
        took: probe.took,
        choice: report.selection.clone(),
        ways: ways(runtime),
    }
}

/// All ways to run a kernel that uses payload. What the environment forces is forced here too, so
/// that the others cannot be asked for.
fn ways(runtime: &Runtime) -> Vec<Way> {
    let report = runtime.report();
    let mut ways = Vec::new();
    if let (false, Ok(choice)) = (report.forced.is_empty(), &report.selection) {
        let refused =
            |r: &Refusal| Way { mode: r.mode, memory: r.memory, refused: Some(r.why.to_string()) };
        ways.extend(choice.refused.iter().map(refused));
        ways.push(Way { mode: choice.mode, memory: choice.memory, refused: None });
    } else if report.forced.is_empty() {
        for memory in [Memory::Mapped, Memory::StagedAsync, Memory::StagedSync] {
            for mode in [Mode::Persistent, Mode::EventDriven, Mode::Graph] {
                let prepared = runtime
                    .prepare::<VectorAdd>(&LaunchConfig::default().mode(mode).memory(memory));
                let refused = prepared.err().map(|error| reason(mode, memory, error));
                ways.push(Way { mode, memory, refused });
            }
        }
    }
    ways
}

/// Why that one way was refused, without naming it again.
fn reason(mode: Mode, memory: Memory, error: LaunchError) -> String {
    let LaunchError::Unfit { refused, .. } = &error else { return error.to_string() };
    let of_it = refused.iter().find(|r| (r.mode, r.memory) == (mode, memory));
    of_it.map_or_else(|| error.to_string(), |refusal| refusal.why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring_host::image::Loaded;

    #[test]
    fn the_cpu_is_seen_to_run_kernels_each_way_but_one() {
        let facts = collect(Device::Cpu, None);
        let seen = facts.seen.as_ref().expect("the CPU device opens");
        assert!(facts.opened() && facts.troubles.is_empty() && facts.sharing.is_none());
        assert_eq!(facts.device.as_ref().unwrap().kind, "cpu");
        assert_eq!(seen.loaded, Loaded::Host);
        assert_eq!(seen.ways.len(), 9);
        let refused: Vec<_> = seen.ways.iter().filter(|way| way.refused.is_some()).collect();
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!((refused[0].mode, refused[0].memory), (Mode::Persistent, Memory::StagedSync));
        assert!(refused[0].refused.as_ref().unwrap().starts_with("staged-sync memory is copied"));
    }

    #[test]
    fn a_device_out_of_range_is_a_trouble() {
        let facts = collect(Device::Cuda(usize::MAX), None);
        assert!(!facts.opened() && facts.device.is_none());
        assert_eq!(facts.troubles.len(), 1);
    }

    #[test]
    fn what_is_emulated_is_seen() {
        let facts = collect(Device::Cpu, Some(&"no-pinned,watchdog".parse().unwrap()));
        assert_eq!(facts.emulated.as_deref(), Some("no-pinned,watchdog"));
        assert!(facts.device.unwrap().watchdog && facts.seen.unwrap().pinned.is_err());
    }
}
