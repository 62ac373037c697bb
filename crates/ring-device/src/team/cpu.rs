//! One CPU thread as a team of one.

use super::{Glance, Look, POLLERS, Shared, Tally, TeamMemory, boot};
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::MAGIC;
use ring_shared::atomics::{Atom, AtomicU32, AtomicU64, Ordering};
use ring_shared::layout::{ControlBlock, CreditLine, Doorbell, HostLine, StatusLine};
use ring_shared::ring::{CONTROL, Control, payload_of, stamp, stamp_of, stamped};

/// Looks for each at the clock.
const LOOKS_PER_TIME: u64 = 16;

/// Fruitless looks in a row after which a channel may sleep between two.
const WAKEFUL: u32 = 1000;

/// What `no_std` lacks, lent by the host runtime.
#[derive(Clone, Copy, Debug)]
pub struct Hooks {
    /// Nanoseconds of a clock that only grows.
    pub now: fn() -> u64,
    /// Called for the `n`-th fruitless look in a row: spin or yield, from the thousandth on perhaps sleep.
    pub rest: fn(n: u32),
}

/// One CPU thread that runs a channel.
#[derive(Clone, Copy, Debug)]
pub struct Team<'a> {
    channel: u32,
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
    /// The team of channel `channel`.
    pub fn new(channel: u32, memory: &'a mut TeamMemory, hooks: Hooks) -> Team<'a> {
        Team { channel, memory, hooks }
    }

    /// See the GPU's: here it is of no use.
    #[inline(always)]
    pub(crate) fn afresh(&self) -> Self {
        *self
    }

    pub(crate) fn channel(&self) -> u32 {
        self.channel
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

    /// How many warps poll.
    #[inline(always)]
    pub(crate) fn pollers(&self) -> u32 {
        1
    }

    #[inline(always)]
    pub(crate) fn is_leader(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn in_warp(&self) -> u32 {
        0
    }

    /// Whether the calling thread writes the control atom of a line.
    #[inline(always)]
    pub(crate) fn rings(&self) -> bool {
        true
    }

    #[inline(always)]
    pub(crate) fn warp_size(&self) -> u32 {
        1
    }

    #[inline(always)]
    pub(crate) fn warp(&self) -> u32 {
        0
    }

    #[inline(always)]
    pub(crate) fn warps(&self) -> u32 {
        1
    }

    #[inline(always)]
    pub(crate) fn warp_min(&self, value: u64) -> u64 {
        value
    }

    #[inline(always)]
    pub(crate) fn warp_sum(&self, value: u64) -> u64 {
        value
    }

    #[inline(always)]
    pub(crate) fn tally(&self, poller: u32) -> &Tally {
        &self.memory.tallies[poller as usize % POLLERS]
    }

    #[inline(always)]
    pub(crate) fn add(&self, at: &AtomicU64, n: u64) {
        super::count(at, n);
    }

    #[inline(always)]
    pub(crate) fn add32(&self, at: &AtomicU32, n: u32) {
        at.store(at.load(Relaxed).wrapping_add(n), Relaxed);
    }

    #[inline(always)]
    pub(crate) fn take32(&self, at: &AtomicU32) -> u32 {
        let n = at.load(Relaxed);
        at.store(0, Relaxed);
        n
    }

    #[inline(always)]
    pub(crate) fn warp_sync(&self) {}

    #[inline(always)]
    pub(crate) fn uniform(&self, value: u64) -> u64 {
        value
    }

    #[inline(always)]
    pub(crate) fn agreed(&self, holds: bool) -> bool {
        holds
    }

    pub(crate) fn ticks(&self) -> u64 {
        self.now()
    }

    pub(crate) fn now(&self) -> u64 {
        (self.hooks.now)()
    }

    /// Whether the channel may sleep after so many fruitless looks in a row: each is then to see all that the
    /// host may say.
    #[inline(always)]
    pub(crate) fn may_sleep(&self, looks: u32) -> bool {
        looks >= WAKEFUL
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

    pub(crate) fn fence_team(&self) {}

    /// A handler that panics unwinds this thread.
    pub(crate) fn survive(&self) {}

    /// Reads what a stream's scout wants to know.
    #[inline(always)]
    pub(crate) fn glance(
        &self,
        (bell, credit): (&Doorbell, &CreditLine),
        host: &HostLine,
        first: Option<&StatusLine>,
    ) -> Glance {
        Glance {
            // SYNC: acquires `Outbox::publish`.
            control: Control::from_words(bell.atoms[CONTROL].observe()),
            // SYNC: acquires the host's `Command` store, which follows its writes to the arena.
            command: host.command.load(Ordering::Acquire),
            call: first.map_or(0, |first| first.leave.load(Relaxed)),
            // SYNC: acquires `Inbox::publish`: the host has read those slots.
            credit: credit.consumed.load(Ordering::Acquire),
        }
    }

    /// Reads all that a launch begins with; of a block that is not for this channel, only the head.
    ///
    /// # Safety
    /// `control` is a control block with the blocks of its channels behind it.
    pub(crate) unsafe fn boot(&self, control: *const ControlBlock) {
        let words = &self.memory.boot;
        let read = |k: usize| {
            // SAFETY: 16 bytes of the control block or of one of its channels' blocks, by the caller's
            // promise and the list's; all of it is atomics and padding.
            // SYNC: acquires `Outbox::publish`, `Inbox::publish` and the host's
            // `Command` store; the rest was written before the launch.
            words.keep(k, unsafe { &*boot::atom(control, self.channel, k) }.observe());
        };
        read(boot::HOST);
        let channels = words.half(boot::HOST, offset_of!(HostLine, channels));
        if words.word(boot::HOST, offset_of!(HostLine, magic)) == MAGIC && self.channel < channels {
            (0..boot::ATOMS).rev().for_each(read); // the doorbell's control atom before the others
        }
    }

    /// Reads atoms of the list again, from elsewhere: atom `k` where `at(k)` says.
    ///
    /// # Safety
    /// What `at` gives is 16 bytes that are read and written as atoms.
    pub(crate) unsafe fn reread(&self, at: impl Fn(usize) -> Option<*const Atom>) {
        for k in (0..boot::ATOMS).rev() {
            if let Some(at) = at(k) {
                // SAFETY: the caller's promise.
                // SYNC: as in `boot`.
                self.memory.boot.keep(k, unsafe { &*at }.observe());
            }
        }
    }

    /// The look that [`boot`](Self::boot) made.
    pub(crate) fn first_look(&self) -> Look {
        core::array::from_fn(|k| self.memory.boot.atom(k))
    }

    #[inline(always)]
    pub(crate) fn look(
        &self,
        bell: &Doorbell,
        host: Option<&HostLine>,
        first: Option<&StatusLine>,
    ) -> Look {
        let one = |at: Option<*const Atom>| {
            // SAFETY: the 16 bytes at `HostLine::command` (that word and padding behind it) or at
            // `StatusLine::busy` (that word and `leave`), each at a multiple of 16 in its line.
            // SYNC: acquires the host's `Command` store, which follows its writes to the arena.
            at.map_or([0, 0], |at| unsafe { &*at }.observe())
        };
        let (command, call) = (one(host.map(boot::command)), one(first.map(boot::call)));
        // SYNC: acquires `Outbox::publish`. Its atom comes before the others, so that
        // they are at least as new.
        let control = bell.atoms[CONTROL].observe();
        let s = self.shared();
        let news = Control::from_words(control).tail != s.head.load(Relaxed) as u32;
        self.note_look(news);
        core::array::from_fn(|k| match k {
            CONTROL => control,
            boot::COMMAND => command,
            boot::CALL => call,
            // Who looks at the other half of the line takes it from the producer, who is about to
            // write it.
            _ if !news => [0; 2],
            _ => bell.atoms[k].observe(),
        })
    }

    /// Keeps when the last look was that showed nothing, or some earlier one: to look at the clock
    /// costs more than to look at the doorbell.
    #[inline(always)]
    fn note_look(&self, news: bool) {
        let (tally, looked) = (&self.memory.tallies[0], &self.shared().looked);
        let looks = looked.load(Relaxed).wrapping_add(1);
        looked.store(looks, Relaxed);
        if news {
            tally.before.store(tally.at.load(Relaxed), Relaxed);
        } else if looks.is_multiple_of(LOOKS_PER_TIME) {
            tally.at.store(self.ticks(), Relaxed);
        }
    }

    /// The control atom.
    #[inline(always)]
    pub(crate) fn control(&self, look: Look) -> Control {
        Control::from_words(look[CONTROL])
    }

    /// See the GPU's.
    #[inline(always)]
    pub(crate) fn is_next(&self, look: Look, head: u64, n: usize, command: Option<u64>) -> bool {
        let (index, tail) = (head as u32, stamp(head));
        self.control(look) == Control { credit: index, first: tail, tail }
            && command.is_none_or(|command| self.command(look) == command)
            && self.stamped(look, n, tail)
    }

    /// The host's command word, if the look asked for it.
    #[inline(always)]
    pub(crate) fn command(&self, look: Look) -> u64 {
        look[boot::COMMAND][0]
    }

    /// The number of the launch that channel 0 has called to leave, if the look asked for it.
    #[inline(always)]
    pub(crate) fn call(&self, look: Look) -> u64 {
        look[boot::CALL][1]
    }

    /// Whether the first `n` atoms of the line carry `stamp`.
    #[inline(always)]
    pub(crate) fn stamped(&self, look: Look, n: usize, stamp: u32) -> bool {
        look.iter().take(n).all(|atom| stamp_of(*atom) == stamp)
    }

    /// Puts the payload of the first `n` atoms of the line side by side at `to`.
    ///
    /// # Safety
    /// `to` is 4-byte aligned room for `12 * n` bytes that no other thread uses.
    #[inline(always)]
    pub(crate) unsafe fn stage(&self, look: Look, n: usize, to: *mut u8) {
        for (k, atom) in look.iter().take(n).enumerate() {
            // SAFETY: the caller's room.
            unsafe { to.wrapping_add(12 * k).cast::<[u32; 3]>().write(payload_of(*atom)) };
        }
    }

    /// Rings the line with the 84 bytes at `from`, stamped, and the control atom.
    ///
    /// # Safety
    /// `from` is 4-byte aligned and readable for 84 bytes.
    #[inline(always)]
    pub(crate) unsafe fn ring(&self, bell: &Doorbell, from: *const u8, stamp: u32, c: Control) {
        for (k, atom) in bell.atoms.iter().take(CONTROL).enumerate() {
            // SAFETY: the caller's 84 bytes.
            let payload = unsafe { from.wrapping_add(12 * k).cast::<[u32; 3]>().read() };
            // SYNC: released to `Inbox::take_inline`.
            atom.publish(stamped(payload, stamp));
        }
        // SYNC: released to `Inbox::find`.
        bell.atoms[CONTROL].publish(c.to_words());
    }

    /// Takes request `head` for this warp; [`has_claimed`](Self::has_claimed) says whether it has.
    #[inline(always)]
    pub(crate) fn claim(&self, head: u64) -> bool {
        self.shared().head.store(head + 1, Relaxed);
        true
    }

    /// True for exactly one of those who claim a request.
    #[inline(always)]
    pub(crate) fn has_claimed(&self, claim: bool) -> bool {
        claim
    }

    /// Raises an event, true if none was raised before.
    #[inline(always)]
    pub(crate) fn raise(&self, event: u32) -> bool {
        let none = self.shared().event.load(Relaxed) == 0;
        if none {
            self.shared().event.store(u64::from(event), Relaxed);
        }
        none
    }
}
