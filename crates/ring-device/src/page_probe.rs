//! The page probe, which the built-in PTX module exports beside the kernels: how long a read takes of each of some
//! pages of pinned memory. Of a processor made of parts each page has its home in one, and the GPU is nearer to some.

use crate::block::intrinsics as ptx;
use ring_shared::atomics::Atom;
use ring_shared::layout::{LINE, PAGE, PageProbe};

/// Reads of a page that count, each of another line. One before them does not: it may have to find the page.
const READS: u32 = 16;

/// What no page holds.
const NEVER: u64 = u64::MAX;

/// Writes for each page how many cycles a warp waited for one of its lines, on average, and ends. (The lines of a page are
/// read in more or less time than each other, by a tenth of what pages differ: the least of them differs more than the
/// average.) The warps of the one block share the pages, and read at the same time.
///
/// # Safety
/// `probe` and all that it names is there, and nobody else writes it before the kernel has ended. The block has whole
/// warps, at least one.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn ring_page_probe(probe: *const PageProbe) {
    // SAFETY: the caller's.
    let PageProbe { pages, cycles, count, .. } = unsafe { probe.read() };
    // SAFETY: reads registers.
    let (thread, threads) = unsafe { (ptx::thread_index() as u32, ptx::block_dim() as u32) };
    let (lane, warps) = (thread % 32, u64::from(threads / 32).max(1));
    // All lanes read the same line, eight atoms: one transaction.
    let atom = 16 * u64::from(lane % 8);
    let mut page = u64::from(thread / 32);
    while page < u64::from(count) {
        let first = pages + page * PAGE as u64 + atom;
        let (mut sum, mut read) = (0u32, 0);
        while read <= READS {
            let at = first + u64::from(read) * LINE as u64;
            let begun = ptx::cycles();
            // SAFETY: an atom of a page of the caller's, which has more lines than are read.
            let [_, hi] = unsafe { (*(at as usize as *const Atom)).load() };
            // Whether the clock is read again depends on what was read.
            if !ptx::all(hi != NEVER) {
                return;
            }
            let took = ptx::cycles().wrapping_sub(begun) as u32;
            if read > 0 {
                sum = sum.saturating_add(took);
            }
            read = ptx::opaque32(read + 1); // not unrolled: that takes registers
        }
        if lane == 0 {
            // SAFETY: the caller's room for a number for each page.
            unsafe { (cycles as usize as *mut u32).add(page as usize).write(sum / READS) };
        }
        page += warps;
    }
}

const _: () = assert!((READS as usize) < PAGE / LINE);
