//! `ring bench`: how fast it is, beside what it could be compared with, in one run.
//!
//! Every figure has a live kernel in it, and every answer is checked. Rows that are compared are
//! measured in turn, a round of each, by threads that stay on their processor.
//!
//! [`section`] names what can be measured, [`settings`] says how long; [`ring`] measures this runtime and
//! [`baselines`] the same GPU by raw driver calls, [`comparison`] both, [`load`] the time of messages that have others
//! beside them, [`calls`] those of many threads, and [`cpu`] the CPU device and other queues, each by [`turns`]. All of it lands in [`report`],
//! [`targets`] judges it, [`tables`] sorts it into tables, and [`text`], [`html`] and [`json`] show it.

mod baselines;
mod calls;
mod comparison;
mod context;
mod cores;
mod cpu;
mod drive;
#[cfg(test)]
mod example;
pub mod html;
mod json;
mod load;
mod machine;
mod measured;
mod report;
mod ring;
mod section;
mod settings;
mod spread;
mod stats;
mod tables;
mod targets;
mod text;
mod turns;

pub use measured::shipped;
pub use section::Section;

use crate::args::Bench;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::kernels::KernelSource;
use crate::progress::Steps;
use baselines::Gpu;
use context::Context;
use cores::Cores;
use machine::Machine;
use report::{Report, Skipped, Stop};
use ring_host::device;
use ring_host::{Device, DeviceKind, Devices, KernelFiles, OpenError, Runtime, RuntimeConfig};
use settings::Settings;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

/// Memory on a GPU, pinned and on the device: for rings of 4096-byte messages on eight channels, and as much
/// for their answers; and for some 130 links of as many slots as they have by default.
const LARGE: (usize, usize) = (192 << 20, 192 << 20);

/// Measures what the options ask for, and reports to `out` and to files. An error if an answer was
/// wrong or none came; a target that is not met is none.
pub fn run(options: &Bench, out: &mut impl Write) -> Result<(), Failure> {
    if options.list {
        write!(out, "{}", text::sections())?;
        return Ok(());
    }
    // A report that cannot be written is an error before the minutes that the measurement takes.
    options.json.iter().chain(&options.html).try_for_each(|path| writable(path))?;
    let (device, interrupt) = (options.device, Interrupt::listen());
    let failure = |source| Failure::Open { device, source };
    let begun = Instant::now();
    let looks_for = [KernelFiles::BUILT_IN_ENTRY].into_iter();
    let looks_for = looks_for.chain(measured::entries()).chain(baselines::entries());
    let looks_for = looks_for.chain(ring::compute::entries()).collect();
    let kernels = &KernelSource::read(&options.ptx, device, looks_for)?;
    let image = kernels.built_in().image().map_err(OpenError::from).map_err(failure)?;
    let (driver, why) = device::open(device, &image).map_err(failure)?;
    let kind = driver.info().kind;
    kernels.check(kind, &why)?;
    let mut config = RuntimeConfig { kernels: kernels.built_in(), ..RuntimeConfig::default() };
    if kind == DeviceKind::Cuda {
        (config.pinned_bytes, config.device_bytes) = LARGE;
        if options.measures(Section::Compute) {
            config.device_bytes += ring::compute::device_bytes();
        }
    }
    let runtime = Runtime::open_with(device, config).map_err(failure)?;
    let second = options.measures(Section::Peers).then(|| second(&runtime, device, config));
    let (cores, settings) = (Cores::find(), Settings::of(options));
    let mut machine = Machine::look(&runtime, kernels, &cores);
    machine.facts.extend(second.iter().flatten().map(|devices| ("second device", told(devices))));
    write!(out, "{}", text::machine(&machine, &settings))?;
    out.flush()?;
    let mut report = Report::new(machine, settings.clone());
    choose(options, second.as_ref(), &mut report);
    // Loaded before anything is resident: the driver loads nothing then.
    let gpu = opened(&runtime, device, kernels);
    let gpu = gpu.map_err(|stop| Failure::Baselines(stop.why().to_owned()))?;
    let devices = second.and_then(Result::ok).unwrap_or_else(|| runtime.clone().into());
    if kind == DeviceKind::Cuda && devices.len() > 1 {
        let prepared = measured::prepare(&devices[1], kernels);
        prepared.map_err(|error| Failure::Baselines(error.to_string()))?;
    }
    measure((&devices, kernels), gpu, &cores, &settings, interrupt, &mut report)?;
    report.took = begun.elapsed().as_secs_f64();
    write!(out, "{}", text::report(&report))?;
    if let Some(path) = &options.json {
        written(path, &format!("{:#}\n", json::report(&report)), out)?;
    }
    if let Some(path) = &options.html {
        written(path, &html::page(&report), out)?;
    }
    match report.wrong().len() {
        _ if report.interrupted.is_some() => Err(Failure::Interrupted),
        0 => Ok(()),
        wrong => Err(Failure::Bench { wrong }),
    }
}

/// What is measured, and what is left out.
fn choose(options: &Bench, second: Option<&Result<Devices, String>>, report: &mut Report) {
    let gpu = report.machine.is_gpu();
    for section in Section::all().iter().copied() {
        match () {
            () if !options.measures(section) => {}
            () if section.needs_gpu() && !gpu => {
                let why = format!("it needs a GPU, and this is {}", report.machine.device.name);
                report.skipped.push(Skipped { section, why });
            }
            () => match second {
                Some(Err(why)) if section == Section::Peers => {
                    report.skipped.push(Skipped { section, why: why.clone() });
                }
                _ => report.sections.push(section),
            },
        }
    }
}

