//! Everything that was measured, as it is printed and written.

use super::calls::Calls;
use super::drive::Load;
use super::load::rows::UnderLoad;
use super::machine::Machine;
use super::section::Section;
use super::settings::Settings;
use super::stats::{Rates, Times};
use crate::text::grouped;
use ring_host::{Memory, Mode};
use serde::{Serialize, Serializer};
use std::fmt::Display;

/// Why there is no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stop {
    /// What was asked for cannot be had here.
    Refused(String),
    /// Something went wrong: an answer was wrong, or none came. The command fails.
    Wrong(String),
    /// Ctrl-C came first.
    #[serde(serialize_with = "yes")]
    Interrupted,
}

impl Stop {
    /// The reason.
    pub fn why(&self) -> &str {
        match self {
            Stop::Refused(why) | Stop::Wrong(why) => why,
            Stop::Interrupted => "interrupted",
        }
    }
}

/// A figure, or why there is none.
pub type Found<T> = Result<T, Stop>;

/// A figure, or in its place an object that says why there is none.
struct Shown<'a, T>(&'a Found<T>);

impl<T: Serialize> Serialize for Shown<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Ok(value) => value.serialize(to),
            Err(stop) => stop.serialize(to),
        }
    }
}

/// Serializes a figure, or why there is none.
pub fn found<T: Serialize, S: Serializer>(found: &Found<T>, to: S) -> Result<S::Ok, S::Error> {
    Shown(found).serialize(to)
}

fn found_if<T: Serialize, S: Serializer>(
    found: &Option<Found<T>>,
    to: S,
) -> Result<S::Ok, S::Error> {
    found.as_ref().map(Shown).serialize(to)
}

fn named<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

fn yes<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(true)
}

/// Whether a figure is the ring's or a baseline's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The ring's, through the runtime's public interface.
    Ours,
    /// A baseline's.
    Baseline,
}

/// Round trips of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// Its name for programs.
    pub id: &'static str,
    /// What it is.
    pub name: String,
    /// `cuda` or `cpu`.
    pub device: &'static str,
    /// Whose.
    #[serde(skip)]
    pub whose: Whose,
    /// How long they took.
    #[serde(serialize_with = "found")]
    pub times: Found<Times>,
    /// Each round by itself.
    #[serde(flatten)]
    pub rounds: Rounds,
}

impl Latency {
    /// Nothing measured yet.
    pub fn new(id: &'static str, name: &str, device: &'static str) -> Latency {
        let whose = if id == "ring" { Whose::Ours } else { Whose::Baseline };
        let (times, rounds) = (Ok(Times::new()), Rounds::default());
        Latency { id, name: name.to_owned(), device, whose, times, rounds }
    }

    /// Whether each round used another page of pinned memory, and that makes a difference.
    pub fn by_page(&self) -> bool {
        self.device == "cuda" && matches!(self.id, "ring" | "flag")
    }
}

/// Round trips of each round, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rounds {
    /// Their medians.
    #[serde(rename = "p50_of_rounds_us")]
    pub p50: Vec<f64>,
    /// Their 99th percentiles.
    #[serde(rename = "p99_of_rounds_us")]
    pub p99: Vec<f64>,
}

impl Rounds {
    /// Adds a round of those times; nothing if there are none.
    pub fn add(&mut self, times: &Times) {
        self.p50.extend(times.percentile(50.0));
        self.p99.extend(times.percentile(99.0));
    }
}

/// How messages were sent when their rate was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shape {
    /// Rings, each with a host thread.
    pub channels: u32,
    /// Bytes of a request.
    pub bytes: usize,
    /// Bytes of a response.
    pub answer_bytes: usize,
    /// Threads of a block on the GPU; 0 on the CPU.
    pub threads: u32,
    /// Most messages that the host hands over at a time.
    pub batch: usize,
    /// Most messages on their way.
    pub depth: u64,
    /// Slots of a ring.
    pub capacity: u32,
}

impl Shape {
    /// That load, in batches and at a depth of this shape.
    pub fn load(&self, load: &Load) -> Load {
        Load { batch: self.batch, depth: self.depth, ..*load }
    }

    /// What decides how fast rings of one size of messages can be.
    pub fn in_words(&self) -> String {
        let slots = grouped(self.capacity.into());
        let depth = grouped(self.depth);
        format!("{slots} slots, {depth} in flight, batches of {}", self.batch)
    }

    /// Whether both are made of the same numbers, but for the threads of a block.
    pub fn has_rings_of(&self, other: &Shape) -> bool {
        *self == Shape { threads: self.threads, ..other.clone() }
    }
}

