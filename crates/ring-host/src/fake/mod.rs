//! A device that does what a test says, step by step: nothing runs on it, launches and copies end when
//! the test lets them, and the test writes what a kernel would. It judges what cannot be arranged on
//! threads: what the host does between two steps of the device.

mod channels;
mod device;
mod faults;
mod life;
mod pumping;
mod station;
mod trips;

use self::device::{Device, Worker};
use self::station::{Fake, refused};
use crate::deadline::Patience;
use crate::device::cpu::Cpu;
use crate::device::{Demand, Driver, Launched, Residency, Resources, Station};
use crate::drive::mode::{Memory, Mode};
use crate::drive::scheduler::{Drive, Pump};
use crate::drive::selection::Chosen;
use crate::kernel::core::Shared;
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Arena;
use crate::memory::region::{Plan, Region};
use ring_device::kernels::{Echo, EchoMessage};
use ring_shared::layout::{Command, State};
use std::sync::Arc;
use std::time::Duration;

/// A deadline that no working call reaches.
const LONG: Duration = Duration::from_secs(60);

/// A deadline that is reached at once.
const NONE: Duration = Duration::ZERO;

/// Slots of each ring.
const SLOTS: u32 = 8;

/// The device's clock, in kHz: half a nanosecond a tick.
const CLOCK: u32 = 2_000_000;

/// Message `seed` of a test.
fn message(seed: u64) -> EchoMessage {
    EchoMessage::from_seed(seed)
}

/// How a kernel is driven: both free to change, calls that do not block, the budgets of a default launch.
pub(crate) fn drive(mode: Mode, memory: Memory) -> Drive {
    let launch = LaunchConfig::default();
    Drive {
        mode,
        memory,
        mode_is_free: true,
        memory_is_free: true,
        calls_block: false,
        budgets: launch.wire_budgets(mode, memory),
        fallback: launch.wire_budgets(Mode::EventDriven, Memory::Mapped),
    }
}

/// A kernel on a fake device.
pub(crate) struct Bed {
    kernel: KernelHandle<Echo>,
    pub station: Arc<Fake>,
    pub shared: Arc<Shared>,
    /// How much of the device is occupied.
    residency: Residency,
}

impl Bed {
    /// A kernel of so many channels that is driven so; one that is simply resident is launched.
    fn new(drive: Drive, channels: u32) -> Bed {
        Bed::with(drive, Plan { channels, ..plan(drive) })
    }

    /// A kernel whose memory is laid out so.
    fn with(drive: Drive, plan: Plan) -> Bed {
        let station = Arc::new(Fake::default());
        let driver: Arc<dyn Driver> = Arc::new(Cpu::open());
        let pinned = Arena::pinned(&driver, 256 << 10).expect("pinned memory");
        let device = Arena::device(&driver, 256 << 10).expect("device memory");
        let region = Region::new(plan, Some(&pinned), &device).expect("room");
        let simple = (drive.mode, drive.memory) == (Mode::Persistent, Memory::Mapped);
        let pump = (!simple).then(|| Pump::new(drive, &region, &*station).expect("a first copy"));
        if simple {
            // SAFETY: nothing runs on the device.
            let launched = unsafe { station.launch(false) };
            assert_eq!(launched, Ok(Launched::Yes));
        }
        let block = Resources { blocks: 1, ..Resources::default() };
        let residency = Residency::new(1, Resources { blocks: plan.channels, ..block });
        let demand = Demand { kernel: "echo", blocks: plan.channels, block, relaunched: false };
        let share = residency.reserve(demand).expect("an empty device");
        let place = Arc::clone(&station) as Arc<dyn Station>;
        let clock = (CLOCK, Patience::Yield);
        let shared = Shared::new("echo", clock, (region, None), (place, pump), share);
        let choice = Chosen::for_probe(drive.mode, drive.memory).choice;
        let kernel = KernelHandle::new(Arc::clone(&shared), choice, false);
        Bed { kernel, station, shared, residency }
    }

    /// An active kernel: its channels have acknowledged, and the launch that did so has left, unless the
    /// kernel is persistent.
    pub fn active(drive: Drive, channels: u32) -> Bed {
        let mut bed = Bed::new(drive, channels);
        bed.activate();
        bed
    }

    /// Activates the kernel.
    fn activate(&mut self) {
        for tries in 0.. {
            let next = self.ordered().epoch.wrapping_add(1);
            self.device().obey_as(next, State::Active);
            if self.kernel.activate(NONE).is_ok() {
                break;
            }
            assert!(tries < 1000, "it cannot be activated");
            self.leave();
        }
        if self.shared.pump.is_some() {
            self.rest();
        }
    }

    /// All launches leave, and what they left is carried back.
    fn rest(&mut self) {
        self.leave();
        self.kernel.rest(LONG).expect("it leaves");
    }

    /// All launches leave.
    fn leave(&self) {
        self.device().leave(self.launches() as u64);
        self.station.end();
    }

    /// Launches that were made.
    fn launches(&self) -> usize {
        self.station.launches().len()
    }

    /// What the device sees.
    fn device(&self) -> Device {
        Device::new(&self.shared)
    }

    /// A worker on a channel.
    fn worker(&self, channel: u32) -> Worker {
        self.device().worker(channel)
    }

    /// The command that the host has written last.
    fn ordered(&self) -> Command {
        self.shared.ordered()
    }

    /// A step of the pump, if there is one.
    fn step(&self) {
        self.shared.drive();
    }

    /// The same; it has come to rest, or was launched again at once.
    fn rest_quietly(&mut self) {
        self.leave();
        self.step();
    }

    /// As [`step`](Self::step).
    fn step_once(&mut self) {
        self.step();
    }

    /// Sends the messages from `first` to before `end` on channel 0, all at once.
    fn send(&mut self, first: u64, end: u64) {
        let messages: Vec<_> = (first..end).map(message).collect();
        assert_eq!(self.kernel.try_send_batch(&messages), Ok(messages.len()));
    }

    /// Receives the answers to messages from `first` to before `end` on channel 0: they are there.
    fn receive(&mut self, first: u64, end: u64) {
        for seed in first..end {
            assert_eq!(self.kernel.try_recv(), Ok(message(seed).answer()), "answer {seed}");
        }
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        self.station.forget(); // what it calls may hold what holds it
    }
}

/// The memory of a kernel that is driven so.
fn plan(drive: Drive) -> Plan {
    let launch = LaunchConfig::default().capacity(SLOTS).payload_bytes(256);
    let cpu = Cpu::open();
    let plan = launch.check_device::<Echo>(cpu.info()).expect("a launch that can be");
    Plan { memory: drive.memory, budgets: drive.budgets, ..plan }
}
