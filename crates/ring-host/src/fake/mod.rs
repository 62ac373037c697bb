//! A device that does what a test says, step by step: nothing runs on it, launches and copies end when
//! the test lets them, and the test writes what a kernel would. It judges what cannot be arranged on
//! threads: what the host does between two steps of the device.

mod channels;
mod device;
mod faults;
mod launch_slot;
mod life;
mod scheduling;
mod transfers;

use self::device::{Device, Worker};
use self::launch_slot::{Fake, refused};
use crate::deadline::Patience;
use crate::device::cpu::Cpu;
use crate::device::{Demand, Driver, Grid, LaunchSlot, Launched, Occupancy, Resources, Ticks};
use crate::drive::device_kernel::DeviceKernel;
use crate::drive::selection::Candidate;
use crate::drive::{Drive, DriveConfig};
use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::arena::Arena;
use crate::memory::plan::Plan;
use crate::memory::region::Region;
use crate::mode::{Memory, Mode};
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
pub(crate) fn drive(mode: Mode, memory: Memory) -> DriveConfig {
    let launch = LaunchConfig::default();
    DriveConfig {
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
    pub launch_slot: Arc<Fake>,
    pub core: Arc<KernelCore>,
    /// How much of the device is occupied.
    occupancy: Occupancy,
}

impl Bed {
    /// A kernel of so many channels that is driven so; one that is simply resident is launched.
    fn new(drive: DriveConfig, channels: u32) -> Bed {
        Bed::with(drive, Plan { channels, ..plan(drive) })
    }

    /// A kernel whose memory is laid out so.
    fn with(drive: DriveConfig, plan: Plan) -> Bed {
        let launch_slot = Arc::new(Fake::default());
        let driver: Arc<dyn Driver> = Cpu::open();
        let pinned = Arena::pinned(&driver, 256 << 10).expect("pinned memory");
        let device = Arena::device(&driver, 256 << 10).expect("device memory");
        let region = Region::new(plan, Some(&pinned), &device).expect("room");
        let config = drive;
        let drive = Drive::new(config, &region, &*launch_slot).expect("a first copy");
        if config.is_resident() {
            // SAFETY: nothing runs on the device.
            let launched = unsafe { launch_slot.launch(false) };
            assert_eq!(launched, Ok(Launched::Yes));
        }
        let block = Resources { blocks: 1, ..Resources::default() };
        let occupancy = Occupancy::new(1, Resources { blocks: plan.channels, ..block });
        let demand = Demand { kernel: "echo", blocks: plan.channels, block, relaunched: false };
        let reservation = occupancy.reserve(demand).expect("an empty device");
        let place = Arc::clone(&launch_slot) as Arc<dyn LaunchSlot>;
        let clock = (Ticks::Clock { khz: CLOCK }, Patience::Yield);
        let grid = Grid { blocks: plan.channels, threads: 1, cooperative: false };
        let device = DeviceKernel::new(
            ("echo", "fake".into()),
            clock,
            (region, None),
            (grid, place, reservation),
        );
        let core = Arc::new(KernelCore::new(device, drive));
        let selection = Candidate::for_probe(config.mode, config.memory).selection;
        let kernel = KernelHandle::new(Arc::clone(&core), selection, false);
        Bed { kernel, launch_slot, core, occupancy }
    }

    /// An active kernel: its channels have acknowledged, and the launch that did so has left, unless the
    /// kernel is persistent.
    pub fn active(drive: DriveConfig, channels: u32) -> Bed {
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
        if matches!(self.core.drive, Drive::Scheduled(_)) {
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
        self.launch_slot.end();
    }

    /// Launches that were made.
    fn launches(&self) -> usize {
        self.launch_slot.launches().len()
    }

    /// What the device sees.
    fn device(&self) -> Device {
        Device::new(&self.core)
    }

    /// A worker on a channel.
    fn worker(&self, channel: u32) -> Worker {
        self.device().worker(channel)
    }

    /// The command that the host has written last.
    fn ordered(&self) -> Command {
        self.core.device.commanded()
    }

    /// A step of the scheduler, if there is one.
    fn step(&self) {
        self.core.after_idle_poll();
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
        self.launch_slot.forget(); // what it calls may hold what holds it
    }
}

/// The memory of a kernel that is driven so.
fn plan(drive: DriveConfig) -> Plan {
    // The fake device looks at one line, that in the channel's block.
    let launch = LaunchConfig::default().capacity(SLOTS).window(1).payload_bytes(256);
    let cpu = Cpu::open();
    let plan = launch.check_device::<Echo>(cpu.info()).expect("a launch that can be");
    Plan { memory: drive.memory, budgets: drive.budgets, ..plan }
}
