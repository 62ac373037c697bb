//! A GPU block as a team: two warps poll in turn, the others wait at the barrier.

use super::{Glance, Look, POLLERS, Shared, Tally, TeamMemory, boot, intrinsics as ptx};
use core::marker::PhantomData;
use ring_shared::atomics::{Atom, AtomicU32, AtomicU64, Ordering};
use ring_shared::layout::{ChannelBlock, ControlBlock, CreditLine, Doorbell, HostLine, StatusLine};
use ring_shared::ring::{CONTROL, Control, payload_of, stamp, stamp_of, stamped};

/// Cycles that must lie between two looks, about half a read across the bus, or a round trip that
/// fits the looks' rhythm pulls both warps into step. On an H200 a process sees a median round trip
/// of 1.9 or of 2.8 to 2.95 us: the slow one in 3 of 13 with this, in 8 of 16 without.
const APART: u64 = 900;

/// The block that the calling thread is in.
#[derive(Clone, Copy, Debug)]
pub struct Team<'a> {
    memory: *const TeamMemory,
    thread: u32,
    of: PhantomData<&'a TeamMemory>,
}

impl Team<'static> {
    /// The calling thread's block.
    ///
    /// # Safety
    /// Called by every thread of the block, at one place of the kernel.
    #[inline(always)]
    pub unsafe fn of_block() -> Self {
        let memory = ptx::shared_memory().cast();
        // SAFETY: reads a register.
        let thread = unsafe { ptx::thread_index() as u32 };
        Team { memory, thread, of: PhantomData }
    }
}

