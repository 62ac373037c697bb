//! Calls of a channel's handlers to the host: a ring of call slots, in memory that both sides see.
//!
//! Threads of a warp that call at the same time make one call together: it takes one slot, in which each of the 32 threads has room for a
//! request and for an answer. The device writes requests, then the host answers each of them, in any order.
//!
//! - Each atom of a request and of an answer has the call's stamp, which proves it whole: no fence is needed, and no atom is trusted that
//!   has another stamp.
//! - The header says which threads have called. It may be seen before the requests, for which the host then waits. The request of the first
//!   threads lies in the same cache line.
//! - An answer is one of the function that was called, or says that the host refuses to give one: by a bit of its stamps.
//! - A slot is used again when the host has [released](CallSlots::released) it: when it has answered all of the call, or given up all of
//!   it. So a late answer never lands in a call of later, and a caller that waits no longer harms nobody.
//! - A stamp comes round after 2^31 calls or more. Before it does, what a thread left in a slot is overwritten, if the thread has not called again
//!   (`is_scrubbed`).
//! - One writer for each line: of the header and the requests the device, of the answers and the credit the host.

use crate::atomics::{Atom, AtomicU64, MemoryScope, System};
use crate::layout::{CreditLine, LINE};
use crate::message::{INLINE_ATOMS, InlinePayload, Message, inline_atom};
use crate::ring::{payload_of, stamp, stamp_of, stamped};
use core::marker::PhantomData;
use core::ptr::NonNull;

/// Call slots of a channel, a power of two: as many calls may be unanswered at once.
pub const CALL_SLOTS: u32 = 64;

/// Threads that call together: a warp.
pub const CALLERS: usize = 32;

/// Most bytes of a request and of an answer: what an inline message of one doorbell line may have.
pub const MAX_CALL_BYTES: usize = crate::message::INLINE_ATOM_BYTES * INLINE_ATOMS;

/// Calls after which stamps that were left are overwritten, in all slots one after the other.
const SCRUBBED_AFTER: u64 = 1 << 30;

/// Whether those who write into this call's slot overwrite, too, what threads left there that do not call.
#[inline(always)]
fn is_scrubbed(call: u64) -> bool {
    call >= SCRUBBED_AFTER && call % SCRUBBED_AFTER < u64::from(CALL_SLOTS)
}

/// The call slots of one channel, for requests `Q` and answers `R`.
#[derive(Debug)]
pub struct CallSlots<Q, R> {
    at: NonNull<u8>,
    of: PhantomData<fn(Q) -> R>,
}

impl<Q, R> Clone for CallSlots<Q, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Q, R> Copy for CallSlots<Q, R> {}

// SAFETY: memory that is accessed as atomics only.
unsafe impl<Q, R> Send for CallSlots<Q, R> {}
// SAFETY: as above.
unsafe impl<Q, R> Sync for CallSlots<Q, R> {}

/// Bytes of the header and of the requests of a warp, of so many atoms each, and of its answers.
const fn parts(request_atoms: usize, answer_atoms: usize) -> (usize, usize) {
    ((16 + 16 * CALLERS * request_atoms).next_multiple_of(LINE), 16 * CALLERS * answer_atoms)
}

/// Bytes of a channel's call slots of that [shape](CallSlots::SHAPE), a multiple of 128; 0 for none, which has the shape 0.
pub const fn bytes_of(shape: u64) -> usize {
    if shape == 0 {
        return 0;
    }
    let (requests, answers) = parts(shape as usize % 8, shape as usize / 8 % 8);
    size_of::<CreditLine>() + CALL_SLOTS as usize * (requests + answers)
}

impl<Q: Message, R: Message> CallSlots<Q, R> {
    const REQUESTS: usize = parts(Q::INLINE_ATOMS, R::INLINE_ATOMS).0;
    const SLOT: usize = {
        let (requests, answers) = parts(Q::INLINE_ATOMS, R::INLINE_ATOMS);
        requests + answers
    };

    /// Bytes of a channel's call slots, a multiple of 128.
    pub const BYTES: usize = bytes_of(Self::SHAPE);

    /// What says how large the slots are: in the low bits of an address that is a multiple of 128. Slots of the same shape lie alike.
    pub const SHAPE: u64 = {
        assert!(
            size_of::<Q>() <= MAX_CALL_BYTES && size_of::<R>() <= MAX_CALL_BYTES,
            "what a handler asks the host has at most 80 bytes, 72 if it is aligned to 8, and the answer at most 84"
        );
        (Q::INLINE_ATOMS | R::INLINE_ATOMS << 3) as u64
    };

