//! One CPU thread as a team of one.

use super::{Look, Shared, TeamMemory};
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::atomics::{AtomicU64, Ordering};
use ring_shared::layout::{Doorbell, HostLine};
use ring_shared::ring::{CONTROL, Control};

/// What `no_std` lacks, lent by the host runtime.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Nanoseconds of a clock that only grows.
    pub now: fn() -> u64,
    /// Called for the `n`-th fruitless look in a row: spin, yield or sleep.
    pub rest: fn(n: u32),
}

/// One CPU thread that runs a lane.
#[derive(Debug)]
pub struct Team<'a> {
    lane: u32,
    memory: &'a TeamMemory,
    hooks: Hooks,
}

impl TeamMemory {
    /// Zeroed memory.
    #[allow(clippy::new_without_default)] // 32 KiB are not made by accident
    pub const fn new() -> TeamMemory {
        // SAFETY: integers, atomics of integers and cells of integers; zero is valid for each.
        unsafe { core::mem::MaybeUninit::zeroed().assume_init() }
    }
}

impl<'a> Team<'a> {
    /// The team of lane `lane`.
    pub fn new(lane: u32, memory: &'a mut TeamMemory, hooks: Hooks) -> Team<'a> {
        Team { lane, memory, hooks }
    }

    pub(crate) fn lane(&self) -> u32 {
        self.lane
    }

    pub(crate) fn memory(&self) -> &TeamMemory {
        self.memory
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.memory.shared
    }

    #[inline(always)]
    pub(crate) fn thread(&self) -> u32 {
        0
    }

    #[inline(always)]
    pub(crate) fn threads(&self) -> u32 {
        1
    }

    #[inline(always)]
    pub(crate) fn sync(&self) {}

    #[inline(always)]
    pub(crate) fn poller(&self) -> Option<u32> {
        Some(0)
    }

    #[inline(always)]
    pub(crate) fn is_leader(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn warp_sync(&self) {}

    #[inline(always)]
    pub(crate) fn uniform(&self, value: u64) -> u64 {
        value
    }

    pub(crate) fn now(&self) -> u64 {
        (self.hooks.now)()
    }

    pub(crate) fn rest(&self, looks: u32, _resident: bool) {
        (self.hooks.rest)(looks);
    }

    /// Stores a credit after this thread's reads.
    #[inline(always)]
    pub(crate) fn publish_read(&self, at: &AtomicU64, credit: u64) {
        at.store(credit, Ordering::Release);
    }

    pub(crate) fn fence(&self) {
        // The atoms' own acquires and releases suffice between threads of one CPU.
    }

    #[inline(always)]
    pub(crate) fn look(&self, bell: &Doorbell, host: Option<&HostLine>) -> Look {
        // SYNC: acquires the host's `Command` store, which follows its writes to the arena.
        let command = host.map_or(0, |line| line.command.load(Ordering::Acquire));
        // SYNC: acquires `Producer::publish_control`.
        let control = Control::from_words(bell.atoms[CONTROL].observe());
        let atoms = core::array::from_fn(|k| bell.atoms[k].observe());
        Look { control, command, atoms }
    }

    /// Whether the first `n` atoms of the line carry `stamp`.
    #[inline(always)]
    pub(crate) fn stamped(&self, look: &Look, n: usize, stamp: u32) -> bool {
        look.atoms.iter().take(n).all(|[_, hi]| (hi >> 32) as u32 == stamp)
    }

    /// Puts the payload of the first `n` atoms of the line side by side at `to`.
    ///
    /// # Safety
    /// `to` is 4-byte aligned room for `12 * n` bytes that no other thread uses.
    #[inline(always)]
    pub(crate) unsafe fn stage(&self, look: &Look, n: usize, to: *mut u8) {
        for (k, [lo, hi]) in look.atoms.iter().take(n).enumerate() {
            let to = to.wrapping_add(12 * k).cast::<u32>();
            // SAFETY: the caller's room.
            unsafe {
                to.write(*lo as u32);
                to.add(1).write((lo >> 32) as u32);
                to.add(2).write(*hi as u32);
            }
        }
    }

    /// Rings the line with the 84 bytes at `from`, stamped, and the control atom.
    ///
    /// # Safety
    /// `from` is 4-byte aligned and readable for 84 bytes.
    #[inline(always)]
    pub(crate) unsafe fn ring(&self, bell: &Doorbell, from: *const u8, stamp: u32, c: Control) {
        for (k, atom) in bell.atoms.iter().take(CONTROL).enumerate() {
            let from = from.wrapping_add(12 * k).cast::<u32>();
            // SAFETY: the caller's 84 bytes.
            let [a, b, c] = unsafe { [from.read(), from.add(1).read(), from.add(2).read()] };
            let words = [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(stamp) << 32];
            // SYNC: released to `Consumer::take_express`.
            atom.publish(words);
        }
        // SYNC: released to `Consumer::look`.
        bell.atoms[CONTROL].publish(c.to_words());
    }

    /// Takes request `head` for this warp: true for exactly one of those who see it.
    #[inline(always)]
    pub(crate) fn claim(&self, head: u64) -> bool {
        self.shared().head.store(head + 1, Relaxed);
        true
    }

    /// Raises an event, true if none was raised before.
    #[inline(always)]
    pub(crate) fn raise(&self, event: u32) -> bool {
        self.shared().event.store(u64::from(event), Relaxed);
        true
    }
}