/// Messages a second of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Throughput {
    /// What was varied: rows of one sweep belong into one plot.
    pub sweep: &'static str,
    /// Who carried them: `echo`, `head/tail`, `rtrb` and so on.
    pub name: &'static str,
    /// `cuda` or `cpu`.
    pub device: &'static str,
    /// Whose.
    #[serde(skip)]
    pub whose: Whose,
    /// How.
    #[serde(flatten)]
    pub shape: Shape,
    /// Messages a second.
    #[serde(serialize_with = "found")]
    pub rate: Found<Rates>,
}

impl Throughput {
    /// Nothing measured yet.
    pub fn new(
        sweep: &'static str,
        (name, whose): (&'static str, Whose),
        device: &'static str,
        shape: Shape,
    ) -> Throughput {
        Throughput { sweep, name, device, whose, shape, rate: Ok(Rates::default()) }
    }

    /// The median, in millions a second.
    pub fn millions(&self) -> Option<f64> {
        self.rate.as_ref().ok()?.median().map(|rate| rate / 1e6)
    }

    /// Each run, in messages a second.
    pub fn runs(&self) -> &[f64] {
        self.rate.as_ref().map_or(&[], Rates::samples)
    }

    /// The median, in GB of requests a second.
    pub fn gigabytes(&self) -> Option<f64> {
        self.millions().map(|rate| rate * self.shape.bytes as f64 / 1e3)
    }
}

/// Bytes a second of plain copies.
#[derive(Clone, Debug, Serialize)]
pub struct Copies {
    /// `to the device` or `from the device`.
    pub name: &'static str,
    /// Bytes of a copy.
    pub bytes: usize,
    /// Bytes a second.
    #[serde(rename = "bytes_a_second", serialize_with = "found")]
    pub rate: Found<Rates>,
}

/// A mode in a memory.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// The mode.
    #[serde(serialize_with = "named")]
    pub mode: Mode,
    /// The memory.
    #[serde(serialize_with = "named")]
    pub memory: Memory,
    /// Round trips of messages that follow each other.
    #[serde(serialize_with = "found")]
    pub times: Found<Times>,
    /// Round trips to a kernel that had left the device; only where it does.
    #[serde(rename = "from_rest", serialize_with = "found_if")]
    pub at_rest: Option<Found<Times>>,
    /// Messages a second, in batches.
    #[serde(serialize_with = "found")]
    pub rate: Found<Rates>,
    /// Launches until then.
    pub launches: u64,
}

/// Kernels at once.
#[derive(Clone, Debug, Serialize)]
pub struct Many {
    /// Host threads that drove them.
    pub hosts: usize,
    /// Round trips of one kernel alone.
    #[serde(serialize_with = "found")]
    pub alone: Found<Times>,
    /// Round trips of each, all at once.
    #[serde(serialize_with = "found")]
    pub each: Found<Vec<Times>>,
}

/// A rate with many messages or large rings.
#[derive(Clone, Debug, Serialize)]
pub struct Growth {
    /// Messages of each measurement.
    pub messages: u64,
    /// Slots of each ring.
    pub capacity: u32,
    /// Messages a second.
    #[serde(serialize_with = "found")]
    pub rate: Found<Rates>,
    /// Memory of the process before, in KiB; 0 if it cannot be read.
    #[serde(rename = "resident_kib_before")]
    pub before_kib: u64,
    /// The same after.
    #[serde(rename = "resident_kib_after")]
    pub after_kib: u64,
}

/// The device's telemetry of its own messages.
#[derive(Clone, Debug, Serialize)]
pub struct OnDevice {
    /// What it is.
    pub name: &'static str,
    /// Microseconds, or why there are none.
    #[serde(serialize_with = "found")]
    pub us: Found<f64>,
}

/// A section that was left out.
#[derive(Clone, Debug, Serialize)]
pub struct Skipped {
    /// The section.
    pub section: Section,
    /// Why.
    pub why: String,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Wrong {
    /// What was being measured.
    pub what: String,
    /// What was wrong.
    pub why: String,
}

/// Everything.
#[derive(Debug, Serialize)]
pub struct Report {
    /// On what.
    #[serde(skip)]
    pub machine: Machine,
    /// How long and how often.
    pub settings: Settings,
    /// What was measured.
    pub sections: Vec<Section>,
    /// What was left out, and why.
    pub skipped: Vec<Skipped>,
    /// Round trips.
    pub latency: Vec<Latency>,
    /// Latency under load.
    pub load: Option<UnderLoad>,
    /// Calls of many threads.
    pub calls: Vec<Calls>,
    /// By the device's clock.
    pub on_device: Vec<OnDevice>,
    /// Messages a second.
    pub throughput: Vec<Throughput>,
    /// Plain copies.
    pub copies: Vec<Copies>,
    /// Round trips of every scope and size.
    pub scopes: Vec<Latency>,
    /// Round trips through chains of kernels.
    pub graphs: Vec<Latency>,
    /// Round trips through kernels of two devices.
    pub peers: Vec<Latency>,
    /// Messages of whole computations.
    pub compute: Vec<Latency>,
    /// Modes and memories.
    #[serde(rename = "modes")]
    pub ways: Vec<Way>,
    /// Kernels at once.
    pub many: Option<Many>,
    /// Many messages, large rings.
    pub growth: Vec<Growth>,
    /// How long all of it took, in seconds.
    #[serde(rename = "took_s")]
    pub took: f64,
    /// What was being measured when Ctrl-C came, if it did.
    pub interrupted: Option<String>,
}

impl Report {
    /// Nothing measured yet.
    pub fn new(machine: Machine, settings: Settings) -> Report {
        Report {
            machine,
            settings,
            sections: Vec::new(),
            skipped: Vec::new(),
            latency: Vec::new(),
            load: None,
            calls: Vec::new(),
            on_device: Vec::new(),
            throughput: Vec::new(),
            copies: Vec::new(),
            scopes: Vec::new(),
            graphs: Vec::new(),
            peers: Vec::new(),
            compute: Vec::new(),
            ways: Vec::new(),
            many: None,
            growth: Vec::new(),
            took: 0.0,
            interrupted: None,
        }
    }

