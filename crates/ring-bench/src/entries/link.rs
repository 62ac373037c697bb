//! Two blocks that talk through rings in device memory, each with an end of either.

use crate::baselines::{Between, LINK_BYTES, LINK_CAPACITY};
use crate::intrinsics::{block_index, global_timer};
use core::ptr::NonNull;
use ring_shared::atomics::Ordering::{Relaxed, Release};
use ring_shared::atomics::{Gpu, MemoryScope, System};
use ring_shared::layout::{CreditLine, Doorbell};
use ring_shared::{Inbox, Message, Outbox, Ring};

/// Looks between two looks at the clock.
const LOOKS: u32 = 1024;

/// Two blocks answer each other through rings of `.gpu` scope, `trips` times or until the time is over.
/// Launched with two blocks of one thread.
///
/// # Safety
/// `of` and its rings are valid until the kernel returns.
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_link_gpu(of: *const Between) {
    // SAFETY: the caller's promise.
    unsafe { answer_each_other(&*of, Gpu) }
}

/// The same with ends of `.sys` scope.
///
/// # Safety
/// As for [`bench_link_gpu`].
#[unsafe(no_mangle)]
pub unsafe extern "ptx-kernel" fn bench_link_system(of: *const Between) {
    // SAFETY: the caller's promise.
    unsafe { answer_each_other(&*of, System) }
}

/// # Safety
/// The rings of `of` are valid.
#[inline(always)]
unsafe fn answer_each_other<S: MemoryScope>(of: &Between, scope: S) {
    let block = block_index() & 1;
    // SAFETY: the caller's promise.
    let rings = unsafe { (ring(of, block), ring(of, 1 ^ block)) };
    let (Some(to), Some(from)) = rings else { return };
    let (mut outbox, mut inbox) = (Outbox::with_scope(to, scope), Inbox::with_scope(from, scope));
    let begun = global_timer();
    let end = begun.saturating_add(of.limit);
    let (mut trip, mut looks) = (0, 0u32);
    'trips: while trip < of.trips {
        if block == 0 && outbox.push(&trip, inbox.next()).is_err() {
            break;
        }
        let mut got = 0u64;
        loop {
            match inbox.pop_into(&mut got) {
                Ok(true) => break,
                Ok(false) => {}
                Err(_) => break 'trips,
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(LOOKS) && global_timer() >= end {
                break 'trips;
            }
        }
        // The other block sent it after it had taken all that was sent to it.
        outbox.note_consumed(outbox.next());
        if got != trip || (block == 1 && outbox.push(&got, inbox.next()).is_err()) {
            break;
        }
        trip += 1;
    }
    if block == 0 {
        of.took.0.store(global_timer().wrapping_sub(begun), Relaxed);
        of.made.0.store(trip, Release); // SYNC: the host reads it after the kernel has ended
    }
}

/// Ring `k` of the two.
///
/// # Safety
/// It lies where `of` says, and is valid as long as the ring is used.
#[inline(always)]
unsafe fn ring(of: &Between, k: u32) -> Option<Ring> {
    let lines = (of.lines as usize + k as usize * LINK_BYTES) as *mut Doorbell;
    let bell = NonNull::new(lines)?;
    let credit = bell.cast::<CreditLine>();
    // SAFETY: the doorbell, the credit line and the slots follow each other inside the ring's bytes.
    unsafe {
        let credit = credit.add(1);
        let slots = credit.add(1).cast();
        Ring::from_raw((bell, credit, slots), (1, 1), (LINK_CAPACITY, u64::SLOT_ATOMS as u32), 0)
    }
}

const _: () = assert!(
    size_of::<Doorbell>() == size_of::<CreditLine>()
        && 2 * size_of::<Doorbell>() + 16 * LINK_CAPACITY as usize <= LINK_BYTES
);
