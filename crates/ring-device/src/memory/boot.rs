//! What a launch reads before it begins, all of it at once: a read across the bus takes about a
//! microsecond, so thread `k` of one warp reads atom `k` of this list, and the rest of the block
//! finds it in the block's memory.

use crate::block::{Cooperate, Threads};
use core::mem::offset_of;
use core::ops::Range;
use ring_shared::atomics::{Atom, AtomicU64, Ordering::Relaxed};
use ring_shared::layout::{ChannelBlock, ConfigLine, ControlBlock, HostLine, StatusLine};
use ring_shared::ring::CONTROL;

/// The request doorbell, eight atoms. These and the next two are also what a look reads.
pub const BELL: usize = 0;
/// The host's command.
pub const COMMAND: usize = 8;
/// [`StatusLine::call`] of channel 0.
pub const CALL: usize = 9;
/// The first atom of [`HostLine`].
pub const HOST: usize = 10;
/// The first four of [`ConfigLine`].
pub const CONFIG: usize = 11;
/// The beginning of the channel's block: both descriptors, and where its state is. Seven atoms.
pub const RINGS: usize = 15;
/// The first six atoms of the channel's [`StatusLine`].
pub const STATUS: usize = 22;
/// Requests consumed.
pub const REQUEST_CREDIT: usize = 28;
/// Responses consumed.
pub const RESPONSE_CREDIT: usize = 29;
/// The control atom of the first request line.
pub const FIRST_CONTROL: usize = 30;
/// The control atom of the line of the last request that was consumed.
pub const LAST_CONTROL: usize = 31;
/// How many there are.
pub const ATOMS: usize = 32;

// The words that are asked for are in those atoms.
const _: () = assert!(offset_of!(HostLine, command).is_multiple_of(16) && ATOMS <= 32);
const _: () = assert!(offset_of!(ConfigLine, memory_bytes) < 16 * (RINGS - CONFIG));
const _: () = assert!(offset_of!(ChannelBlock, state_bytes) < 16 * (STATUS - RINGS));
const _: () = assert!(offset_of!(StatusLine, scrubbed) < 16 * (REQUEST_CREDIT - STATUS));
const _: () = assert!(offset_of!(StatusLine, call) == AT_CALL + 8 && AT_CALL.is_multiple_of(16));

/// Where the atom with [`StatusLine::call`] in its `hi` begins.
const AT_CALL: usize = offset_of!(StatusLine, busy);

/// The atom of a status line that holds [`StatusLine::call`].
#[inline(always)]
pub(crate) fn call(status: &StatusLine) -> *const Atom {
    core::ptr::from_ref(status).cast::<u8>().wrapping_add(AT_CALL).cast()
}

/// The atom of a host line that holds the command.
#[inline(always)]
pub(crate) fn command(host: &HostLine) -> *const Atom {
    core::ptr::from_ref(host).cast::<u8>().wrapping_add(offset_of!(HostLine, command)).cast()
}

/// Where atom `k` of the list is; past its end, the last.
#[inline(always)]
pub(crate) fn atom(control: *const ControlBlock, channel: u32, k: usize) -> *const Atom {
    let channel = size_of::<ControlBlock>() + channel as usize * size_of::<ChannelBlock>();
    let first = size_of::<ControlBlock>();
    // Ranges of the list, and where each begins. Compared one by one, for a table would itself have
    // to be read from memory.
    let (mut from, mut at) = (BELL, channel + offset_of!(ChannelBlock, request_bell));
    let mut range = |begin: usize, place: usize| {
        if k >= begin {
            (from, at) = (begin, place);
        }
    };
    range(COMMAND, offset_of!(ControlBlock, host) + offset_of!(HostLine, command));
    range(CALL, first + offset_of!(ChannelBlock, status) + AT_CALL);
    range(HOST, offset_of!(ControlBlock, host));
    range(CONFIG, offset_of!(ControlBlock, config));
    range(RINGS, channel + offset_of!(ChannelBlock, request));
    range(STATUS, channel + offset_of!(ChannelBlock, status));
    range(REQUEST_CREDIT, channel + offset_of!(ChannelBlock, request_credit));
    range(RESPONSE_CREDIT, channel + offset_of!(ChannelBlock, response_credit));
    range(FIRST_CONTROL, channel + offset_of!(ChannelBlock, request_bell) + 16 * CONTROL);
    range(LAST_CONTROL, channel + offset_of!(ChannelBlock, request_bell) + 16 * CONTROL);
    let k = if k < ATOMS { k } else { ATOMS - 1 };
    control.cast::<u8>().wrapping_add(at + 16 * (k - from)).cast()
}

/// The atoms as they were read.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Words([[AtomicU64; 2]; ATOMS]);

