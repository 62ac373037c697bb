//! How what was read is written: each metric's name, unit, help and value.

use super::sample::{ChannelSample, KernelSample, MemorySample, PortSample, Sample};
use crate::kernel::telemetry::Histogram;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;
use ring_shared::layout::{BUCKETS, State};
use std::borrow::Cow;
use std::fmt::Error;
use std::time::Duration;

/// A metric of each of some things.
struct Metric<T> {
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    value: Value<T>,
}

/// How the value of a metric is read; `None` of what has no such value.
enum Value<T> {
    Counter(fn(T) -> Option<u64>),
    Gauge(fn(T) -> Option<f64>),
    Times(fn(T) -> Histogram),
}

use Value::{Counter, Gauge, Times};

/// A channel, and its kernel before it.
type OfChannel<'a> = (&'a KernelSample, &'a ChannelSample);

type Label = (&'static str, Cow<'static, str>);

/// The labels that only one metric of a kernel has.
type LabelsOf = fn(&KernelSample) -> Vec<Label>;

const BYTES: Option<Unit> = Some(Unit::Bytes);
const SECONDS: Option<Unit> = Some(Unit::Seconds);

fn metric<T>(
    name: &'static str,
    unit: Option<Unit>,
    help: &'static str,
    value: Value<T>,
) -> Metric<T> {
    Metric { name, unit, help, value }
}

fn of_channels<'a>() -> [Metric<OfChannel<'a>>; 12] {
    [
        metric(
            "ring_requests_sent",
            None,
            "Requests that the host has sent",
            Counter(|(_, channel)| Some(channel.telemetry.sent)),
        ),
        metric(
            "ring_requests_in_slots",
            None,
            "Requests sent that went through slots; the others were inline",
            Counter(|(_, channel)| Some(channel.telemetry.in_slots)),
        ),
        metric(
            "ring_requests",
            BYTES,
            "Bytes of the requests sent",
            Counter(|(kernel, channel)| {
                Some(channel.telemetry.sent.wrapping_mul(kernel.message_bytes[0] as u64))
            }),
        ),
        metric(
            "ring_send_stalls",
            None,
            "How often a sender found no room; those until it sends something count as one",
            Counter(|(_, channel)| Some(channel.telemetry.stalls)),
        ),
        metric(
            "ring_requests_handled",
            None,
            "Messages handled",
            Counter(|(_, channel)| Some(channel.telemetry.processed)),
        ),
        metric(
            "ring_requests_refused",
            None,
            "Messages that the handler refused, and commands that were not understood",
            Counter(|(_, channel)| Some(channel.telemetry.refused)),
        ),
        metric(
            "ring_index_errors",
            None,
            "Indices that could not be",
            Counter(|(_, channel)| Some(channel.telemetry.errors)),
        ),
        metric(
            "ring_requests_waiting",
            None,
            "Requests that are sent and not taken, as far as the host knows",
            Gauge(|(_, channel)| Some(channel.waiting as f64)),
        ),
        metric(
            "ring_inbox_depth",
            None,
            "Requests in all rings that the channel takes messages from, as the device saw them last",
            Gauge(|(_, channel)| Some(channel.telemetry.depth as f64)),
        ),
        metric(
            "ring_responses_received",
            None,
            "Responses that the host has received",
            Counter(|(kernel, channel)| kernel.answers.then_some(channel.telemetry.received)),
        ),
        metric(
            "ring_responses",
            BYTES,
            "Bytes of the responses received",
            Counter(|(kernel, channel)| {
                let bytes = kernel.message_bytes[1] as u64;
                kernel.answers.then(|| channel.telemetry.received.wrapping_mul(bytes))
            }),
        ),
        metric(
            "ring_responses_waiting",
            None,
            "Messages handled whose responses were not received",
            Gauge(|(kernel, channel)| {
                let telemetry = &channel.telemetry;
                let waiting = telemetry.processed.saturating_sub(telemetry.received);
                kernel.answers.then_some(waiting as f64)
            }),
        ),
    ]
}