impl Team<'_> {
    #[inline(always)]
    pub(crate) fn channel(&self) -> u32 {
        // SAFETY: reads a register.
        unsafe { ptx::block_index() as u32 }
    }

    #[inline(always)]
    pub(crate) fn memory(&self) -> &TeamMemory {
        // SAFETY: block-shared memory of that size; it holds atomics and cells only.
        unsafe { &*self.memory }
    }

    #[inline(always)]
    pub(crate) fn shared(&self) -> &Shared {
        &self.memory().shared
    }

    #[inline(always)]
    pub(crate) fn thread(&self) -> u32 {
        self.thread
    }

    /// The same team, which the compiler takes for another; see `Channel::afresh`.
    #[inline(always)]
    pub(crate) fn afresh(&self) -> Self {
        Team {
            memory: ptx::opaque64(self.memory),
            thread: ptx::opaque32(self.thread),
            of: PhantomData,
        }
    }

    #[inline(always)]
    pub(crate) fn threads(&self) -> u32 {
        // SAFETY: reads a register.
        unsafe { ptx::block_dim() as u32 }
    }

    #[inline(always)]
    pub(crate) fn sync(&self) {
        // SAFETY: every thread of the block comes here: branches around it are uniform.
        unsafe { ptx::sync_threads() }
        if self.shared().broken.load(Ordering::Relaxed) != 0 {
            if self.thread() == 0 {
                // Of a stream it may have said, after the panic was told, that the channel has work.
                let block =
                    self.shared().block.load(Ordering::Relaxed) as usize as *const ChannelBlock;
                // SAFETY: `run` stored the address of this channel's block before it called a handler.
                unsafe { &(*block).status }.busy.store(0, Ordering::Relaxed);
            }
            ptx::exit();
        }
    }

    /// After a handler: threads of the warp whose handler panicked are gone, and the others follow them.
    #[inline(always)]
    pub(crate) fn survive(&self) {
        if !ptx::all_run() {
            ptx::exit();
        }
    }

    /// Index of the calling thread's warp among those that poll.
    #[inline(always)]
    pub(crate) fn poller(&self) -> Option<u32> {
        let warp = self.thread() / 32;
        (warp < POLLERS as u32).then_some(warp)
    }

    /// How many warps poll.
    #[inline(always)]
    pub(crate) fn pollers(&self) -> u32 {
        self.warps().min(POLLERS as u32)
    }

    /// Whether the calling thread speaks for its warp.
    #[inline(always)]
    pub(crate) fn is_leader(&self) -> bool {
        self.in_warp() == 0
    }

    /// Index of the calling thread in its warp.
    #[inline(always)]
    pub(crate) fn in_warp(&self) -> u32 {
        self.thread() % 32
    }

    /// Whether the calling thread writes the control atom of a line.
    #[inline(always)]
    pub(crate) fn rings(&self) -> bool {
        self.in_warp() == CONTROL as u32
    }

    /// Threads of a warp.
    #[inline(always)]
    pub(crate) fn warp_size(&self) -> u32 {
        32
    }

    /// Index of the calling thread's warp.
    #[inline(always)]
    pub(crate) fn warp(&self) -> u32 {
        self.thread() / 32
    }

    /// Whole warps of the block.
    #[inline(always)]
    pub(crate) fn warps(&self) -> u32 {
        self.threads() / 32
    }

    /// The least value that a thread of the warp brings.
    #[inline(always)]
    pub(crate) fn warp_min(&self, value: u64) -> u64 {
        self.fold(value, u64::min)
    }

    /// The sum of what the threads of the warp bring, wrapping.
    #[inline(always)]
    pub(crate) fn warp_sum(&self, value: u64) -> u64 {
        self.fold(value, u64::wrapping_add)
    }

    #[inline(always)]
    fn fold(&self, mut value: u64, join: impl Fn(u64, u64) -> u64) -> u64 {
        let mut step = 16;
        while step > 0 {
            value = join(value, ptx::shuffle64(value, self.in_warp() ^ step));
            step /= 2;
        }
        value
    }

    /// What a polling warp keeps of times.
    #[inline(always)]
    pub(crate) fn tally(&self, poller: u32) -> &Tally {
        &self.memory().tallies[poller as usize % POLLERS]
    }

    /// Adds to a counter that other threads of the block add to as well.
    #[inline(always)]
    pub(crate) fn add(&self, at: &AtomicU64, n: u64) {
        // SAFETY: a word of the team's block-shared memory.
        unsafe { ptx::add_shared(at.as_ptr(), n) }
    }

    /// Adds to a counter that other threads of the block add to as well, and does not wait for it.
    #[inline(always)]
    pub(crate) fn add32(&self, at: &AtomicU32, n: u32) {
        // SAFETY: a word of the team's block-shared memory.
        unsafe { ptx::add_shared32(at.as_ptr(), n) }
    }

    /// Takes what such a counter holds.
    #[inline(always)]
    pub(crate) fn take32(&self, at: &AtomicU32) -> u32 {
        // SAFETY: a word of the team's block-shared memory.
        unsafe { ptx::take_shared32(at.as_ptr()) }
    }

    #[inline(always)]
    pub(crate) fn warp_sync(&self) {
        ptx::sync_warp();
    }

    /// The value as the leader of the warp read it: all its threads decide alike.
    #[inline(always)]
    pub(crate) fn uniform(&self, value: u64) -> u64 {
        ptx::shuffle64(value, 0)
    }

    /// The condition as the leader of the warp knows it.
    #[inline(always)]
    pub(crate) fn agreed(&self, holds: bool) -> bool {
        ptx::shuffle(u32::from(holds), 0) != 0
    }

    /// The clock of what [`Times`](ring_shared::layout::Times) holds.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        ptx::cycles()
    }

    /// Nanoseconds of a clock that all channels share.
    #[inline(always)]
    pub(crate) fn now(&self) -> u64 {
        ptx::global_timer()
    }

    /// Whether a channel that takes messages may sleep between two looks: never.
    #[inline(always)]
    pub(crate) fn may_sleep(&self, _looks: u32) -> bool {
        false
    }

    /// Between two looks: a channel that takes messages looks again at once.
    #[inline(always)]
    pub(crate) fn rest(&self, _looks: u32, active: bool) {
        if !active {
            ptx::sleep(1000);
        }
    }

    /// Stores a credit after the team's reads have returned. A release would wait for the bus.
    ///
    /// By the rules of PTX a relaxed store may be seen before an earlier load is made. This relies on a GPU
    /// making its accesses in order so far: the values that were loaded have been used (they went into answers,
    /// or into the team's memory before a barrier), so the loads are over when the store is issued, and
    /// what the host writes after it has seen the store cannot be what they read.
    #[inline(always)]
    pub(crate) fn publish_read(&self, at: &AtomicU64, credit: u64) {
        at.store(credit, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn fence(&self) {
        ptx::fence_system();
    }

    /// Orders what this thread does for the other threads of the team.
    #[inline(always)]
    pub(crate) fn fence_team(&self) {
        ptx::fence_block();
    }

    /// Reads what a stream's scout wants to know, in one round trip of the bus: a line a thread.
    #[inline(always)]
    pub(crate) fn glance(
        &self,
        (bell, credit): (&Doorbell, &CreditLine),
        host: &HostLine,
        first: Option<&StatusLine>,
    ) -> Glance {
        let at: Option<*const Atom> = match self.in_warp() {
            0 => Some(&bell.atoms[CONTROL]),
            1 => Some(boot::command(host)),
            2 => first.map(boot::call),
            3 => Some(core::ptr::from_ref(credit).cast()),
            _ => None,
        };
        // SAFETY: an atom of the doorbell, or the first 16 bytes of the credit line, or as in `look`.
        // SYNC: acquires `Outbox::publish`, `Inbox::publish` and the host's `Command`
        // store.
        let atom = at.map_or([0; 2], |at| unsafe { &*at }.observe());
        let control = [ptx::shuffle64(atom[0], 0), ptx::shuffle64(atom[1], 0)];
        Glance {
            control: Control::from_words(control),
            command: ptx::shuffle64(atom[0], 1),
            call: ptx::shuffle64(atom[1], 2),
            credit: ptx::shuffle64(atom[0], 3),
        }
    }

    /// Warp 0 reads all that a launch begins with, one atom a thread, in one round trip of the bus.
    /// The block has it after a barrier.
    ///
    /// # Safety
    /// `control` is a control block with a channel's block for every block of the grid behind it.
    #[inline(always)]
    pub(crate) unsafe fn boot(&self, control: *const ControlBlock) {
        let k = self.thread() as usize;
        if k < 32 {
            let at = boot::atom(control, self.channel(), k);
            // SAFETY: 16 bytes of the control block or of a channel's block, by the caller's promise
            // and the list's; all of it is atomics and padding.
            // SYNC: acquires `Outbox::publish`, `Inbox::publish` and the host's `Command`
            // store, which may come while earlier launches are on the device; the team has it after a
            // barrier. The value is waited for in any case.
            self.memory().boot.keep(k, unsafe { &*at }.observe());
        }
    }

    /// Warp 0 reads atoms of the list again, from elsewhere: atom `k` where `at(k)` says. The block has
    /// them after a barrier.
    ///
    /// # Safety
    /// What `at` gives is 16 bytes that are read and written as atoms.
    #[inline(always)]
    pub(crate) unsafe fn reread(&self, at: impl Fn(usize) -> Option<*const Atom>) {
        let k = self.thread() as usize;
        if k < 32
            && let Some(at) = at(k)
        {
            // SAFETY: the caller's promise.
            // SYNC: as in `boot`.
            self.memory().boot.keep(k, unsafe { &*at }.observe());
        }
    }

    /// The look that [`boot`](Self::boot) made.
    #[inline(always)]
    pub(crate) fn first_look(&self) -> Look {
        self.memory().boot.atom(self.in_warp() as usize)
    }

    /// Reads the whole line in one transaction, and does not wait for it: thread `k` of the warp
    /// atom `k & 7`, and, if asked, thread 8 the host's command and thread 9 the word by which channel 0
    /// calls the others to leave.
    #[inline(always)]
    pub(crate) fn look(
        &self,
        bell: &Doorbell,
        host: Option<&HostLine>,
        first: Option<&StatusLine>,
    ) -> Look {
        self.keep_apart();
        let k = self.in_warp() as usize;
        let mut at: *const Atom = bell.atoms.as_ptr().wrapping_add(k & 7);
        if let (boot::COMMAND, Some(line)) = (k, host) {
            at = boot::command(line);
        }
        if let (boot::CALL, Some(line)) = (k, first) {
            at = boot::call(line);
        }
        // SAFETY: an atom of the line, or the 16 bytes at `HostLine::command` (that word and
        // padding behind it), or at `StatusLine::busy` (that word and `leave`), each at a multiple
        // of 16 in its line.
        // SYNC: acquires nothing by itself; stamps prove their own atom. Before anything is read for
        // which the doorbell or the command vouches (slots, payload, state), or a slot is overwritten for
        // which its credit does, the whole warp fences, so that the thread that read the word does.
        unsafe { &*at }.load()
    }

    /// The control atom.
    #[inline(always)]
    pub(crate) fn control(&self, [lo, hi]: Look) -> Control {
        let from = CONTROL as u32;
        Control::from_words([ptx::shuffle64(lo, from), ptx::shuffle64(hi, from)])
    }

    /// Whether the look shows just this: request `head`, whole in its `n` atoms, nothing behind it, the
    /// answers' line free, and still `command`, if it was looked at. One vote: each thread knows what
    /// its own atom is to be.
    #[inline(always)]
    pub(crate) fn is_next(&self, look: Look, head: u64, n: usize, command: Option<u64>) -> bool {
        let (index, [lo, hi], k) = (head as u32, look, self.in_warp() as usize);
        let tail = stamp(head);
        let stamped = stamp_of(look) == tail; // where the control atom has its tail
        let mine = match (k, command) {
            (CONTROL, _) => stamped && lo as u32 == index && hi as u32 == tail,
            (boot::COMMAND, Some(command)) => lo == command,
            _ => stamped || k >= n,
        };
        ptx::all(mine)
    }

    /// The host's command word, if the look asked for it.
    #[inline(always)]
    pub(crate) fn command(&self, look: Look) -> u64 {
        ptx::shuffle64(look[0], boot::COMMAND as u32)
    }

    /// The number of the launch that channel 0 has called to leave, if the look asked for it.
    #[inline(always)]
    pub(crate) fn call(&self, look: Look) -> u64 {
        ptx::shuffle64(look[1], boot::CALL as u32)
    }

    /// Waits until the other warp's look is long enough ago.
    #[inline(always)]
    fn keep_apart(&self) {
        let looked = &self.shared().looked;
        // The whole warp counts. When its leader did so alone it went on alone, and asked for the line
        // by itself, in front of the others: 0.12 us a round trip.
        loop {
            let (now, last) =
                (self.uniform(ptx::cycles()), self.uniform(looked.load(Ordering::Relaxed)));
            if now.wrapping_sub(last) >= APART {
                if self.is_leader() {
                    looked.store(now, Ordering::Relaxed);
                    let tally = self.tally(self.warp());
                    tally.before.store(last, Ordering::Relaxed);
                    tally.at.store(now, Ordering::Relaxed);
                }
                break;
            }
        }
        self.warp_sync();
    }

    /// Whether the first `n` atoms of the line carry `stamp`.
    #[inline(always)]
    pub(crate) fn stamped(&self, look: Look, n: usize, stamp: u32) -> bool {
        let mine = stamp_of(look) == stamp;
        ptx::all(self.in_warp() as usize >= n || mine)
    }

    /// Puts the payload of the first `n` atoms of the line side by side at `to`.
    ///
    /// # Safety
    /// `to` is 4-byte aligned room for `12 * n` bytes that no other warp uses.
    #[inline(always)]
    pub(crate) unsafe fn stage(&self, look: Look, n: usize, to: *mut u8) {
        let k = self.in_warp() as usize;
        if k < n {
            // SAFETY: the caller's room; thread `k` writes bytes `12 * k..12 * k + 12`.
            unsafe { to.wrapping_add(12 * k).cast::<[u32; 3]>().write(payload_of(look)) };
        }
        self.warp_sync();
    }

    /// Rings the line with the 84 bytes at `from`, stamped, and the control atom: eight threads,
    /// one whole line.
    ///
    /// # Safety
    /// `from` is 4-byte aligned and readable for 84 bytes.
    #[inline(always)]
    pub(crate) unsafe fn ring(&self, bell: &Doorbell, from: *const u8, stamp: u32, c: Control) {
        let k = self.in_warp() as usize;
        if let Some(atom) = bell.atoms.get(k) {
            let mut words = c.to_words();
            if k < CONTROL {
                // SAFETY: the caller's 84 bytes.
                words =
                    stamped(unsafe { from.wrapping_add(12 * k).cast::<[u32; 3]>().read() }, stamp);
            }
            // SYNC: the stamp proves the payload to `Inbox::take_inline`; the control atom may
            // arrive before the others, which then do not match yet. Nothing here acquires the credit by
            // which the host gave the line free: a fence would add its time to each round trip. This relies
            // on a GPU making no store before the loads that decide on it have returned. The branch to here
            // was taken by that credit, and the host published it after it had read the line.
            atom.store(words);
        }
    }

    /// Takes request `head` for this warp; [`has_claimed`](Self::has_claimed) says whether it has, and
    /// waits for it.
    #[inline(always)]
    pub(crate) fn claim(&self, head: u64) -> bool {
        let at = &self.shared().head;
        // SAFETY: a word of the team's block-shared memory.
        self.is_leader() && unsafe { ptx::swap_shared(at.as_ptr(), head, head + 1) == head }
    }

    /// True for exactly one of those who claim a request.
    #[inline(always)]
    pub(crate) fn has_claimed(&self, claim: bool) -> bool {
        self.agreed(claim)
    }

    /// Raises an event, true if none was raised before.
    #[inline(always)]
    pub(crate) fn raise(&self, event: u32) -> bool {
        self.swap(&self.shared().event, 0, u64::from(event))
    }

    /// One compare-and-swap for the warp.
    #[inline(always)]
    fn swap(&self, at: &AtomicU64, old: u64, new: u64) -> bool {
        let mut won = 0;
        if self.is_leader() {
            // SAFETY: a word of the team's block-shared memory.
            won = u32::from(unsafe { ptx::swap_shared(at.as_ptr(), old, new) } == old);
        }
        ptx::shuffle(won, 0) != 0
    }
}