impl Words {
    /// Warp 0 reads all that a launch begins with, an atom a thread, in one round trip of the bus; the block has
    /// it after a barrier. A CPU's thread reads only the head of a kernel that it is no channel of.
    ///
    /// # Safety
    /// `control` is a control block with the blocks of its channels, or on a GPU of all blocks of the grid,
    /// behind it.
    #[inline(always)]
    pub unsafe fn read(&self, threads: Threads, control: *const ControlBlock, channel: u32) {
        // SAFETY: the caller's promise; the list names atoms of those blocks.
        let read = |n| unsafe { self.read_from(threads, n, |k| Some(atom(control, channel, k))) };
        if Threads::WARP == 1 {
            read(HOST..HOST + 1);
            let channels = self.half(HOST, offset_of!(HostLine, channels));
            let magic = self.word(HOST, offset_of!(HostLine, magic));
            if magic != ring_shared::MAGIC || channel >= channels {
                return;
            }
        }
        read(0..ATOMS);
    }

    /// Warp 0 reads atoms `range` of the list from where `at` says; the block has them after a barrier.
    ///
    /// # Safety
    /// What `at` gives is 16 bytes that are read and written as atoms.
    #[inline(always)]
    pub unsafe fn read_from(
        &self,
        threads: Threads,
        range: Range<usize>,
        at: impl Fn(usize) -> Option<*const Atom>,
    ) {
        let keep = |k: usize| {
            if let Some(at) = at(k) {
                // SAFETY: the caller's promise.
                // SYNC: acquires `Outbox::publish` and `Inbox::publish` of the host's ends, and the host's
                // `Command` store, which may come while earlier launches are on the device; the rest was
                // written before the launch.
                self.keep(k, unsafe { &*at }.observe());
            }
        };
        if Threads::WARP == 1 {
            range.rev().for_each(keep); // the doorbell's control atom before the others
        } else if threads.thread() < Threads::WARP {
            keep(threads.thread() as usize);
        }
    }

    /// Keeps atom `k`, if it is one of the list.
    #[inline(always)]
    pub fn keep(&self, k: usize, [lo, hi]: [u64; 2]) {
        if let Some(words) = self.0.get(k) {
            words[0].store(lo, Relaxed);
            words[1].store(hi, Relaxed);
        }
    }

    /// Atom `k`, or zero.
    #[inline(always)]
    pub fn atom(&self, k: usize) -> [u64; 2] {
        self.0.get(k).map_or([0, 0], |words| [words[0].load(Relaxed), words[1].load(Relaxed)])
    }

    /// The `u64` at `offset` bytes of the line that begins with atom `line`.
    #[inline(always)]
    pub fn word(&self, line: usize, offset: usize) -> u64 {
        self.0.get(line + offset / 16).map_or(0, |words| words[offset % 16 / 8].load(Relaxed))
    }

    /// Changes the `u64` at `offset` bytes of the line that begins with atom `line`.
    #[inline(always)]
    pub fn set(&self, line: usize, offset: usize, value: u64) {
        if let Some(words) = self.0.get(line + offset / 16) {
            words[offset % 16 / 8].store(value, Relaxed);
        }
    }

    /// The `u32` at `offset` bytes of the line that begins with atom `line`.
    #[inline(always)]
    pub fn half(&self, line: usize, offset: usize) -> u32 {
        (self.word(line, offset) >> (8 * (offset % 8))) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atoms_are_where_the_fields_are() {
        let control = core::ptr::without_provenance::<ControlBlock>(1 << 20);
        let at = |channel, k| atom(control, channel, k).addr() - (1 << 20);
        let block = 256 + 3 * 1280;
        let status = block + 128;
        assert_eq!((at(3, BELL), at(3, BELL + 7)), (block + 1024, block + 1024 + 112));
        assert_eq!((at(3, COMMAND), at(3, CALL), at(3, HOST)), (16, 256 + 128 + 64, 0));
        assert_eq!((at(3, CONFIG), at(3, CONFIG + 3)), (128, 176));
        assert_eq!((at(3, RINGS), at(3, RINGS + 6)), (block, block + 96));
        assert_eq!((at(3, STATUS), at(3, STATUS + 5)), (status, status + 80));
        assert_eq!((at(3, REQUEST_CREDIT), at(3, RESPONSE_CREDIT)), (block + 256, block + 1152));
        assert_eq!((at(3, FIRST_CONTROL), at(3, LAST_CONTROL)), (block + 1136, block + 1136));
        assert_eq!(at(3, ATOMS), block + 1136);
    }

    #[test]
    fn words_and_halves_are_found() {
        let words = Words([const { [const { AtomicU64::new(0) }; 2] }; ATOMS]);
        words.keep(CONFIG + 2, [77, 2 | 9 << 32]);
        words.keep(ATOMS, [1, 1]);
        assert_eq!(words.word(CONFIG, offset_of!(ConfigLine, idle)), 77);
        assert_eq!(words.half(CONFIG, offset_of!(ConfigLine, processing)), 2);
        assert_eq!(words.half(CONFIG, offset_of!(ConfigLine, max_messages)), 9);
    }
}