fn of_ports<'a>() -> [Metric<&'a PortSample>; 5] {
    [
        metric(
            "ring_port_messages",
            None,
            "Messages that the channel has sent by the port, to each of its rings",
            Counter(|port| Some(port.flowed.sent)),
        ),
        metric(
            "ring_port",
            BYTES,
            "Bytes of these messages",
            Counter(|port| Some(port.flowed.sent.wrapping_mul(port.message_bytes as u64))),
        ),
        metric(
            "ring_port_waiting",
            None,
            "Messages in the port's rings that were not taken",
            Gauge(|port| Some(port.flowed.waiting as f64)),
        ),
        metric(
            "ring_port_fullest_ratio",
            None,
            "How full the fullest of the port's rings is, from 0 to 1",
            Gauge(|port| Some(port.flowed.fullest as f64 / f64::from(port.slots.max(1)))),
        ),
        metric(
            "ring_port_stalls",
            None,
            "How often the channel waited for room in one of the port's rings; until it sends something there that counts once",
            Counter(|port| Some(port.flowed.stalls)),
        ),
    ]
}

fn of_kernels<'a>() -> [Metric<&'a KernelSample>; 6] {
    [
        metric(
            "ring_handler",
            SECONDS,
            "How long handlers ran",
            Times(|kernel| kernel.telemetry.handler),
        ),
        metric(
            "ring_queueing",
            SECONDS,
            "How long messages waited before they were handled, at most",
            Times(|kernel| kernel.telemetry.queueing),
        ),
        metric("ring_kernel_launches", None, "Launches", Counter(|kernel| Some(kernel.launches))),
        metric(
            "ring_kernel_heartbeat",
            SECONDS,
            "The oldest heartbeat of a channel, by the device's clock",
            Gauge(|kernel| Some(Duration::from_nanos(kernel.telemetry.heartbeat).as_secs_f64())),
        ),
        metric(
            "ring_kernel_lease",
            SECONDS,
            "How long the kernel stays without the host",
            Gauge(|kernel| kernel.lease.map(|lease| lease.as_secs_f64())),
        ),
        metric(
            "ring_kernel_pinned",
            BYTES,
            "Pinned memory that the kernel occupies",
            Gauge(|kernel| Some(kernel.pinned_bytes as f64)),
        ),
    ]
}

fn of_memories<'a>() -> [Metric<&'a MemorySample>; 2] {
    [
        metric(
            "ring_memory",
            BYTES,
            "Memory that the runtime has taken for its kernels",
            Gauge(|memory| Some(memory.bytes as f64)),
        ),
        metric(
            "ring_memory_free",
            BYTES,
            "Of that, what no kernel occupies",
            Gauge(|memory| Some(memory.free as f64)),
        ),
    ]
}

/// Writes all of it.
pub(super) fn write(sample: &Sample, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
    let labels: Vec<[Label; 3]> = sample.kernels.iter().map(labels_of).collect();
    let kernels = || sample.kernels.iter().zip(&labels);
    for metric in of_channels() {
        let each = sample.channels.iter().map(|channel| {
            let (kernel, labels) = (&sample.kernels[channel.kernel], &labels[channel.kernel][..]);
            ((kernel, channel), (labels, [("channel", channel.channel)]))
        });
        metric.encode(&mut encoder, each)?;
    }
    for metric in of_ports() {
        let each = sample.ports.iter().map(|port| {
            let more = [
                ("channel", Cow::from(port.channel.to_string())),
                ("port", port.port.into()),
                ("to", port.to.into()),
            ];
            (port, (&labels[port.kernel][..], more))
        });
        metric.encode(&mut encoder, each)?;
    }
    for metric in of_kernels() {
        metric.encode(&mut encoder, kernels().map(|(kernel, labels)| (kernel, &labels[..])))?;
    }
    for (metric, more) in facts_of_kernels() {
        let facts = kernels().map(|(kernel, labels)| (kernel, (&labels[..], more(kernel))));
        metric.encode(&mut encoder, facts)?;
    }
    for metric in of_memories() {
        let labelled = |memory: &MemorySample| {
            [("device", memory.device.to_string()), ("memory", memory.memory.to_owned())]
        };
        metric.encode(
            &mut encoder,
            sample.memories.iter().map(|memory| (memory, labelled(memory))),
        )?;
    }
    Ok(())
}

