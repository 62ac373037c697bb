//! What a page of metrics says: its text read into plain structures.
//!
//! The text is Prometheus's or OpenMetrics', of which only the lines of ring's metrics are read. Lines that cannot be read
//! are passed over: a page may have metrics of others, and those of a newer version.

use super::trouble::Trouble;
use std::collections::BTreeMap;

/// What a page said at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The kernels.
    pub kernels: BTreeMap<KernelId, Kernel>,
    /// Their channels.
    pub channels: BTreeMap<ChannelId, Channel>,
    /// Links from their kernels' ports, of all channels together.
    pub links: BTreeMap<LinkId, Link>,
    /// Memory of runtimes, by device and by its name.
    pub memories: BTreeMap<(String, String), Memory>,
}

/// Which kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelId {
    /// Its device.
    pub device: String,
    /// Its number among the launches of its runtime.
    pub launch: Option<u64>,
    /// Its name.
    pub kernel: String,
}

/// Which channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelId {
    /// Its kernel.
    pub kernel: KernelId,
    /// Its number.
    pub channel: u64,
}

/// Which link.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId {
    /// The kernel that writes it.
    pub kernel: KernelId,
    /// That kernel's port.
    pub port: String,
    /// The kernel that reads it, or the host.
    pub to: String,
}

/// A kernel. What the page does not have is `None`, or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kernel {
    /// Its state.
    pub state: Option<String>,
    /// How it runs.
    pub mode: Option<String>,
    /// Launches.
    pub launches: Option<f64>,
    /// Bytes of pinned memory that it occupies.
    pub pinned: Option<f64>,
    /// How long handlers ran.
    pub handler: Buckets,
    /// How long messages waited before.
    pub queueing: Buckets,
}

/// The upper ends of a histogram's buckets in seconds, growing, each with how many there were up to it.
pub type Buckets = Vec<(f64, f64)>;

/// A channel. What the page does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Channel {
    /// Messages handled.
    pub handled: Option<f64>,
    /// Bytes of requests sent.
    pub request_bytes: Option<f64>,
    /// Bytes of responses received.
    pub response_bytes: Option<f64>,
    /// How often a sender found no room.
    pub stalls: Option<f64>,
    /// Messages that the handler refused.
    pub refused: Option<f64>,
    /// Indices that could not be.
    pub index_errors: Option<f64>,
    /// Requests sent and not taken.
    pub waiting: Option<f64>,
    /// Requests in all rings that it takes from.
    pub inbox: Option<f64>,
    /// Responses that are not received.
    pub unread: Option<f64>,
}

/// A link. What the page does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// Messages sent.
    pub messages: Option<f64>,
    /// Bytes of them.
    pub bytes: Option<f64>,
    /// Messages that were not taken.
    pub waiting: Option<f64>,
    /// How full the fullest ring is, from 0 to 1.
    pub fullest: Option<f64>,
    /// How often a channel waited for room.
    pub stalls: Option<f64>,
}

/// Memory of a runtime.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// All bytes.
    pub bytes: Option<f64>,
    /// Those that no kernel occupies.
    pub free: Option<f64>,
}

impl Sample {
    /// Reads a page.
    pub fn of(page: &str) -> Result<Sample, Trouble> {
        let mut sample = Sample::default();
        let mut is_ours = false;
        for text in page.lines() {
            is_ours |=
                ["ring_", "# TYPE ring_", "# HELP ring_"].iter().any(|p| text.starts_with(p));
            if text.starts_with("ring_")
                && let Some(line) = Line::of(text)
            {
                sample.add(&line);
            }
        }
        if !is_ours {
            let is_metrics = page.lines().any(|text| Line::of(text).is_some());
            return Err(if is_metrics { Trouble::NoneOfOurs } else { Trouble::NoMetrics });
        }
        let grow = |buckets: &mut Buckets| buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        for kernel in sample.kernels.values_mut() {
            grow(&mut kernel.handler);
            grow(&mut kernel.queueing);
        }
        Ok(sample)
    }

