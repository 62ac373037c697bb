//! The context of a measurement: device, processors, settings, progress and interrupt.

use super::baselines::Gpu;
use super::cores::Cores;
use super::drive::Load;
use super::measured::Measured;
use super::report::{Found, Stop};
use super::ring::latency::timed;
use super::settings::{Settings, TIMEOUT};
use super::stats::Times;
use crate::interrupt::Interrupt;
use crate::kernels::KernelSource;
use crate::progress::Steps;
use ring_host::kernels::Echo;
use ring_host::{
    DeviceKind, Devices, Graph, GraphBuilder, GraphError, GridHandler, Grids, GridsError, Kernel,
    KernelHandle, LaunchConfig, LaunchError, Runtime,
};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a page: the host spreads its memory by them.
pub const PAGE: usize = 4096;

/// Slots of a kernel that only occupies memory.
const SPACER_SLOTS: u32 = 16;

/// A device, and how it is measured.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The device.
    pub runtime: &'a Runtime,
    /// The same with a second device behind it, if there is one: graphs may have kernels on both.
    pub devices: &'a Devices,
    /// Where the kernels are taken from that are not built in.
    pub kernels: &'a KernelSource,
    /// The same GPU, for bare kernels.
    pub gpu: Option<&'a Mutex<Gpu>>,
    /// Processors for host threads.
    pub cores: &'a Cores,
    /// How long and how often.
    pub settings: &'a Settings,
    /// Shows what is being measured.
    pub steps: &'a Steps,
    /// Whether Ctrl-C was pressed.
    pub interrupt: Interrupt,
}