    /// The slots at `at`.
    ///
    /// # Safety
    /// [`BYTES`](Self::BYTES) bytes, aligned to 128, which are zero at first, are there for as long as this or a copy is used, and are
    /// accessed as slots of this shape only.
    pub unsafe fn from_raw(at: NonNull<u8>) -> CallSlots<Q, R> {
        const { assert!(Self::BYTES.is_multiple_of(LINE)) };
        CallSlots { at, of: PhantomData }
    }

    /// Calls below this number are over for the host: their slots are free.
    #[inline(always)]
    pub fn released(&self) -> &AtomicU64 {
        // SAFETY: a credit line is at the beginning, by the promise of `from_raw`.
        let line = unsafe { self.at.cast::<CreditLine>().as_ref() };
        &line.consumed
    }

    /// The atom at `offset` bytes of a call's slot.
    #[inline(always)]
    fn atom(&self, call: u64, offset: usize) -> &Atom {
        let slot = (call & u64::from(CALL_SLOTS - 1)) as usize;
        let at = size_of::<CreditLine>() + slot * Self::SLOT + offset % Self::SLOT;
        // SAFETY: inside the slots, by the promise of `from_raw`, at a multiple of 16 as `offset` and all sizes are.
        unsafe { self.at.add(at).cast::<Atom>().as_ref() }
    }

    #[inline(always)]
    fn request_atom(&self, call: u64, caller: u32, k: usize) -> &Atom {
        self.atom(call, 16 + 16 * (k * CALLERS + caller as usize % CALLERS))
    }

    #[inline(always)]
    fn answer_atom(&self, call: u64, caller: u32, k: usize) -> &Atom {
        self.atom(call, Self::REQUESTS + 16 * (k * CALLERS + caller as usize % CALLERS))
    }

    /// The device, once for a call, whose slot is free: says which threads call, a bit each.
    #[inline(always)]
    pub fn announce(&self, call: u64, callers: u32) {
        if is_scrubbed(call) {
            self.scrub(stamp(call), !callers, Q::INLINE_ATOMS, |caller, k| {
                self.request_atom(call, caller, k)
            });
        }
        // SYNC: to `announced`; it proves its own words only.
        self.atom(call, 0).store_whole(stamped([callers, 0, 0], stamp(call)));
    }

    /// The device: what one of those threads asks.
    #[inline(always)]
    pub fn ask(&self, call: u64, caller: u32, request: &Q) {
        for k in 0..Q::INLINE_ATOMS {
            // SYNC: to `asked`; each atom proves its own words.
            let words = inline_atom(request, k, stamp(call));
            self.request_atom(call, caller, k).store_whole(words);
        }
    }

    /// The device: looks for the answer to one of those threads. It is there when the look is used.
    #[inline(always)]
    pub fn look(&self, call: u64, caller: u32) -> AnswerLook {
        AnswerLook(core::array::from_fn(|k| match k < R::INLINE_ATOMS {
            // SYNC: from `answer`; each atom proves its own words. On a CPU it acquires what the host wrote before.
            true => System::load_whole(self.answer_atom(call, caller, k)),
            false => [0; 2],
        }))
    }

    /// The device: the answer that a look shows, if it was there, or none if the host refuses.
    #[inline(always)]
    pub fn answered(&self, call: u64, look: &AnswerLook) -> Option<Option<R>> {
        let (whole, refused) = (answer_stamp(call, false), answer_stamp(call, true));
        let (mut late, mut refuses) = (0, 0);
        let mut payload = InlinePayload::EMPTY;
        for k in 0..R::INLINE_ATOMS {
            late |= stamp_of(look.0[k]) ^ whole;
            refuses |= stamp_of(look.0[k]) ^ refused;
            payload = payload.with(k, look.0[k]);
        }
        match (late, refuses) {
            (0, _) => Some(Some(message(payload))),
            (_, 0) => Some(None),
            _ => None,
        }
    }

    /// The host: which threads have called, if the call is there.
    #[inline]
    pub fn announced(&self, call: u64) -> Option<u32> {
        // SYNC: from `announce`.
        let words = System::load_whole(self.atom(call, 0));
        let [callers, _, _] = payload_of(words);
        (stamp_of(words) == stamp(call)).then_some(callers)
    }

    /// The host: what one of those threads asks, if it is there.
    #[inline]
    pub fn asked(&self, call: u64, caller: u32) -> Option<Q> {
        let (mut late, mut payload) = (0, InlinePayload::EMPTY);
        for k in 0..Q::INLINE_ATOMS {
            // SYNC: from `ask`.
            let words = System::load_whole(self.request_atom(call, caller, k));
            late |= stamp_of(words) ^ stamp(call);
            payload = payload.with(k, words);
        }
        (late == 0).then(|| message(payload))
    }

