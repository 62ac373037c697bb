//! A report with invented figures, for tests.

use super::calls::{Calls, HELD, How};
use super::context::Context;
use super::cores::Cores;
use super::load::rows::{Carrier, Channels, Closed, Figures, Open, Round, UnderLoad};
use super::machine::Machine;
use super::report::{
    Copies, Found, Growth, Latency, Many, OnDevice, Report, Rounds, Shape, Skipped, Stop,
    Throughput, Way, Whose,
};
use super::ring::compute::{LARGEST, SWEEP};
use super::section::Section;
use super::settings::Settings;
use super::stats::{Rates, Times};
use crate::args::Bench;
use crate::interrupt::Interrupt;
use crate::kernels::KernelSource;
use crate::progress::Steps;
use ring_host::{Device, Devices, Memory, Mode, Runtime};
use std::time::Duration;

fn times(us: f64) -> Times {
    let mut times = Times::new();
    for k in 0..1000 {
        times.record(Duration::from_nanos((us * 1000.0) as u64 + u64::from(k > 980) * k));
    }
    times
}

fn rates(millions: f64) -> Rates {
    let mut rates = Rates::default();
    [0.9, 1.0, 1.1].into_iter().for_each(|part| rates.add(part * millions * 1e6));
    rates
}

fn row(sweep: &'static str, name: &'static str, channels: u32, bytes: usize, m: f64) -> Throughput {
    let batch = 512;
    let capacity = if name == "digest" { 1024 } else { 16_384 };
    let shape =
        Shape { channels, bytes, answer_bytes: bytes, threads: 512, batch, depth: 4096, capacity };
    let whose = if name == "echo" || name == "digest" { Whose::Ours } else { Whose::Baseline };
    let device = if sweep == "cpu" { "cpu" } else { "cuda" };
    Throughput { sweep, name, device, whose, shape, rate: Ok(rates(m)) }
}

fn figures(us: f64, rate: f64) -> Found<Figures> {
    let mut figures = Figures::new();
    for part in [0.9, 1.0, 1.1] {
        figures.add(&Round { times: times(us * part), rate: Some(rate * part) });
    }
    Ok(figures)
}

fn load() -> UnderLoad {
    let closed = |(carrier, in_flight, batch, us): (_, u64, _, f64)| {
        let figures = figures(us, in_flight as f64 / us * 1e6);
        Closed { carrier, in_flight, batch, figures }
    };
    let single = [1, 2, 4, 8, 16, 32].map(|n| (Carrier::Ring, n, 1, 1.8 + n as f64 / 20.0));
    let batched = [(64, 4.0), (256, 8.0), (1024, 20.0)];
    let batched = batched.map(|(n, us)| (Carrier::Ring, n, 512, us));
    let theirs = [1, 2].map(|n| (Carrier::HeadTail, n, 1, 3.0));
    let launched = [(Carrier::Launch, 1, 1, 9.0), (Carrier::Graph, 1, 1, 6.0)];
    let rates = [10_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000];
    let open = rates.map(|offered| {
        let clock = figures(0.02, offered as f64);
        let figures = figures(3.0, 30e6_f64.min(offered as f64));
        let mut row = Open { figures, clock, ..Open::new(offered) };
        row.judge();
        row
    });
    let channels = [(1, 1, 2.0), (8, 1, 2.2), (8, 8, 2.2), (16, 8, 3.0)];
    let channels = channels.map(|(channels, threads, us)| Channels {
        channels,
        threads,
        figures: figures(us, 1e6),
    });
    let closed = single.into_iter().chain(batched).chain(theirs).chain(launched).map(closed);
    UnderLoad {
        device: "cuda",
        closed: closed.collect(),
        open: open.into(),
        channels: channels.into(),
    }
}

fn calls() -> Vec<Calls> {
    let rows = [
        (How::Own, 1, 1, 2.0, 0.5),
        (How::Call, 1, 1, 2.05, 0.48),
        (How::Call, 1, 16, 2.1, 0.47),
        (How::Call, 64, 1, 60.0, 0.9),
        (How::Call, 64, 16, 12.0, 8.0),
        (How::Tickets(HELD), 64, 16, 9.0, 60.0),
    ];
    let row = |(how, threads, channels, us, rate): (_, _, _, f64, f64)| {
        let figures = figures(us, rate * 1e6);
        Calls { how, threads, channels, device: "cuda", figures }
    };
    rows.map(row).into()
}