    /// Leaves out what was not measured because it was interrupted, and says so.
    pub fn interrupted(&mut self, during: String) {
        let some = |rates: &Found<Rates>| match rates {
            Ok(rates) => !rates.samples().is_empty(),
            Err(stop) => *stop != Stop::Interrupted,
        };
        let Report { latency, scopes, graphs, peers, compute, .. } = self;
        for rows in [latency, scopes, graphs, peers, compute] {
            rows.retain(|row| match &row.times {
                Ok(times) => times.count() > 0,
                Err(stop) => *stop != Stop::Interrupted,
            });
        }
        self.load.iter_mut().for_each(UnderLoad::interrupted);
        self.calls.retain(|row| {
            row.figures.as_ref().map_or_else(
                |stop| *stop != Stop::Interrupted,
                |figures| figures.rate.median().is_some(),
            )
        });
        self.on_device.retain(|row| row.us != Err(Stop::Interrupted));
        self.throughput.retain(|row| some(&row.rate));
        self.copies.retain(|row| some(&row.rate));
        self.ways.retain(|way| !matches!(way.times, Err(Stop::Interrupted)));
        self.growth.retain(|row| some(&row.rate));
        self.many.take_if(|many| matches!(many.each, Err(Stop::Interrupted)));
        self.interrupted = Some(during);
    }

    /// Rows of a sweep.
    pub fn sweep(&self, sweep: &str) -> impl Iterator<Item = &Throughput> {
        self.throughput.iter().filter(move |row| row.sweep == sweep)
    }

    /// Rows of growing numbers of messages, and those of growing rings behind them.
    pub fn growth_rows(&self) -> (&[Growth], &[Growth]) {
        let default = self.growth.first().map(|row| row.capacity);
        let other = |row: &Growth| Some(row.capacity) != default;
        let first = self.growth.iter().position(other).unwrap_or(self.growth.len());
        self.growth.split_at(first)
    }

    /// What went wrong, each with what was being measured.
    pub fn wrong(&self) -> Vec<Wrong> {
        let mut all = Vec::new();
        let mut note = |what: String, stop: Option<&Stop>| {
            if let Some(Stop::Wrong(why)) = stop {
                all.push(Wrong { what, why: why.clone() });
            }
        };
        let trips = [&self.latency, &self.scopes, &self.graphs, &self.peers, &self.compute];
        for row in trips.into_iter().flatten() {
            note(format!("{}: {}", row.device, row.name), row.times.as_ref().err());
        }
        for (what, stop) in self.load.iter().flat_map(UnderLoad::stops) {
            note(format!("under load, {what}"), stop);
        }
        for row in &self.calls {
            note(row.name(), row.figures.as_ref().err());
        }
        for row in &self.on_device {
            note(row.name.to_owned(), row.us.as_ref().err());
        }
        for row in &self.throughput {
            let what = format!("{} {} x {} bytes", row.name, row.shape.channels, row.shape.bytes);
            note(what, row.rate.as_ref().err());
        }
        for row in &self.copies {
            note(format!("copies {}", row.name), row.rate.as_ref().err());
        }
        for row in &self.ways {
            let what = format!("{} in {} memory", row.mode, row.memory);
            let at_rest = row.at_rest.as_ref().and_then(|times| times.as_ref().err());
            note(what.clone(), row.times.as_ref().err());
            note(format!("{what}, from rest"), at_rest);
            note(format!("{what}, throughput"), row.rate.as_ref().err());
        }
        if let Some(many) = &self.many {
            note("one kernel".to_owned(), many.alone.as_ref().err());
            note("kernels at once".to_owned(), many.each.as_ref().err());
        }
        for row in &self.growth {
            let what = format!("{} messages, {} slots", row.messages, row.capacity);
            note(what, row.rate.as_ref().err());
        }
        all
    }
}
