//! The inbox: the block's end of the ring of requests. It looks at the doorbell, takes inline messages out
//! of it, and says what is consumed.

use super::boot;
use super::end::End;
use super::telemetry::Telemetry;
use crate::block::cell::Cell;
use crate::block::{Cooperate, Threads, Words};
use ring_shared::atomics::{Atom, MemoryScope, System};
use ring_shared::layout::{Doorbell, HostLine, StatusLine};
use ring_shared::ring::{CONTROL, Control, payload_of, stamp, stamp_of};

/// Cycles that must lie between two looks, nearly half a read across the bus, or a round trip that fits the
/// looks' rhythm brings both warps into step: on an H200 the median round trip is then 2.75 us and not 2.0.
const APART: u64 = 800;

/// Looks of a CPU's thread for each at the clock.
const LOOKS_PER_TIME: u64 = 16;

/// What a block knows of its requests.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Inbox {
    /// Index of the next request. Claimed by the polling warps by compare-and-swap, else set by thread 0.
    pub next: Cell<u64>,
    /// Index after the last request known to be in a slot.
    pub tail: Cell<u64>,
    /// Index of the request that [`Wake::Inline`](super::signals::Wake::Inline) is about.
    pub staged: Cell<u64>,
    /// Tail of the requests as last seen in the doorbell: the low half of an index.
    pub seen_tail: Cell<u64>,
    /// Requests that the host was told to be consumed, as an index.
    pub published: Cell<u64>,
}

/// Atoms of a look.
const ATOMS: usize = boot::CALL + 1;

/// A look at a doorbell line: its atoms, the host's command and channel 0's call, which are atoms
/// [`boot::BELL`] to [`boot::CALL`]. What was not asked for is any number.
#[derive(Clone, Copy)]
pub(crate) struct Look(<Threads as Cooperate>::Spread<ATOMS>);

/// What one look of a stream's poller shows.
#[derive(Clone, Copy)]
pub(crate) struct Poll {
    /// The control atom of the request doorbell.
    pub control: Control,
    /// The host's command word.
    pub command: u64,
    /// The launch that channel 0 has called to leave.
    pub call: u64,
    /// Responses consumed, by the host's credit line.
    pub credit: u64,
}

/// Reads an atom that the host may write. A GPU does not wait for it.
///
/// SYNC: on a CPU it acquires `ring_shared::Outbox::publish` of the host's end, or `HostLine::give`. On a GPU it
/// acquires nothing by itself; stamps prove their own atom. Before anything is read for which the doorbell or the
/// command vouches (slots, payload, state), or a slot is overwritten for which its credit does, the whole warp
/// fences, so that the thread that read the word does.
#[inline(always)]
fn poll(atom: &Atom) -> Words {
    System::load_whole(atom)
}

impl Inbox {
    /// A polling warp: looks at the doorbell and, if asked, at the host's command and at the word by which
    /// channel 0 calls the others to leave, all in one transaction.
    #[inline(always)]
    pub fn look(
        &self,
        (threads, telemetry): (Threads, &Telemetry),
        bell: &Doorbell,
        host: Option<&HostLine>,
        first: Option<&StatusLine>,
    ) -> Look {
        let at = |k: usize| {
            let mut at: *const Atom = bell.atoms.as_ptr().wrapping_add(k & 7);
            if let (boot::COMMAND, Some(line)) = (k, host) {
                at = boot::command(line);
            }
            if let (boot::CALL, Some(line)) = (k, first) {
                at = boot::call(line);
            }
            // SAFETY: an atom of the line, or the 16 bytes at `HostLine::command` (that word and
            // padding behind it), or at `StatusLine::busy` (that word and `call`), each at a multiple
            // of 16 in its line.
            unsafe { &*at }
        };
        if Threads::WARP > 1 {
            keep_apart(threads, telemetry);
            return Look(threads.spread::<ATOMS>(|k| poll(at(k))));
        }
        let (command, call) = (
            host.map_or([0; 2], |_| poll(at(boot::COMMAND))),
            first.map_or([0; 2], |_| poll(at(boot::CALL))),
        );
        // The control atom comes before the others, so that they are at least as new.
        let control = poll(&bell.atoms[CONTROL]);
        let news = Control::from_words(control).tail != self.next.get() as u32;
        note_look(threads, telemetry, news);
        Look(threads.spread::<ATOMS>(|k| match k {
            CONTROL => control,
            boot::COMMAND => command,
            boot::CALL => call,
            // Who looks at the other half of the line takes it from the producer, who is about to
            // write it.
            _ if !news => [0; 2],
            k => poll(at(k)),
        }))
    }

    /// The polling warp of a stream: reads all that the host says, in one transaction, and acquires it.
    #[inline(always)]
    pub fn poll(
        &self,
        threads: Threads,
        (requests, responses): (End<'_>, End<'_>),
        host: &HostLine,
        first: Option<&StatusLine>,
    ) -> Poll {
        let atoms = threads.spread::<4>(|k| {
            let at: Option<*const Atom> = match k {
                0 => Some(&requests.bell().atoms[CONTROL]),
                1 => Some(boot::command(host)),
                2 => first.map(boot::call),
                3 => Some(core::ptr::from_ref(responses.credit()).cast()),
                _ => None,
            };
            // SAFETY: an atom of the doorbell, or the first 16 bytes of the credit line, or as in `look`.
            // SYNC: acquires `publish` of the host's ends, `ring_shared::Outbox` and `ring_shared::Inbox`, and
            // `HostLine::give`.
            at.map_or([0; 2], |at| unsafe { &*at }.observe())
        });
        let half = |k, half| threads.half::<4>(atoms, k, half);
        Poll {
            control: Control::from_words([half(0, 0), half(0, 1)]),
            command: half(1, 0),
            call: half(2, 1),
            credit: half(3, 0),
        }
    }