impl Context<'_> {
    /// `cuda` or `cpu`.
    pub fn device(&self) -> &'static str {
        crate::host::kind(self.runtime.device())
    }

    /// Whether the device is CPU threads.
    pub fn is_cpu(&self) -> bool {
        self.runtime.device().kind == DeviceKind::Cpu
    }

    /// The GPU for bare kernels.
    pub fn gpu(&self) -> Found<MutexGuard<'_, Gpu>> {
        let gpu = self.gpu.ok_or_else(|| Stop::Refused("it needs a GPU".to_owned()))?;
        Ok(gpu.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The load of a throughput measurement, in the default batches.
    pub fn load(&self) -> Load {
        Load {
            messages: u64::MAX,
            time: self.settings.run,
            batch: super::ring::BATCH,
            depth: u64::MAX,
            yield_after: self.yield_after(),
            interrupt: self.interrupt,
        }
    }

    /// Idle turns after which a host thread yields its processor: few on the CPU device, whose threads may need
    /// it.
    pub fn yield_after(&self) -> u32 {
        if self.is_cpu() { 200 } else { 20_000 }
    }

    /// An error if the bench was interrupted.
    pub fn check_interrupt(&self) -> Found<()> {
        if self.interrupt.requested() { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Times the calls of a round, from the host's first processor: as many as the settings say, after some
    /// that are not counted.
    pub fn timed(
        &self,
        times: &mut Times,
        call: impl FnMut(u64) -> Found<Duration> + Send,
    ) -> Found<()> {
        let counts = (self.settings.warm_up, self.settings.per_round());
        self.cores.on(0, || timed(counts, self.settings.round_limit, times, call))
    }

    /// A kernel that takes messages, launched as [`Context::resident`] does, with the code that it needs.
    pub fn active<K: Measured>(&self, launch: LaunchConfig) -> Found<KernelHandle<K>> {
        self.resident(K::launch(self.kernels, launch))
    }

    /// A kernel that takes messages. On the CPU device its threads stay on the second processor that
    /// [`Cores::pin`] counts.
    pub fn resident<K: Kernel>(&self, launch: LaunchConfig) -> Found<KernelHandle<K>> {
        self.check_interrupt()?;
        activated(self.cores.on(1, || self.runtime.launch::<K>(launch)))
    }

    /// A kernel of several blocks that takes messages. On the CPU device the system places its threads, of which each
    /// needs a processor.
    pub fn grid<K: Kernel>(&self, launch: LaunchConfig) -> Found<KernelHandle<K>> {
        self.check_interrupt()?;
        activated(self.runtime.launch::<K>(launch))
    }

    /// A graph that waits to be activated. On the CPU device the system places its threads.
    pub fn graph(&self, graph: &GraphBuilder) -> Found<Graph> {
        self.check_interrupt()?;
        self.devices.launch_graph(graph).map_err(|error| match error {
            GraphError::Launch(error) => not_launched(&error),
            GraphError::Fault(fault) => wrong(fault),
            error => Stop::Refused(error.to_string()),
        })
    }

    /// Grids of a kernel on both devices that take messages, likewise.
    pub fn grids<K: GridHandler>(&self, launch: LaunchConfig) -> Found<Grids<K>> {
        self.check_interrupt()?;
        let launched = self.devices.launch_grids::<K>(launch);
        let mut grids = launched.map_err(|error| match &error {
            GridsError::OnDevice { source, .. } => match &**source {
                GridsError::Launch(error) => not_launched(error),
                _ => Stop::Refused(error.to_string()),
            },
            _ => Stop::Refused(error.to_string()),
        })?;
        grids.activate(TIMEOUT).map_err(wrong)?;
        Ok(grids)
    }

    /// An idle kernel that occupies so many pages of the runtime's pinned memory, so that the next kernel's memory
    /// begins behind them.
    pub fn spacer(&self, pages: usize) -> Found<Option<KernelHandle<Echo>>> {
        if pages == 0 {
            return Ok(None);
        }
        // Payload lies in pinned memory or is staged there, as many bytes as there are of it: what is missing to
        // whole pages.
        let launch = LaunchConfig::default().threads(32).capacity(SPACER_SLOTS);
        let least = self.runtime.launch::<Echo>(launch.clone()).map_err(wrong)?.pinned_bytes();
        let launch = launch.payload_bytes((pages * PAGE).saturating_sub(least));
        self.runtime.launch::<Echo>(launch).map(Some).map_err(wrong)
    }
}

fn activated<K: Kernel>(launched: Result<KernelHandle<K>, LaunchError>) -> Found<KernelHandle<K>> {
    let mut kernel = launched.map_err(|error| not_launched(&error))?;
    kernel.activate(TIMEOUT).map_err(wrong)?;
    Ok(kernel)
}

/// Why a kernel was not launched.
fn not_launched(error: &LaunchError) -> Stop {
    match error {
        LaunchError::Fault(_) | LaunchError::Image { .. } | LaunchError::Driver(_) => wrong(error),
        error => Stop::Refused(error.to_string()),
    }
}

/// Ends a kernel. It must have handled every message that it was sent.
pub fn ended<K: Kernel>(mut kernel: KernelHandle<K>) -> Found<()> {
    none_left(kernel.terminate(TIMEOUT).map_err(wrong)?.unhandled)
}

/// Ends a graph, likewise.
pub fn ended_graph(mut graph: Graph) -> Found<()> {
    let summaries = graph.terminate(TIMEOUT).map_err(wrong)?;
    none_left(summaries.iter().map(|summary| summary.unhandled).sum())
}

/// Ends grids of several devices, likewise.
pub fn ended_grids<K: GridHandler>(mut grids: Grids<K>) -> Found<()> {
    let summaries = grids.terminate(TIMEOUT).map_err(wrong)?;
    none_left(summaries.iter().map(|summary| summary.unhandled).sum())
}

fn none_left(unhandled: u64) -> Found<()> {
    match unhandled {
        0 => Ok(()),
        left => Err(Stop::Wrong(format!("{left} messages were never handled"))),
    }
}

/// Something went wrong.
pub fn wrong(why: impl ToString) -> Stop {
    Stop::Wrong(why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::example;

    #[test]
    fn what_went_wrong_stays_and_what_was_interrupted_keeps_what_was_found() {
        example::with(Interrupt::never(), |context| {
            let mut found = Ok(1);
            context.accumulate(&mut found, |n| {
                *n += 1;
                Ok(())
            });
            context.accumulate(&mut found, |_| Err(Stop::Interrupted));
            assert_eq!(found, Ok(2));
            context.accumulate(&mut found, |_| Err(wrong("no")));
            context.accumulate(&mut found, |_| unreachable!("after something went wrong"));
            assert_eq!(found, Err(wrong("no")));
        });
        example::with(Interrupt::come(), |context| {
            let mut found = Ok(1);
            context.accumulate(&mut found, |_| unreachable!("after it was interrupted"));
            assert_eq!((found, context.check_interrupt()), (Ok(1), Err(Stop::Interrupted)));
            assert_eq!(
                context.active::<Echo>(LaunchConfig::default()).err(),
                Some(Stop::Interrupted)
            );
        });
    }
}
