//! Which accesses a ring kernel may make, by what they reach. What is not on the list is a violation.
//!
//! A word that both host and device see is read and written whole, at system scope; which words acquire
//! or release follows from `ring-shared/ring.rs` and `ring-device/dispatch`. Weak accesses are left for
//! memory of the block, for a state, which is one thread's, and for constants of the module.

use super::Violation;
use super::buffers::reads_frozen;
use super::code::Function;
use super::place::{Access, Place, Strength};

/// Accesses of one kind that are allowed.
struct Allowed {
    writes: bool,
    strengths: &'static [Strength],
    /// Any, where there are none.
    bits: &'static [u32],
}

const fn reads(strengths: &'static [Strength], bits: &'static [u32]) -> Allowed {
    Allowed { writes: false, strengths, bits }
}

const fn stores(strengths: &'static [Strength], bits: &'static [u32]) -> Allowed {
    Allowed { writes: true, strengths, bits }
}

const WEAK: &[Strength] = &[Strength::Weak];
const RELAXED: &[Strength] = &[Strength::Relaxed];
const ORDERED: &[Strength] = &[Strength::Ordered];
const STRONG: &[Strength] = &[Strength::Relaxed, Strength::Ordered];
const PLAIN: &[Strength] = &[Strength::Weak, Strength::Relaxed, Strength::Ordered];

/// The list, and why each is on it.
fn allowed(place: Place) -> &'static [Allowed] {
    match place {
        // The command, and the host's sign of life: nothing hangs on them but themselves; a kernel with ports acquires the command.
        Place::Host => const { &[reads(STRONG, &[64])] },
        // Releases answers, counters, and what the next launch goes on from.
        Place::Acknowledgement => const { &[stores(ORDERED, &[64])] },
        // Counters and the heartbeat; of other channels, whether they are busy and whether to leave.
        Place::Status => const { &[stores(STRONG, &[64]), reads(STRONG, &[64])] },
        // The reads that it tells of are over: their values went through a barrier, or into answers.
        Place::RequestCredit => const { &[stores(STRONG, &[64])] },
        // Slots are overwritten on its word.
        Place::ResponseCredit => const { &[reads(ORDERED, &[64])] },
        // The control atom as one, and slots are read on their word.
        Place::RequestControl => const { &[reads(ORDERED, &[128])] },
        // The control atom as one; answers with their stamps. A fence stands before a tail.
        Place::ResponseControl | Place::ResponseAtom => const { &[stores(RELAXED, &[128])] },
        // Counters, for nobody else to act on.
        Place::Times => const { &[stores(STRONG, &[64]), reads(STRONG, &[64])] },
        // A look at a line, or all that a launch begins with: an atom a thread.
        Place::SomeAtom => const { &[reads(STRONG, &[128])] },
        // The bytes of messages, an atom at a time.
        Place::RequestSlot => const { &[reads(RELAXED, &[128])] },
        Place::ResponseSlot => const { &[stores(RELAXED, &[128])] },
        // One thread's, while the host keeps away; `order` has the fence before it.
        Place::State => const { &[stores(PLAIN, &[]), reads(PLAIN, &[])] },
        // What the host wrote before the launch.
        Place::CallsWord => const { &[reads(RELAXED, &[64])] },
        // Slots of calls are written again on its word.
        Place::CallCredit => const { &[reads(ORDERED, &[64])] },
        // Each atom says by its stamp whether it is whole.
        Place::CallAtom => const { &[stores(RELAXED, &[128]), reads(RELAXED, &[128])] },
        // Each half says by its stamp which record it is of; nobody on a device reads one.
        Place::TraceAtom => const { &[stores(RELAXED, &[128])] },
        // An atom of each block of all devices, and the word which says that one is lost.
        Place::Meetings => {
            const {
                &[
                    stores(STRONG, &[128]),
                    reads(STRONG, &[128]),
                    stores(ORDERED, &[64]),
                    reads(RELAXED, &[64]),
                ]
            }
        }
        // Words that handlers of several threads share, one by one and by fours.
        Place::Payload => const { &[stores(RELAXED, &[32, 128]), reads(RELAXED, &[32, 128])] },
        // Half an entry as one, of the scope of the GPU: other caches may hold what lay there before. One half acquires.
        Place::BufferTable => const { &[reads(STRONG, &[128])] },
        // Elements that many threads share. Four are read or written at once by weak accesses: PTX has no others so wide. What is frozen is
        // read by weak ones.
        Place::Buffer => {
            const {
                &[
                    stores(RELAXED, &[32, 64]),
                    reads(RELAXED, &[32, 64]),
                    stores(WEAK, &[]),
                    reads(WEAK, &[]),
                ]
            }
        }
        // What the block's threads tell each other.
        Place::Block(_) | Place::BlockCursors | Place::BlockBoot | Place::BlockWord => {
            const { &[stores(STRONG, &[]), reads(STRONG, &[])] }
        }
        // Messages on their way are plain bytes between barriers.
        Place::Private => const { &[stores(PLAIN, &[]), reads(PLAIN, &[])] },
        // Constants.
        Place::Image => const { &[reads(&[Strength::Weak], &[])] },
        Place::OtherWord | Place::Unknown => &[],
    }
}