    fn add(&mut self, line: &Line<'_>) {
        let Some(value) = Some(line.value).filter(|value| value.is_finite() && *value >= 0.0)
        else {
            return;
        };
        if line.metric.starts_with("ring_memory_") {
            self.add_of_memory(line, value);
        } else if let (Some(port), Some(to)) = (line.label("port"), line.label("to")) {
            let id = LinkId { kernel: line.kernel(), port: port.to_owned(), to: to.to_owned() };
            self.links.entry(id).or_default().add(line.metric, value);
        } else if let Some(channel) = line.label("channel").and_then(|text| text.parse().ok()) {
            let id = ChannelId { kernel: line.kernel(), channel };
            self.kernels.entry(id.kernel.clone()).or_default();
            self.channels.entry(id).or_default().add(line.metric, value);
        } else if line.label("kernel").is_some() {
            self.kernels.entry(line.kernel()).or_default().add(line, value);
        }
    }

    fn add_of_memory(&mut self, line: &Line<'_>, value: f64) {
        let name = |label| line.label(label).unwrap_or_default().to_owned();
        let memory = self.memories.entry((name("device"), name("memory"))).or_default();
        match line.metric {
            "ring_memory_bytes" => memory.bytes = Some(value),
            "ring_memory_free_bytes" => memory.free = Some(value),
            _ => {}
        }
    }
}

impl Kernel {
    fn add(&mut self, line: &Line<'_>, value: f64) {
        let label = |name| line.label(name).map(str::to_owned);
        let bucket =
            || Some((line.label("le")?.parse().ok().filter(|end: &f64| !end.is_nan())?, value));
        match line.metric {
            "ring_kernel_state" => self.state = label("state"),
            "ring_kernel_info" => self.mode = label("mode"),
            "ring_kernel_launches_total" => self.launches = Some(value),
            "ring_kernel_pinned_bytes" => self.pinned = Some(value),
            "ring_handler_seconds_bucket" => self.handler.extend(bucket()),
            "ring_queueing_seconds_bucket" => self.queueing.extend(bucket()),
            _ => {}
        }
    }
}

impl Channel {
    fn add(&mut self, metric: &str, value: f64) {
        let field = match metric {
            "ring_requests_handled_total" => &mut self.handled,
            "ring_requests_bytes_total" => &mut self.request_bytes,
            "ring_responses_bytes_total" => &mut self.response_bytes,
            "ring_send_stalls_total" => &mut self.stalls,
            "ring_requests_refused_total" => &mut self.refused,
            "ring_index_errors_total" => &mut self.index_errors,
            "ring_requests_waiting" => &mut self.waiting,
            "ring_inbox_depth" => &mut self.inbox,
            "ring_responses_waiting" => &mut self.unread,
            _ => return,
        };
        *field = Some(value);
    }
}

impl Link {
    /// Of one channel more.
    fn add(&mut self, metric: &str, value: f64) {
        let (field, together): (_, fn(f64, f64) -> f64) = match metric {
            "ring_port_messages_total" => (&mut self.messages, |a, b| a + b),
            "ring_port_bytes_total" => (&mut self.bytes, |a, b| a + b),
            "ring_port_waiting" => (&mut self.waiting, |a, b| a + b),
            "ring_port_stalls_total" => (&mut self.stalls, |a, b| a + b),
            "ring_port_fullest_ratio" => (&mut self.fullest, f64::max),
            _ => return,
        };
        *field = Some(field.map_or(value, |before| together(before, value)));
    }
}

/// A line of the text: `metric{label="value"} 1`. What follows the value, a time or an exemplar, is not read.
struct Line<'a> {
    metric: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Line<'a> {
    fn of(text: &'a str) -> Option<Line<'a>> {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != ':')?;
        let (metric, rest) = text.split_at(end);
        if metric.is_empty() || metric.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(rest) => labels(rest)?,
            None => (Vec::new(), rest),
        };
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Line { metric, labels, value })
    }

    fn label(&self, name: &str) -> Option<&str> {
        let (_, value) = self.labels.iter().find(|(label, _)| *label == name)?;
        Some(value)
    }

    fn kernel(&self) -> KernelId {
        let label = |name| self.label(name).unwrap_or_default().to_owned();
        let launch = self.label("launch").and_then(|launch| launch.parse().ok());
        KernelId { device: label("device"), launch, kernel: label("kernel") }
    }
}

type Labels<'a> = Vec<(&'a str, String)>;

/// Labels up to their closing brace, and what follows it.
fn labels(mut text: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    loop {
        text = text.trim_start_matches([' ', ',']);
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.split_once('=')?;
        let (value, rest) = quoted(rest.trim_start().strip_prefix('"')?)?;
        labels.push((name.trim(), value));
        text = rest;
    }
}