/// Round trips of ours of so many microseconds.
fn trip((id, us): (&'static str, f64)) -> Latency {
    let rounds = Rounds { p50: [0.9, 1.0, 1.1].map(|part| part * us).into(), p99: vec![us; 3] };
    let row = Latency::new(id, &format!("{id} <there & back>"), "cuda");
    Latency { whose: Whose::Ours, times: Ok(times(us)), rounds, ..row }
}

/// Figures of every scope and size.
fn scopes() -> (Vec<Latency>, Vec<Throughput>) {
    let trips = [
        ("echo_64", 2.0),
        ("echo_64_warp", 2.1),
        ("echo_64_block", 2.4),
        ("sum_64", 2.6),
        ("echo_256", 2.3),
        ("echo_1024", 2.7),
        ("echo_4096", 4.0),
        ("add_10", 2.5),
        ("add_25", 3.5),
        ("add_100", 4.5),
    ];
    let rates = [
        ("echo_64_block", 1, 64, 8.0),
        ("sum_64", 1, 64, 7.0),
        ("echo", 1, 64, 150.0),
        ("echo_256", 1, 256, 60.0),
        ("echo_1024", 1, 1024, 20.0),
        ("echo_4096", 1, 4096, 4.0),
        ("echo", 8, 64, 600.0),
        ("echo_256", 8, 256, 160.0),
        ("echo_1024", 8, 1024, 45.0),
        ("echo_4096", 8, 4096, 12.0),
    ];
    let rates = rates.map(|(name, channels, bytes, m)| Throughput {
        whose: Whose::Ours,
        ..row("scopes", name, channels, bytes, m)
    });
    (trips.map(trip).into(), rates.into())
}

/// Figures of graphs.
fn graphs() -> (Vec<Latency>, Vec<Throughput>) {
    let trips = [
        ("echo", 2.0),
        ("graph_1", 2.3),
        ("graph_2", 2.8),
        ("graph_3", 3.3),
        ("graph_5", 4.3),
        ("graph_by_host", 4.6),
    ];
    let rates = [
        ("links", "times_8", 1, 16_384, 380.0),
        ("links", "times_8", 8, 16_384, 3300.0),
        ("links", "times_8", 56, 16_384, 9000.0),
        ("links", "times_8", 56, 4096, 11_000.0),
        ("links", "times_8", 1, 4096, 500.0),
        ("links", "times_8", 8, 4096, 4000.0),
        ("links", "pass_64", 1, 16_384, 350.0),
        ("keys", "times_8", 1, 16_384, 350.0),
        ("keys", "times_8", 4, 16_384, 380.0),
        ("keys", "times_8", 16, 16_384, 380.0),
        ("keys", "times_8", 64, 16_384, 290.0),
        ("keys", "pass_64", 1, 16_384, 240.0),
        ("keys", "pass_64", 64, 16_384, 190.0),
    ];
    let rates = rates.map(|(sweep, name, links, capacity, m)| {
        let row = row(sweep, name, links, 64, m);
        let shape = Shape { capacity, answer_bytes: 0, ..row.shape };
        Throughput { whose: Whose::Ours, shape, ..row }
    });
    (trips.map(trip).into(), rates.into())
}

/// Figures of two devices.
fn peers() -> (Vec<Latency>, Vec<Throughput>) {
    let trips = [
        ("peers_0", 2.3),
        ("peers_000", 3.1),
        ("peers_01", 3.0),
        ("peers_010", 3.6),
        ("peers_by_host", 4.6),
        ("grids", 4.6),
        ("grids_4", 9.4),
        ("grids_writes", 6.0),
        ("grids_writes_4", 15.6),
        ("page_rank_one", 8000.0),
        ("page_rank_two", 4100.0),
    ];
    let rates = [(1, 400.0), (8, 3000.0), (64, 5200.0)].map(|(links, m)| {
        let row = row("across", "times_8", links, 64, m);
        let shape = Shape { capacity: 16_384, answer_bytes: 0, ..row.shape };
        Throughput { whose: Whose::Ours, shape, ..row }
    });
    (trips.map(trip).into(), rates.into())
}

/// Figures of whole computations.
fn compute() -> (Vec<Latency>, Throughput) {
    let trips = [
        ("page_rank_rmat", 95.0),
        ("page_rank_uniform", 106.0),
        ("page_rank_links", 350.0),
        ("wave", 1810.0),
    ];
    let row = row(SWEEP, LARGEST, 64, 32, 6000.0);
    (trips.map(trip).into(), Throughput { whose: Whose::Ours, ..row })
}

/// Options as if none had been given.
pub fn options() -> Bench {
    Bench {
        device: Device::Cpu,
        quick: true,
        only: Vec::new(),
        list: false,
        samples: None,
        growth: false,
        ptx: Vec::new(),
        json: None,
        html: None,
    }
}

fn shipped() -> KernelSource {
    KernelSource::read(&[], Device::Cpu, Vec::new()).unwrap()
}

/// Lets `work` measure the CPU device.
pub fn with(interrupt: Interrupt, work: impl FnOnce(&Context<'_>)) {
    let devices = [1, 2].map(|_| Runtime::open(Device::Cpu).unwrap());
    let devices = Devices::of(devices).unwrap();
    let (cores, steps) = (Cores::find(), Steps::new(0, interrupt));
    let settings = Settings::of(&options());
    work(&Context {
        runtime: &devices[0],
        devices: &devices,
        kernels: &shipped(),
        gpu: None,
        cores: &cores,
        settings: &settings,
        steps: &steps,
        interrupt,
    });
}

/// The report.
pub fn report() -> Report {
    let runtime = Runtime::open(Device::Cpu).unwrap();
    let cores = Cores::find();
    let mut machine = Machine::look(&runtime, &shipped(), &cores);
    let processor = machine.facts.iter_mut().find(|(name, _)| *name == "processor").unwrap();
    processor.1 = "A & B <processor> \"x\" </script>".to_owned();
    let mut report = Report::new(machine, Settings::of(&options()));
    report.sections = Section::all().into();
    report.skipped = vec![Skipped { section: Section::Many, why: "it needs a GPU".to_owned() }];
    let latency = |id, device, us| {
        let rounds = Rounds { p50: vec![us; 3], p99: vec![us; 3] };
        let row = Latency::new(id, &format!("{id} <there & back>"), device);
        Latency { times: Ok(times(us)), rounds, ..row }
    };
    report.latency = vec![
        latency("ring", "cuda", 2.0),
        latency("flag", "cuda", 3.0),
        latency("launch", "cuda", 10.0),
        latency("graph", "cuda", 6.0),
        latency("ring", "cpu", 0.3),
        latency("rtrb", "cpu", 0.3),
    ];
    report.load = Some(load());
    report.calls = calls();
    report.on_device = vec![OnDevice { name: "one way", us: Ok(0.5) }];
    report.throughput = vec![
        row("head_tail", "echo", 1, 64, 130.0),
        row("head_tail", "head/tail", 1, 64, 110.0),
        row("head_tail", "head/tail", 1, 64, 100.0),
        row("channels", "echo", 1, 64, 130.0),
        row("channels", "echo", 2, 64, 250.0),
        row("channels", "echo", 4, 64, 450.0),
        row("size", "echo", 1, 16, 200.0),
        row("size", "echo", 1, 4096, 8.0),
        row("bandwidth", "digest", 4, 4096, 10.0),
        row("cpu", "echo", 1, 64, 20.0),
        row("cpu", "rtrb", 1, 64, 15.0),
        row("cpu", "rtrb (chunks)", 1, 64, 25.0),
    ];
    let refused = Err(Stop::Refused("no more than 512 threads".to_owned()));
    report.throughput.push(Throughput { rate: refused, ..row("threads", "echo", 1, 64, 1.0) });
    report.copies =
        vec![Copies { name: "to the device", bytes: 1 << 26, rate: Ok(rates(55_000.0)) }];
    report.ways = vec![
        Way {
            mode: Mode::Persistent,
            memory: Memory::Mapped,
            times: Ok(times(2.0)),
            at_rest: None,
            rate: Ok(rates(100.0)),
            launches: 1,
        },
        Way {
            mode: Mode::Graph,
            memory: Memory::StagedSync,
            times: Err(Stop::Refused("graphs fail <here>".to_owned())),
            at_rest: None,
            rate: Err(Stop::Refused("graphs fail <here>".to_owned())),
            launches: 0,
        },
    ];
    let each = Ok((0..16).map(|k| times(2.0 + f64::from(k) / 20.0)).collect());
    report.many = Some(Many { hosts: 16, alone: Ok(times(2.0)), each });
    let growth = |messages, capacity, m| Growth {
        messages,
        capacity,
        rate: Ok(rates(m)),
        before_kib: 100,
        after_kib: 100,
    };
    report.growth = vec![
        growth(1_000_000, 4096, 100.0),
        growth(10_000_000, 256, 95.0),
        growth(10_000_000, 4096, 100.0),
        growth(10_000_000, 65_536, 99.0),
    ];
    let (trips, rates) = scopes();
    report.scopes = trips;
    report.throughput.extend(rates);
    let (trips, rates) = graphs();
    report.graphs = trips;
    report.throughput.extend(rates);
    let (trips, rates) = peers();
    report.peers = trips;
    report.throughput.extend(rates);
    let (trips, rate) = compute();
    report.compute = trips;
    report.throughput.push(rate);
    report.took = 1.5;
    report
}