fn is_allowed(function: &str, access: &Access) -> bool {
    let seen = access.place.is_seen_by_both() || access.place == Place::Payload;
    let is_one_weak = access.strength == Strength::Weak && access.bits.is_some();
    match access.place {
        Place::BufferTable if access.narrow => return false,
        Place::Buffer if is_one_weak && (access.writes || !reads_frozen(function)) => return false,
        _ => {}
    }
    allowed(access.place).iter().any(|allowed| {
        allowed.writes == access.writes
            && allowed.strengths.contains(&access.strength)
            && (allowed.bits.is_empty()
                || access.bits.is_some_and(|bits| allowed.bits.contains(&bits)))
            && (access.system || !seen)
    })
}

/// The accesses of a ring kernel's `function` that are not on the list.
#[must_use]
pub fn check(function: &Function<'_>, accesses: &[Option<Access>]) -> Vec<Violation> {
    let both = function.code.iter().zip(accesses);
    let found = both.filter_map(|(instruction, access)| {
        let access = (*access)?;
        (!is_allowed(function.name, &access)).then(|| Violation::of(instruction, why(&access)))
    });
    found.collect()
}

/// The rule that `access` breaks.
fn why(access: &Access) -> &'static str {
    match access.place {
        Place::Unknown => "access of an address that cannot be followed",
        Place::Image => "access of a module's constant that is not on the list",
        Place::Payload => "access of the payload that is not on the list",
        Place::BufferTable | Place::Buffer => "access of a buffer that is not on the list",
        Place::State
        | Place::Block(_)
        | Place::BlockCursors
        | Place::BlockBoot
        | Place::BlockWord
        | Place::Private => "access of the device's own memory that is not on the list",
        Place::CallsWord | Place::CallCredit | Place::CallAtom => {
            "access of a call to the host that is not on the list"
        }
        Place::TraceAtom => "access of a trace ring that is not on the list",
        Place::Meetings => "access of memory where devices meet that is not on the list",
        Place::OtherWord => "access of a word that a kernel does not touch",
        Place::Acknowledgement => "access of an acknowledgement that is not on the list",
        Place::ResponseCredit | Place::RequestCredit => {
            "access of a credit that is not on the list"
        }
        Place::RequestSlot | Place::ResponseSlot => "access of a slot that is not on the list",
        Place::RequestControl | Place::ResponseControl | Place::ResponseAtom | Place::SomeAtom => {
            "access of a doorbell that is not on the list"
        }
        Place::Host | Place::Status | Place::Times => {
            "access of memory of host and device that is not on the list"
        }
    }
}