    /// All threads of a polling warp: claims request `next`; [`Threads::agreed`] on what this gives says whether
    /// it has, and waits for it.
    #[inline(always)]
    pub fn claim(&self, threads: Threads, next: u64) -> bool {
        threads.is_lane_0() && threads.compare_and_swap(self.next.word(), next, next + 1)
    }

    /// One thread: tells the host that requests below `next` are consumed.
    #[inline(always)]
    pub fn publish_consumed(&self, threads: Threads, requests: End<'_>, next: u64) {
        self.published.set(next);
        // SYNC: releases our reads of line and slots to `ring_shared::Outbox::refresh`. On the GPU they are
        // over: their values went into answers, or through a barrier into shared memory.
        threads.store_after_reads(&requests.credit().consumed, next);
    }
}

impl Look {
    /// The look that the launch began with.
    #[inline(always)]
    pub fn of_boot(threads: Threads, words: &boot::Words) -> Look {
        Look(threads.spread::<ATOMS>(|k| words.atom(k)))
    }

    #[inline(always)]
    fn half(self, threads: Threads, k: usize, half: usize) -> u64 {
        threads.half::<ATOMS>(self.0, k, half)
    }

    /// The control atom.
    #[inline(always)]
    pub fn control(self, threads: Threads) -> Control {
        Control::from_words([self.half(threads, CONTROL, 0), self.half(threads, CONTROL, 1)])
    }

    /// The host's command word, if the look asked for it.
    #[inline(always)]
    pub fn command(self, threads: Threads) -> u64 {
        self.half(threads, boot::COMMAND, 0)
    }

    /// The number of the launch that channel 0 has called to leave, if the look asked for it.
    #[inline(always)]
    pub fn call(self, threads: Threads) -> u64 {
        self.half(threads, boot::CALL, 1)
    }

    /// Whether the look shows just this: request `next`, whole in its `n` atoms, nothing behind it, the
    /// answers' line free, and still `command`, if it was looked at. One vote: each thread knows what
    /// its own atom is to be.
    #[inline(always)]
    pub fn is_next(self, threads: Threads, next: u64, n: usize, command: Option<u64>) -> bool {
        let (index, tail) = (next as u32, stamp(next));
        threads.holds::<ATOMS>(self.0, |k, words| {
            let stamped = stamp_of(words) == tail; // where the control atom has its tail
            match (k, command) {
                (CONTROL, _) => stamped && words[0] as u32 == index && words[1] as u32 == tail,
                (boot::COMMAND, Some(command)) => words[0] == command,
                _ => stamped || k >= n,
            }
        })
    }

    /// Whether the first `n` atoms of the line carry `stamp`.
    #[inline(always)]
    pub fn is_stamped(self, threads: Threads, n: usize, stamp: u32) -> bool {
        threads.holds::<ATOMS>(self.0, |k, words| k >= n || stamp_of(words) == stamp)
    }

    /// All threads of a warp: takes the payload of the first `n` atoms of the line, side by side, to `to`.
    ///
    /// # Safety
    /// `to` is 4-byte aligned room for `12 * n` bytes that no other warp uses.
    #[inline(always)]
    pub unsafe fn take(self, threads: Threads, n: usize, to: *mut u8) {
        threads.each::<ATOMS>(self.0, |k, words| {
            if k < n {
                // SAFETY: the caller's room; bytes `12 * k..12 * k + 12` are written once.
                unsafe { to.wrapping_add(12 * k).cast::<[u32; 3]>().write(payload_of(words)) };
            }
        });
        threads.warp_sync();
    }
}

/// A polling warp of a GPU: waits until the other warp's look is long enough ago.
#[inline(always)]
fn keep_apart(threads: Threads, telemetry: &Telemetry) {
    // The whole warp counts. When its lane 0 did so alone it went on alone, and asked for the line
    // by itself, in front of the others: 0.12 us a round trip.
    loop {
        let now = threads.broadcast(threads.ticks());
        let last = threads.broadcast(telemetry.looked.get());
        if now.wrapping_sub(last) < APART {
            continue;
        }
        // One warp wins: two that looked at once would come back at once, and do so for ever.
        let looked = telemetry.looked.word();
        let won = threads.is_lane_0() && threads.compare_and_swap(looked, last, now);
        if threads.agreed(won) {
            if threads.is_lane_0() {
                let tally = telemetry.tally(threads.warp());
                tally.before.set(last);
                tally.at.set(now);
            }
            break;
        }
    }
    threads.warp_sync();
}

/// A CPU's thread: keeps when the last look was that showed nothing, or some earlier one: to look at the clock
/// costs more than to look at the doorbell.
#[inline(always)]
fn note_look(threads: Threads, telemetry: &Telemetry, news: bool) {
    let (tally, looks) = (telemetry.tally(0), telemetry.looked.get().wrapping_add(1));
    telemetry.looked.set(looks);
    if news {
        tally.before.set(tally.at.get());
    } else if looks.is_multiple_of(LOOKS_PER_TIME) {
        tally.at.set(threads.ticks());
    }
}