/// The device with a second one of the same kind behind it; why there is none.
fn second(first: &Runtime, device: Device, config: RuntimeConfig) -> Result<Devices, String> {
    let other = match (first.device().kind, device) {
        (DeviceKind::Cuda, Device::Cuda(1..)) => Device::Cuda(0),
        (DeviceKind::Cuda, _) => Device::Cuda(1),
        _ => Device::Cpu,
    };
    let why = |error: &dyn std::fmt::Display| format!("it needs a second device: {error}");
    let second = Runtime::open_with(other, config).map_err(|error| why(&error))?;
    Devices::of([first.clone(), second]).map_err(|error| why(&error))
}

/// The second device, and whether the two reach each other's memory.
fn told(devices: &Devices) -> String {
    let name = &devices[1].device().name;
    match devices.are_peers(0, 1) {
        Ok(()) => format!("{name}; each reaches the memory of the other"),
        Err(why) => format!("{name}; links go by pinned memory: {why}"),
    }
}

/// The GPU for bare kernels, with all code loaded.
fn opened(runtime: &Runtime, device: Device, kernels: &KernelSource) -> Result<Option<Gpu>, Stop> {
    if runtime.device().kind != DeviceKind::Cuda {
        return Ok(None);
    }
    let index = if let Device::Cuda(index) = device { index } else { 0 };
    measured::prepare(runtime, kernels).map_err(|error| Stop::Wrong(error.to_string()))?;
    Gpu::open(index, kernels).map(Some)
}

fn measure(
    (devices, kernels): (&Devices, &KernelSource),
    gpu: Option<Gpu>,
    cores: &Cores,
    settings: &Settings,
    interrupt: Interrupt,
    report: &mut Report,
) -> Result<(), Failure> {
    let source = |source| Failure::Open { device: Device::Cpu, source };
    let cpu = Devices::from(Runtime::open(Device::Cpu).map_err(source)?);
    let sections = report.sections.clone();
    let steps = sections.iter().map(|section| steps_of(*section, settings)).sum();
    let steps = Steps::new(steps, interrupt);
    let gpu = gpu.map(Mutex::new);
    let (gpu, steps) = (gpu.as_ref(), &steps);
    let runtime = &devices[0];
    let context = Context { runtime, devices, kernels, gpu, cores, settings, steps, interrupt };
    for section in sections {
        match section {
            Section::Latency => comparison::latency(&context, report),
            Section::Load => load::measure(&context, report),
            Section::Calls => calls::measure(&context, report),
            Section::Throughput => {
                comparison::throughput(&context, report);
                ring::throughput::sweeps(&context, report);
            }
            Section::Bandwidth => comparison::bandwidth(&context, report),
            Section::Scopes => ring::scopes::measure(&context, report),
            Section::Graphs => ring::graphs::measure(&context, report),
            Section::Peers => {
                ring::graphs::measure_across(&context, report);
                ring::grids::measure(&context, report);
            }
            Section::Compute => ring::compute::measure(&context, report),
            Section::Modes => report.ways = ring::modes::ways(&context),
            Section::Many => report.many = Some(ring::many::many(&context)),
            Section::Cpu => {
                let context = Context { runtime: &cpu[0], devices: &cpu, ..context };
                cpu::measure(&context, report);
            }
            Section::Growth => report.growth = ring::growth::growth(&context),
        }
        if interrupt.requested() {
            report.interrupted(steps.now());
            break;
        }
    }
    Ok(())
}

fn steps_of(section: Section, settings: &Settings) -> u64 {
    match section {
        Section::Latency => settings.rounds + comparison::STEPS_BESIDE,
        Section::Load => load::steps(settings),
        Section::Calls => calls::steps(settings),
        Section::Throughput => settings.repeats * (1 + ring::throughput::steps()),
        Section::Bandwidth => settings.repeats,
        Section::Scopes => ring::scopes::steps(settings),
        Section::Graphs => ring::graphs::steps(settings),
        Section::Peers => ring::graphs::steps_across(settings) + ring::grids::steps(settings),
        Section::Compute => ring::compute::steps(settings),
        Section::Modes => ring::modes::STEPS,
        Section::Many => ring::many::STEPS,
        Section::Cpu => cpu::STEPS,
        Section::Growth => ring::growth::STEPS,
    }
}

/// Whether a file can be written there. One that is there stays as it is, and none is left that was not.
fn writable(path: &Path) -> Result<(), Failure> {
    let known = path.symlink_metadata().is_ok();
    if path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return Ok(()); // opening a pipe and closing it again would make its reader believe that this was all
    }
    OpenOptions::new().append(true).create(true).open(path).map_err(Failure::file(path))?;
    match known {
        true => Ok(()),
        false => std::fs::remove_file(path).map_err(Failure::file(path)),
    }
}

fn written(path: &Path, text: &str, out: &mut impl Write) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(Failure::file(path))?;
    writeln!(out, "written {}", path.display())?;
    Ok(())
}