impl<T> Metric<T> {
    /// Writes it of each of some things, with their labels.
    fn encode<L: EncodeLabelSet>(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        each: impl Iterator<Item = (T, L)>,
    ) -> Result<(), Error> {
        let kind = match self.value {
            Counter(_) => MetricType::Counter,
            Gauge(_) => MetricType::Gauge,
            Times(_) => MetricType::Histogram,
        };
        let mut family =
            encoder.encode_descriptor(self.name, self.help, self.unit.as_ref(), kind)?;
        for (one, labels) in each {
            match self.value {
                Counter(value) => {
                    let Some(value) = value(one) else { continue };
                    let mut line = family.encode_family(&labels)?;
                    line.encode_counter::<NoLabelSet, _, u64>(&value, None)?;
                }
                Gauge(value) => {
                    let Some(value) = value(one) else { continue };
                    family.encode_family(&labels)?.encode_gauge(&value)?;
                }
                Times(times) => {
                    encode_histogram(&times(one), family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}

fn encode_histogram(times: &Histogram, mut lines: MetricEncoder<'_>) -> Result<(), Error> {
    let mut all = 0u64;
    let buckets: [(f64, u64); BUCKETS] = std::array::from_fn(|k| {
        let end = match k + 1 {
            BUCKETS => f64::INFINITY,
            _ => times.upper_end(k).as_secs_f64(),
        };
        // The device may write anything, and the encoder adds them up.
        let count = times.buckets[k].min(u64::MAX - all);
        all += count;
        (end, count)
    });
    lines.encode_histogram::<NoLabelSet>(times.sum().as_secs_f64(), all, &buckets, None)
}

fn labels_of(kernel: &KernelSample) -> [Label; 3] {
    [
        ("device", kernel.device.to_string().into()),
        ("kernel", kernel.name.into()),
        ("launch", kernel.launch.to_string().into()),
    ]
}

/// Metrics that are always 1, and say what they do by labels of their own.
fn facts_of_kernels<'a>() -> [(Metric<&'a KernelSample>, LabelsOf); 2] {
    let fact = |name, help| metric(name, None, help, Gauge(|_| Some(1.0)));
    [
        (fact("ring_kernel_info", "How the kernel runs"), |kernel| {
            vec![
                ("mode", kernel.mode.to_string().into()),
                ("memory", kernel.memory.to_string().into()),
                ("blocks", kernel.blocks.to_string().into()),
                ("threads", kernel.threads.to_string().into()),
                ("channels", kernel.channels.to_string().into()),
            ]
        }),
        (fact("ring_kernel_state", "The state that the kernel is in"), |kernel| {
            vec![("state", name_of(kernel.state).into())]
        }),
    ]
}

fn name_of(state: State) -> &'static str {
    match state {
        State::Launched => "launched",
        State::Active => "active",
        State::Inactive => "inactive",
        State::Terminated => "terminated",
        State::Faulted => "faulted",
        State::Yielded => "yielded",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::collector::Collector;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

    fn full_name<T>(Metric { name, unit, value, .. }: &Metric<T>) -> String {
        let unit = unit.as_ref().map_or(String::new(), |unit| format!("_{}", unit.as_str()));
        let end = if matches!(value, Counter(_)) { "_total" } else { "" };
        format!("{name}{unit}{end}")
    }

    #[derive(Debug)]
    struct One(Histogram);

    impl Collector for One {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
            let metric = metric("times", SECONDS, "Times", Times(|one: &One| one.0));
            metric.encode(&mut encoder, [(self, [("of", "it")])].into_iter())
        }
    }

    #[test]
    fn counts_that_cannot_be_are_written_all_the_same() {
        let counts = Histogram { buckets: [u64::MAX; BUCKETS], nanoseconds_per_tick: f64::MAX };
        let (mut registry, mut page) = (Registry::default(), String::new());
        registry.register_collector(Box::new(One(counts)));
        encode(&mut page, &registry).unwrap();
        let last = format!("times_seconds_bucket{{le=\"+Inf\",of=\"it\"}} {}", u64::MAX);
        assert!(page.contains(&last), "{page}");
    }

    #[test]
    fn each_metric_stands_in_the_documentation() {
        let mut names: Vec<_> = of_channels().iter().map(full_name).collect();
        names.extend(of_ports().iter().map(full_name));
        names.extend(of_kernels().iter().map(full_name));
        names.extend(facts_of_kernels().iter().map(|(metric, _)| full_name(metric)));
        names.extend(of_memories().iter().map(full_name));
        let documentation = include_str!("mod.rs");
        let lacking = |name: &&String| !documentation.contains(&format!("`{name}`"));
        assert_eq!(names.iter().filter(lacking).collect::<Vec<_>>(), [""; 0]);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 27);
    }
}
