//! What the kernels of a process count, for [Prometheus](https://prometheus.io) and whatever reads its text format (feature
//! `metrics`); and a small server of it (feature `exporter`).
//!
//! [`Metrics`] reads what the devices and the host count anyway: nothing is added to the path of a message. It is a
//! `Collector` of [`prometheus_client`], to be registered beside the program's own metrics; or [`Exporter`] serves it alone.
//!
//! | metric | of | |
//! |---|---|---|
//! | `ring_requests_sent_total` | channel | requests that the host has sent |
//! | `ring_requests_in_slots_total` | channel | of those, how many went through slots; the others were inline |
//! | `ring_requests_bytes_total` | channel | bytes of those sent |
//! | `ring_send_stalls_total` | channel | how often a sender found no room; those until it sends something count as one |
//! | `ring_requests_handled_total` | channel | messages handled |
//! | `ring_requests_refused_total` | channel | messages that the handler refused, and commands that were not understood |
//! | `ring_index_errors_total` | channel | indices that could not be |
//! | `ring_requests_waiting` | channel | requests that are sent and not taken, as far as the host knows |
//! | `ring_inbox_depth` | channel | requests in all rings that it takes messages from, as the device saw them last |
//! | `ring_responses_received_total` | channel | responses that the host has received |
//! | `ring_responses_bytes_total` | channel | bytes of those received |
//! | `ring_responses_waiting` | channel | responses that are there and not received |
//! | `ring_port_messages_total` | channel and port | messages that the channel has sent by the port, to each of its rings |
//! | `ring_port_bytes_total` | channel and port | bytes of these |
//! | `ring_port_waiting` | channel and port | messages in the port's rings that were not taken |
//! | `ring_port_fullest_ratio` | channel and port | how full the fullest of the port's rings is, from 0 to 1 |
//! | `ring_port_stalls_total` | channel and port | how often the channel waited for room in one of the port's rings; until it sends something there that counts once |
//! | `ring_handler_seconds` | kernel | histogram: how long handlers ran |
//! | `ring_queueing_seconds` | kernel | histogram: how long messages waited before they were handled, at most |
//! | `ring_kernel_info` | kernel | 1, with its mode, memory, blocks, threads and channels |
//! | `ring_kernel_state` | kernel | 1, with its state: `launched`, `active`, `inactive`, `terminated`, `faulted` |
//! | `ring_kernel_launches_total` | kernel | launches |
//! | `ring_kernel_heartbeat_seconds` | kernel | its oldest heartbeat, by the device's clock: it goes on while the kernel runs |
//! | `ring_kernel_lease_seconds` | kernel | how long it stays without the host; not there if it has no lease |
//! | `ring_kernel_pinned_bytes` | kernel | pinned memory that it occupies |
//! | `ring_memory_bytes`, `ring_memory_free_bytes` | device | the runtime's `pinned` and `device` memory |
//!
//! Labels: `device` (`cpu`, `cuda:0`), `kernel` (its name), `launch` (its number among the launches of its runtime, from 1),
//! `channel`, `port` (its name), `to` (the kernel that reads the port, or `host`).

#[cfg(feature = "exporter")]
mod exporter;
mod families;
mod sample;

#[cfg(feature = "exporter")]
pub use exporter::{Exporter, ExporterError};

use self::sample::{Sample, Watched};
use crate::runtime::Runtime;
use crate::sync::lock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use std::sync::{Arc, Mutex};

/// What the kernels of some runtimes count, also those of graphs, from the moment in which they are launched until they are dropped.
/// Clones are of the same runtimes.
///
/// A scrape reads; it takes no turn of a kernel's, and makes no driver call where memory is mapped. Where it is staged it waits for up to
/// 5 ms for each kernel, as [`KernelHandle::telemetry`](crate::KernelHandle::telemetry) does.
///
/// ```
/// # use ring_host::{Device, LaunchConfig, Runtime, kernels::{Echo, EchoMessage}, metrics::Metrics};
/// # use std::time::Duration;
/// # let second = Duration::from_secs(1);
/// let runtime = Runtime::open(Device::Cpu)?;
/// let registry = Metrics::of(&runtime).into_registry();
///
/// let mut kernel = runtime.launch::<Echo>(LaunchConfig::default())?;
/// kernel.activate(second)?;
/// kernel.send(EchoMessage::from_seed(1), second)?;
///
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry)?;
/// let sent = r#"ring_requests_sent_total{device="cpu",kernel="echo",launch="1",channel="0"} 1"#;
/// assert!(text.contains(sent));
/// # kernel.terminate(second)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    watched: Arc<Mutex<Vec<Watched>>>,
}

impl Metrics {
    /// Those of a runtime.
    pub fn of(runtime: &Runtime) -> Metrics {
        let metrics = Metrics::default();
        metrics.watch(runtime);
        metrics
    }

    /// Those of one more runtime: of another device, or one that was opened since. One that is watched already stays so.
    pub fn watch(&self, runtime: &Runtime) {
        let runtime = Watched::new(&runtime.core);
        let mut watched = lock(&self.watched);
        watched.retain(|other| !other.is_of_same(&runtime));
        watched.push(runtime);
    }

    /// A registry that has nothing else.
    pub fn into_registry(self) -> Registry {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        registry
    }
}

impl Collector for Metrics {
    fn encode(&self, encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        // Not while it is locked: whoever watches one more does not wait for a scrape.
        let watched = lock(&self.watched).clone();
        families::write(&Sample::of(&watched), encoder)
    }
}
