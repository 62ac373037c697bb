//! Where sequences are played: CPU threads, every emulated platform, a GPU.

use super::launches::Launched;
use proptest::prelude::*;
use ring_host::device::quirks::NAMES;
use ring_host::device::{Driver, Quirks, cpu::Cpu};
use ring_host::{Memory, Mode, Runtime, RuntimeConfig};
use ring_tests::{cpu, opened};
use std::cell::OnceCell;
use std::time::Duration;

/// A place to play on.
pub struct Platform {
    pub name: &'static str,
    /// It lacks something: a mode or a memory that is forced may be refused.
    pub lacks: bool,
    /// It breaks: a kernel on it may be lost, and an error says so.
    pub breaks: bool,
    host: Host,
}

enum Host {
    /// One for all sequences.
    Shared(OnceCell<Runtime>, fn(&'static str) -> Runtime),
    /// Each sequence has a device of its own: what breaks after some operations does so anew.
    Own(fn(&'static str) -> Runtime),
}

fn emulated(name: &'static str) -> Runtime {
    let driver = Quirks::named(Cpu::open(), name).unwrap();
    opened(&driver, RuntimeConfig::default())
}

impl Platform {
    pub fn cpu() -> Platform {
        let host = Host::Shared(OnceCell::new(), |_| cpu());
        Platform { name: "CPU threads", lacks: false, breaks: false, host }
    }

    /// That GPU.
    pub fn gpu(runtime: Runtime) -> Platform {
        let host = Host::Shared(OnceCell::from(runtime), |_| unreachable!("it is open"));
        Platform { name: "a GPU", lacks: false, breaks: false, host }
    }

    /// Every emulated platform that has a name. One that is not known here must not lose a kernel.
    pub fn emulated() -> impl Iterator<Item = Platform> {
        NAMES.into_iter().map(|(name, _)| {
            let breaks = matches!(
                name,
                "device-fault"
                    | "device-reset"
                    | "watchdog"
                    | "failing-copies"
                    | "failing-copies-beside"
                    | "failing-graphs"
            );
            let host = match breaks {
                true => Host::Own(emulated),
                false => Host::Shared(OnceCell::new(), emulated),
            };
            Platform { name, lacks: true, breaks, host }
        })
    }

    /// The device for the next sequence.
    pub fn host(&self) -> Runtime {
        match &self.host {
            Host::Shared(host, open) => host.get_or_init(|| open(self.name)).clone(),
            Host::Own(open) => open(self.name),
        }
    }
}

/// What breaks, and when: sooner than on the platforms that have names.
#[derive(Clone, Copy, Debug)]
pub enum Break {
    /// The device, when a kernel is found to have handled so many messages.
    Device(u64),
    /// The device, when a launch is found to have run for so many milliseconds.
    Watchdog(u64),
    /// Copies, from that one on.
    Copies(u64),
    /// Copies beside a launch, from that one on.
    Beside(u64),
    /// Launches by a graph, from that one on.
    Graphs(u64),
    /// Every so many-th launch or copy.
    Handles(u64),
}

pub fn breaks() -> impl Strategy<Value = Break> {
    prop_oneof![
        3 => (1..150u64).prop_map(Break::Device),
        1 => (70..100u64).prop_map(Break::Watchdog), // a probe's launches stay for 50 ms
        2 => (5..80u64).prop_map(Break::Copies),
        2 => (1..80u64).prop_map(Break::Beside),
        2 => (1..12u64).prop_map(Break::Graphs),
        1 => (2..12u64).prop_map(Break::Handles),
    ]
}

impl Break {
    /// A device that breaks so, if it can be opened at all.
    pub fn host(self) -> Option<Runtime> {
        let cpu = || Quirks::of(Cpu::open());
        let open = |driver: Quirks| {
            let slow = driver.info().watchdog;
            let host = Runtime::over(driver, RuntimeConfig::default());
            match host {
                Ok(host) => Some(host),
                Err(error) => {
                    assert!(slow, "{error}"); // the probe's own launches were too long for it
                    None
                }
            }
        };
        open(match self {
            Break::Device(messages) => cpu().fault_after(messages),
            Break::Watchdog(ms) => cpu().watchdog(Duration::from_millis(ms)),
            Break::Copies(n) => cpu().unmapped().failing_copies(n),
            Break::Beside(n) => cpu().unmapped().failing_copies_beside(n),
            Break::Graphs(n) => cpu().failing_graphs(n),
            Break::Handles(n) => cpu().invalid_handles(n),
        })
    }

    /// The launch with which that breaks something. What is forced may not be left, and then fails for
    /// good; what is not, goes on in another way.
    pub fn launched(self, launched: Launched) -> Launched {
        let (mode, memory) = launched.way;
        match self {
            Break::Watchdog(_) => launched.lasting(),
            Break::Beside(n) | Break::Graphs(n) if n.is_multiple_of(3) => {
                launched.by(Mode::Auto, Memory::Auto)
            }
            Break::Graphs(_) => launched.by(Mode::Graph, memory),
            Break::Beside(_) => launched.by(mode, Memory::StagedAsync),
            Break::Copies(_) if memory == Memory::Mapped => launched.by(mode, Memory::Auto),
            _ => launched,
        }
    }

    /// A platform for the models, on which that breaks.
    pub fn platform() -> Platform {
        let host = Host::Own(|_| unreachable!("opened by `Break::host`"));
        Platform { name: "a device that breaks", lacks: true, breaks: true, host }
    }
}