    /// The host, once for each of those threads: its answer, or that there is none.
    #[inline]
    pub fn answer(&self, call: u64, caller: u32, answer: Option<&R>) {
        let stamp = answer_stamp(call, answer.is_none());
        let none = R::zeroed();
        for k in 0..R::INLINE_ATOMS {
            // SYNC: to `look`; each atom proves its own words, and is seen after what was written before.
            let words = inline_atom(answer.unwrap_or(&none), k, stamp);
            System::store_whole(self.answer_atom(call, caller, k), words);
        }
    }

    /// The host, when all of them are answered: the slot is free, of the call that `callers` made. Then, of all calls below, as
    /// [`released`](Self::released) says.
    #[inline]
    pub fn release(&self, call: u64, callers: u32) {
        // For the next call of the slot, whose callers look for an answer at once.
        if is_scrubbed(call + u64::from(CALL_SLOTS)) {
            self.scrub(answer_stamp(call, false), !callers, R::INLINE_ATOMS, |caller, k| {
                self.answer_atom(call, caller, k)
            });
        }
        // SYNC: behind all reads of the call, and all answers; the device writes into the slot when it has read it.
        System::store_release(self.released(), call + 1);
    }

    /// Overwrites what those `others` left in the slot by the stamp of a call in which they have no part.
    #[cold]
    #[inline(always)]
    fn scrub<'a>(
        &self,
        stamp: u32,
        others: u32,
        atoms: usize,
        atom: impl Fn(u32, usize) -> &'a Atom,
    ) {
        let mut n = 0;
        while n < CALLERS * atoms {
            let (caller, k) = ((n % CALLERS) as u32, n / CALLERS);
            if others >> caller & 1 != 0 {
                System::store_whole(atom(caller, k), stamped([0; 3], stamp));
            }
            n += 1;
        }
    }
}

/// What a look showed where an answer is to be.
#[derive(Clone, Copy, Debug)]
pub struct AnswerLook([[u64; 2]; INLINE_ATOMS]);

/// The stamp of an answer to a call, or of the refusal of one.
#[inline(always)]
fn answer_stamp(call: u64, is_refused: bool) -> u32 {
    stamp(call) << 1 | u32::from(is_refused)
}

