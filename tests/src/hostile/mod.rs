//! A host and its device, played by one thread from a string of bytes: the device is idle, and the
//! script writes what it would write, honestly or not, between the calls of the host. Whatever the
//! device's lines say, no call panics or outlasts its deadline, each error is one that the lines
//! explain, and answers from before the first lie are delivered.

mod device;
mod host;

use self::device::Liar;
use self::host::User;
use crate::{WAYS, over};
use ring_example_kernels::FragileInOrder;
use ring_host::device::quirks::MemoryProbe;
use ring_host::device::{Quirks, cpu::Cpu};
use ring_host::kernels::{Echo, EchoMessage};
use ring_host::{
    DeviceFault, Kernel, KernelHandle, LaunchConfig, Runtime, RuntimeConfig, StateError,
};
use ring_shared::ring::{Control, Seen, decide};
use std::time::Duration;

/// A kernel whose answers are known.
pub trait Known: Kernel {
    /// Request `i`.
    fn request(i: u64) -> Self::Request;

    /// Its answer.
    fn answer(i: u64) -> Self::Response;

    /// Reads and writes what the kernel keeps from message to message, if it does.
    fn keep(_: &mut KernelHandle<Self>, _: u32, _: Duration) -> Result<(), StateError> {
        Ok(())
    }
}

impl Known for Echo {
    fn request(i: u64) -> EchoMessage {
        EchoMessage::from_seed(i)
    }

    fn answer(i: u64) -> EchoMessage {
        Self::request(i).answer()
    }
}

impl Known for FragileInOrder {
    fn request(i: u64) -> u64 {
        i.wrapping_mul(32) // never 13
    }

    fn answer(i: u64) -> u64 {
        Self::request(i).wrapping_mul(Self::request(i))
    }

    fn keep(
        kernel: &mut KernelHandle<Self>,
        channel: u32,
        limit: Duration,
    ) -> Result<(), StateError> {
        kernel.write_state(channel, &7, limit)?;
        kernel.read_state(channel, limit).map(|kept| assert_eq!(kept, 7, "nobody else writes it"))
    }
}