/// A label's value up to its closing quote, and what follows it. Characters that would command a terminal are replaced.
fn quoted(text: &str) -> Option<(String, &str)> {
    let (mut value, mut characters) = (String::new(), text.char_indices());
    while let Some((at, character)) = characters.next() {
        let character = match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => characters.next()?.1,
            other => other,
        };
        value.push(if character.is_control() { '?' } else { character });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"# HELP ring_requests_handled Messages handled.
# TYPE ring_requests_handled counter
ring_requests_handled_total{device="cpu",kernel="echo",launch="1",channel="0"} 7
ring_requests_handled_total{device="cpu",kernel="echo",launch="1",channel="1"} 100 1700000000
ring_inbox_depth{device="cpu",kernel="echo",launch="1",channel="1"} 3.5
ring_handler_seconds_bucket{le="+Inf",device="cpu",kernel="echo",launch="1"} 107 # {} 0.1
ring_handler_seconds_bucket{le="1e-06",device="cpu",kernel="echo",launch="1"} 100
ring_kernel_state{device="cpu",kernel="echo",launch="1",state="active"} 1
ring_memory_bytes{device="cpu",memory="pinned"} 1000
ring_memory_free_bytes{device="cpu",memory="pinned"} 10
other_total{kernel="echo",channel="9"} 5
# EOF
"#;

    #[test]
    fn a_page_is_read_whole() {
        let sample = Sample::of(PAGE).unwrap();
        let id = KernelId { device: "cpu".into(), launch: Some(1), kernel: "echo".into() };
        let kernel = &sample.kernels[&id];
        assert_eq!(sample.kernels.len(), 1);
        assert_eq!(kernel.state.as_deref(), Some("active"));
        assert_eq!(kernel.handler, [(1e-6, 100.0), (f64::INFINITY, 107.0)]);
        let channel = |channel| &sample.channels[&ChannelId { kernel: id.clone(), channel }];
        assert_eq!((channel(0).handled, channel(0).inbox), (Some(7.0), None));
        assert_eq!((channel(1).handled, channel(1).inbox), (Some(100.0), Some(3.5)));
        assert_eq!(sample.channels.len(), 2);
        let memory = &sample.memories[&("cpu".into(), "pinned".into())];
        assert_eq!((memory.bytes, memory.free), (Some(1000.0), Some(10.0)));
    }

    #[test]
    fn values_of_labels_may_have_any_characters() {
        let page = "ring_kernel_launches_total{kernel=\"a,}\\\"\\\\\u{1b}[2J\", device=\"\"} 2";
        let sample = Sample::of(page).unwrap();
        let (id, kernel) = sample.kernels.first_key_value().unwrap();
        assert_eq!((id.kernel.as_str(), id.launch), ("a,}\"\\?[2J", None));
        assert_eq!(kernel.launches, Some(2.0));
    }

    #[test]
    fn pages_of_others_are_refused() {
        for page in ["", "<html>\n<p class=\"a\">no</p>", "\u{0}", "{\"a\": 1}", "=\n{}\n9 9"] {
            assert!(matches!(Sample::of(page), Err(Trouble::NoMetrics)), "{page}");
        }
        assert!(matches!(Sample::of("up 1\n"), Err(Trouble::NoneOfOurs)));
        assert_eq!(Sample::of("# TYPE ring_requests_sent counter\n").unwrap(), Sample::default());
    }

    #[test]
    fn lines_that_cannot_be_read_are_passed_over() {
        for line in [
            "ring_",
            "ring_requests_waiting",
            "ring_requests_waiting{",
            "ring_requests_waiting{kernel",
            "ring_requests_waiting{kernel=",
            "ring_requests_waiting{kernel=\"",
            "ring_requests_waiting{kernel=\"a\\",
            "ring_requests_waiting{kernel=\"a\",channel=\"0\"",
            "ring_requests_waiting{kernel=\"a\",channel=\"0\"}",
            "ring_requests_waiting{kernel=\"a\",channel=\"0\"} soon",
            "ring_requests_waiting{kernel=\"a\",channel=\"0\"} NaN",
            "ring_requests_waiting{kernel=\"a\",channel=\"0\"} -1",
            "ring_requests_waiting{kernel=\"a\",channel=\"0\"} +Inf",
            "ring_requests_waiting{channel=\"-1\"} 1",
            "ring_requests_waiting\u{e9}{channel=\"1\"} 1",
        ] {
            assert_eq!(Sample::of(line).unwrap(), Sample::default(), "{line}");
        }
    }
}