/// The message whose bytes these are.
#[inline(always)]
fn message<T: Message>(payload: InlinePayload) -> T {
    let mut message = T::zeroed();
    payload.into(&mut message);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(128))]
    #[derive(Clone)]
    struct Line([u8; 128]);

    /// Memory of slots, on the heap.
    struct Memory<Q, R>(Vec<Line>, PhantomData<fn(Q) -> R>);

    impl<Q: Message, R: Message> Memory<Q, R> {
        fn new() -> Self {
            Memory(vec![Line([0; 128]); CallSlots::<Q, R>::BYTES / 128], PhantomData)
        }

        /// The slots, for as long as this is there.
        fn slots(&mut self) -> CallSlots<Q, R> {
            let at = NonNull::new(self.0.as_mut_ptr()).unwrap().cast();
            // SAFETY: zeros, as many, and aligned so; the test keeps them.
            unsafe { CallSlots::from_raw(at) }
        }
    }

    fn found<Q: Message, R: Message>(
        slots: CallSlots<Q, R>,
        call: u64,
        caller: u32,
    ) -> Option<Option<R>> {
        slots.answered(call, &slots.look(call, caller))
    }

    #[test]
    fn what_is_asked_is_answered() {
        let mut memory = Memory::<[u64; 3], [u8; 13]>::new();
        let slots = memory.slots();
        const CALLS: u64 = if cfg!(miri) { 70 } else { 200 };
        for call in 0..CALLS {
            assert_eq!((slots.announced(call), slots.asked(call, 3)), (None, None));
            slots.announce(call, 0x8000_0008);
            assert_eq!(slots.announced(call), Some(0x8000_0008));
            for caller in [3, 31] {
                assert_eq!(slots.asked(call, caller), None);
                slots.ask(call, caller, &[call, !call, caller.into()]);
                assert_eq!(slots.asked(call, caller), Some([call, !call, caller.into()]));
                assert_eq!(found(slots, call, caller), None);
                let answer = (caller == 31 || call % 2 == 0).then_some([caller as u8; 13]);
                slots.answer(call, caller, answer.as_ref());
            }
            assert_eq!(found(slots, call, 3), Some((call % 2 == 0).then_some([3; 13])));
            assert_eq!(found(slots, call, 31), Some(Some([31; 13])));
            assert_eq!(found(slots, call, 4), None);
            slots.release(call, 0x8000_0008);
            assert_eq!(System::load_acquire(slots.released()), call + 1);
        }
    }

    /// What a thread left 2^31 or 2^32 calls before, or never wrote, has the stamp of a call of now unless it was overwritten.
    #[test]
    #[cfg_attr(miri, ignore = "many calls, whose accesses the other tests make too")]
    fn no_stamp_comes_round() {
        let mut memory = Memory::<u64, u64>::new();
        let slots = memory.slots();
        let all_that_call = |calls: core::ops::Range<u64>, callers: u32| {
            for call in calls {
                let called = |caller: &u32| callers >> caller & 1 != 0;
                slots.announce(call, callers);
                for caller in 0..32 {
                    assert_eq!(
                        slots.asked(call, caller).is_some(),
                        !called(&caller) && is_scrubbed(call)
                    );
                    assert_eq!(found(slots, call, caller), None, "{call} {caller}");
                }
                for caller in (0..32).filter(called) {
                    slots.ask(call, caller, &call);
                    slots.answer(call, caller, Some(&call));
                }
                slots.release(call, callers);
            }
        };
        let slots_of = |round: u64| round * SCRUBBED_AFTER - 64..round * SCRUBBED_AFTER + 64;
        all_that_call(0..64, u32::MAX);
        for round in 1..8 {
            // All call now and then, and then only one does for long.
            all_that_call(slots_of(round), if round % 4 == 0 { u32::MAX } else { 1 << round });
        }
        all_that_call((1 << 33) + 64..(1 << 33) + 128, u32::MAX);
    }

    #[test]
    fn the_largest_fit_and_share_no_line() {
        type Slots = CallSlots<[u8; MAX_CALL_BYTES], [u32; 21]>;
        const { assert!(Slots::BYTES.is_multiple_of(LINE) && Slots::SHAPE < 64) };
        const { assert!(Slots::REQUESTS.is_multiple_of(LINE) && Slots::SLOT.is_multiple_of(LINE)) };
        assert_eq!((Slots::BYTES, bytes_of(0)), (128 + 64 * (3712 + 3584), 0));
        let mut memory = Memory::<[u8; MAX_CALL_BYTES], [u32; 21]>::new();
        let slots = memory.slots();
        slots.ask(5, 7, &[9; MAX_CALL_BYTES]);
        slots.answer(5, 7, Some(&[8; 21]));
        assert_eq!(slots.asked(5, 7), Some([9; MAX_CALL_BYTES]));
        assert_eq!(found(slots, 5, 7), Some(Some([8; 21])));
        assert_eq!(slots.asked(5 + u64::from(CALL_SLOTS), 7), None);
    }

    /// A thread that calls and one that answers, with few slots for many calls.
    #[test]
    fn two_threads_call_and_answer() {
        const CALLS: u64 = if cfg!(miri) { 100 } else { 20_000 };
        let mut memory = Memory::<[u64; 3], u64>::new();
        let slots = memory.slots();
        let host = std::thread::spawn(move || {
            for call in 0..CALLS {
                let callers = loop {
                    match slots.announced(call) {
                        Some(callers) => break callers,
                        None => std::thread::yield_now(),
                    }
                };
                for caller in (0..32).filter(|caller| callers >> caller & 1 != 0) {
                    let asked = loop {
                        match slots.asked(call, caller) {
                            Some(asked) => break asked,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!(asked, [call, !call, caller.into()]);
                    slots.answer(call, caller, (call % 7 != 0).then_some(&(call * 100 + asked[2])));
                }
                slots.release(call, callers);
            }
        });
        for call in 0..CALLS {
            // The device's part: as many calls ahead as there are slots.
            while call - System::load_acquire(slots.released()).min(call) >= u64::from(CALL_SLOTS) {
                std::thread::yield_now();
            }
            let callers = [1 << (call % 32), 1 << 31 | 1][call as usize % 2];
            slots.announce(call, callers);
            let callers = (0..32).filter(|caller| callers >> caller & 1 != 0);
            callers
                .clone()
                .for_each(|caller| slots.ask(call, caller, &[call, !call, caller.into()]));
            if call % 3 == 0 {
                continue; // it waits for no answer
            }
            for caller in callers {
                let answer = loop {
                    match found(slots, call, caller) {
                        Some(answer) => break answer,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(answer, (call % 7 != 0).then_some(call * 100 + u64::from(caller)));
            }
        }
        host.join().unwrap();
    }
}