/// What a script is read from; zeros behind its end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.next()))
    }

    /// A small number, below or above zero; mostly very small.
    fn around(&mut self) -> u64 {
        let n = i64::from(self.next() as i8);
        (if n % 2 == 0 { n / 2 % 3 } else { n / 4 }) as u64
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// What is true of a channel.
#[derive(Debug)]
struct Channel {
    capacity: u64,
    /// Index of the first message. All that follows counts from there.
    start: u64,
    /// Requests that were accepted.
    sent: u64,
    /// Answers that were received.
    received: u64,
    /// Answers that the device has announced honestly.
    announced: u64,
    /// Below that, the receiver has seen the honest announcement.
    seen: u64,
    /// Above that, it has seen nothing, honest or not.
    bound: u64,
    /// Index after the last answer that was inline.
    run_start: u64,
    /// What the device has written honestly into the control atom of each of its lines.
    shown: Vec<Control>,
    /// All that the device ever said to have consumed.
    consumed: Vec<u64>,
    lies: Lies,
    /// The receiver has returned the end: nothing follows it.
    over: bool,
}

/// Where the device has lied.
#[derive(Clone, Copy, Debug, Default)]
struct Lies {
    bell: bool,
    slots: bool,
    credit: bool,
    acknowledged: bool,
    left: bool,
}

impl Channel {
    fn new((capacity, lines): (u32, u32), start: u64) -> Channel {
        Channel {
            capacity: capacity.into(),
            start,
            sent: 0,
            received: 0,
            announced: 0,
            seen: 0,
            bound: 0,
            run_start: start,
            shown: vec![Control::behind_inline(start, start); lines as usize],
            consumed: vec![0],
            lies: Lies::default(),
            over: false,
        }
    }

    /// What an honest line shows a receiver that has taken all that it has seen: how far it may go now.
    fn looked(&self) -> u64 {
        let next = self.start + self.seen;
        let line = self.shown[next as usize & (self.shown.len() - 1)];
        match decide(line, next, self.capacity as u32) {
            Seen::Nothing => self.seen,
            Seen::Inline => self.seen + 1,
            Seen::Slots(n) => self.seen + u64::from(n),
            Seen::Corrupt(corrupt) => panic!("{corrupt:?} in {self:?}"),
        }
    }

    /// Answers below this must be delivered, and as the device wrote them.
    fn certain(&self) -> u64 {
        if self.lies.bell { self.seen } else { self.announced }
    }
}

/// What is true of a kernel, whoever calls.
#[derive(Debug)]
struct Truth {
    channels: Vec<Channel>,
    /// Answers are there as soon as they are announced.
    mapped: bool,
    /// It is launched once.
    stays: bool,
    /// Launches that have left.
    left: u64,
    /// Sends are accepted.
    active: bool,
    /// It was asked to terminate.
    leaving: bool,
    /// The driver was made to report launches as ended that should not have ended.
    ended: bool,
    fault: Option<DeviceFault>,
}

impl Truth {
    /// Takes note of a fault, which something must explain, and which stays.
    fn explain(&mut self, fault: &DeviceFault) {
        let any = |lied: fn(&Lies) -> bool| self.channels.iter().any(|channel| lied(&channel.lies));
        let explained = match fault {
            DeviceFault::Corrupt { channel, .. } => {
                let Lies { bell, credit, left, .. } = self.channels[*channel as usize].lies;
                bell || credit || left
            }
            DeviceFault::Left { .. } | DeviceFault::HandlerPanicked { .. } => {
                any(|lies| lies.acknowledged)
            }
            DeviceFault::Refused { .. } => self.ended || any(|lies| lies.left),
            _ => false,
        };
        assert!(explained, "nothing explains '{fault}': {self:?}");
        match &self.fault {
            None => self.fault = Some(fault.clone()),
            Some(first) => assert_eq!(fault, first, "the first fault counts"),
        }
    }
}

/// An idle device, and a way into its lines.
#[derive(Debug)]
pub struct Bed {
    host: Runtime,
    memory_probe: MemoryProbe,
    blocks: usize,
}

impl Default for Bed {
    fn default() -> Bed {
        Bed::new()
    }
}

impl Bed {
    /// Opens the device, with so little memory that a leak is soon found.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn new() -> Bed {
        let (pinned_bytes, device_bytes) = (256 << 10, 256 << 10);
        let options = RuntimeConfig { pinned_bytes, device_bytes, ..RuntimeConfig::default() };
        let (device, host) = over(|| Quirks::of(Cpu::open()).idle_device(), options);
        let memory_probe = device.memory_probe();
        Bed { host, blocks: memory_probe.blocks(), memory_probe }
    }

    /// Plays a script, from launch to drop. For one thread at a time.
    ///
    /// # Panics
    /// If the host does what it should not.
    pub fn play(&self, script: &[u8]) {
        let mut script = Bytes(script);
        match script.below(3) {
            0 => self.play_with::<FragileInOrder>(&mut script),
            _ => self.play_with::<Echo>(&mut script),
        }
        self.memory_probe.look(|kernels| assert!(kernels.is_empty(), "a kernel was left behind"));
        assert_eq!(self.memory_probe.blocks(), self.blocks, "blocks of memory");
    }

    fn play_with<K: Known>(&self, script: &mut Bytes<'_>) {
        let (mode, memory) = script.pick(&WAYS);
        let (capacity, channels) = (script.pick(&[4, 1, 2, 16, 64]), 1 + script.below(3) as u32);
        let start = script.pick(&[0, 0, (1 << 32) - 20, (1 << 32) - 1, 1 << 40, 1 << 63]);
        let launch =
            LaunchConfig::default().mode(mode).memory(memory).capacity(capacity).channels(channels);
        let window = script.pick(&[1, 2, 64]).min(capacity);
        let launch = launch.threads(64).payload_bytes(256).start_index(start).window(window);
        let kernel = self.host.launch::<K>(launch).unwrap_or_else(|error| panic!("{error}"));
        let mapped = memory == ring_host::Memory::Mapped;
        let rings = (capacity, kernel.window());
        let truth = Truth {
            channels: (0..channels).map(|_| Channel::new(rings, start)).collect(),
            mapped,
            stays: mode == ring_host::Mode::Persistent,
            left: 0,
            active: false,
            leaving: false,
            ended: false,
            fault: None,
        };
        let mut user = User::new(kernel, truth);
        let liar = Liar { memory_probe: &self.memory_probe };
        if script.below(8) > 0 {
            user.activate(&liar);
        }
        while !script.0.is_empty() {
            let channel = script.below(channels as usize);
            match script.below(10) {
                0..5 => user.act(script, channel, &liar),
                5..8 => liar.work::<K>(&mut user.truth, script, channel, user.kernel.launches()),
                _ => liar.lie(&mut user.truth, script, channel),
            }
        }
        user.receive_what_is_certain();
        if script.0.len().is_multiple_of(2) || user.truth.channels[0].sent % 16 != 7 {
            self.memory_probe.end();
            user.truth.ended = true;
        }
        user.leave();
    }
}
