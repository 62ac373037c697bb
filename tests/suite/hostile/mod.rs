//! The other side is hostile: a device that writes what it should not, between the host's calls and
//! beside them, and a host that does. Neither leaves its memory, neither hangs, and each reports why it
//! ends.

mod beside;
mod gpu;
pub(crate) mod idle;
mod lines;

use ring_host::device::quirks::{Lines, MemoryProbe};
use ring_host::device::{self, Quirks, cpu::Cpu};
use ring_host::{Device, DeviceFault, Kernels, Runtime, RuntimeConfig};
use ring_shared::atomics::AtomicU64;
use ring_shared::layout::Doorbell;
use ring_shared::ring::{CONTROL, Control};
use ring_tests::{gpu, kernels, mixed, over};
use std::cell::Cell;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{SystemTime, UNIX_EPOCH};

/// Memory with room for a few small kernels: what is not given back is soon missed.
const LITTLE: RuntimeConfig =
    RuntimeConfig { pinned_bytes: 256 << 10, device_bytes: 256 << 10, kernels: Kernels::BUILT_IN };

/// Doorbell lines of a ring: one, the least that are several, and the most.
const WINDOWS: [u32; 3] = [1, 2, 64];

/// Runs a test on every device there is, with a way into the lines of its kernels.
fn on_each_probed_device(test: impl Fn(&MemoryProbe, &Runtime)) {
    let cpu = || Quirks::of(Cpu::open());
    for (device, host) in [over(cpu, LITTLE), over(|| cpu().quick_pages(), LITTLE)] {
        test(&device.memory_probe(), &host);
    }
    if gpu().is_some() {
        let kernels = kernels::config().kernels;
        let image = kernels.image().unwrap();
        let open = || Quirks::of(device::open(Device::Cuda(0), &image).unwrap().0);
        let (device, host) = over(open, RuntimeConfig { kernels, ..LITTLE });
        test(&device.memory_probe(), &host);
    }
}

/// Random numbers, different in each run.
struct Random(Cell<u64>);

impl Random {
    fn new() -> Random {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        Random(Cell::new(now.as_nanos() as u64))
    }

    fn next(&self) -> u64 {
        let x = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(x);
        mixed(x)
    }

    fn below(&self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Any number; often one that lies near `known`, or a small one.
    fn near(&self, known: u64) -> u64 {
        match self.below(4) {
            0 => self.next(),
            1 => self.next() >> self.below(64),
            _ => known.wrapping_add(self.next() % 41).wrapping_sub(20),
        }
    }

    fn over(&self, word: &AtomicU64, known: u64) {
        word.store(self.near(known), Release);
    }

    /// Something for any of a ring's doorbell lines, whose tail should be near `known`.
    fn ring(&self, lines: &[Doorbell], known: u64) {
        let Doorbell { atoms } = &lines[self.below(lines.len())];
        let near = || self.near(known) as u32;
        let before = Control::from_words(atoms[CONTROL].load());
        let control = match self.below(7) {
            0 => Control { credit: near(), tail: known as u32, ..before },
            1 => Control { first: near(), tail: known as u32, ..before },
            2 => Control { tail: near(), ..before },
            3 => Control { credit: near(), first: near(), tail: near(), ..before },
            4 => Control { early: (self.next() as u32).wrapping_shr(near()), ..before },
            _ => {
                let stamped = [self.next(), self.near(known) << 32];
                return atoms[self.below(CONTROL)].publish(stamped);
            }
        };
        atoms[CONTROL].publish(control.to_words());
    }

    /// The kind of write of a round, of so many: one kind a round, and all mixed in some, since the worst would
    /// hide the others.
    fn kind(&self, kinds: usize, round: usize) -> usize {
        let kind = round % (kinds + 2);
        if kind < kinds { kind } else { self.below(kinds) }
    }

    /// Writes something into the lines of the device.
    fn spoil_device(&self, lines: &Lines<'_>, round: usize) {
        let s = lines.status;
        let counters = [&s.processed, &s.refused, &s.errors, &s.depth, &s.heartbeat, &s.ticks];
        // Not the exit, so that a panic of a channel is seen.
        let kept = [&s.run_start, &s.scrubbed, &s.busy, &s.call];
        let words = [&counters[..], &kept[..]].concat();
        let sent = u64::from(tail(lines.request_lines));
        match self.kind(7, round) {
            0 => self.over(words[self.below(words.len())], sent),
            1 => self.over(&lines.request_credit.consumed, sent),
            2 => self.over(&lines.times.handler[self.below(32)], sent),
            3 => self.ring(lines.response_lines, sent),
            4 => self.over(&s.launches_left, lines.status.launches_left.load(Relaxed) & 0xff),
            5 => self.over(&s.acknowledged, lines.command.load(Relaxed)),
            _ => lines.responses[self.below(lines.responses.len())].store([self.next(), 0]),
        }
    }

    /// Writes something into the lines of the host.
    fn spoil_host(&self, lines: &Lines<'_>, round: usize) {
        let answered = u64::from(tail(lines.response_lines));
        match self.kind(4, round) {
            0 => self.over(&lines.response_credit.consumed, answered),
            1 => self.over(lines.command, lines.status.acknowledged.load(Relaxed)),
            2 => self.ring(lines.request_lines, answered),
            _ => {
                let (at, value) = (self.below(lines.requests.len()), [self.next(), self.next()]);
                lines.requests[at].store(value.map(|word| word >> (word & 63)));
            }
        }
    }
}

/// The tail that the lines of an honest producer show, which began at 0.
fn tail(lines: &[Doorbell]) -> u32 {
    let tails = lines.iter().map(|line| Control::from_words(line.atoms[CONTROL].load()).tail);
    tails.max().unwrap_or(0)
}

/// Asserts that a fault is one that a device can cause by what it writes into its lines.
fn comes_from_lines(fault: &DeviceFault) {
    use DeviceFault::{Corrupt, HandlerPanicked, Left, Refused};
    let possible =
        matches!(fault, Corrupt { .. } | HandlerPanicked { .. } | Left { .. } | Refused { .. });
    assert!(possible, "{fault}");
}
