//! The rules about fences, as they follow from the `SYNC` comments and the fences of
//! `ring-device/dispatch`.
//!
//! The thread that looks at a doorbell is seldom the one that reads the slots: it tells the others by words
//! of the block's memory. So most rules are about what a thread does before it tells, and those of the
//! block's scope about the telling itself. A rule ends at a barrier of the block where what a thread does
//! behind it rests on what others told it, not on what it has seen itself.

use super::order::{Event, Is, Rule};
use super::place::{Access, Place, Strength};
use ring_device::BlockMemory as Block;

fn read(event: Event, is: impl Fn(Place) -> bool) -> bool {
    matches!(event, Event::Access(access) if !access.writes && is(access.place))
}

fn write(event: Event, is: impl Fn(Place) -> bool) -> bool {
    matches!(event, Event::Access(access) if access.writes && is(access.place))
}

fn reads(event: Event, place: Place) -> bool {
    read(event, |found| found == place)
}

fn writes(event: Event, place: Place) -> bool {
    write(event, |found| found == place)
}

/// Reads the block's word at that offset.
fn hears(event: Event, at: usize) -> bool {
    reads(event, Place::Block(at))
}

/// Writes the block's word at that offset.
fn tells(event: Event, at: usize) -> bool {
    writes(event, Place::Block(at))
}

/// Compares and swaps.
fn swaps(event: Event) -> bool {
    matches!(event, Event::Access(access) if access.swaps)
}

/// Memory that a handler uses beside its messages: the payload, and buffers.
fn is_outside(place: Place) -> bool {
    matches!(place, Place::Payload | Place::Buffer)
}

/// A look at the doorbell, an atom a thread, that orders nothing by itself.
fn look(event: Event) -> bool {
    any_look(event) && is_relaxed(event)
}

/// An access that orders nothing by itself.
fn is_relaxed(event: Event) -> bool {
    matches!(event, Event::Access(access) if access.strength == Strength::Relaxed)
}

/// One that acquires.
fn acquiring_look(event: Event) -> bool {
    any_look(event) && !is_relaxed(event)
}

/// Either.
fn any_look(event: Event) -> bool {
    reads(event, Place::SomeAtom)
}

const fn never(_: Event) -> bool {
    false
}

fn barrier(event: Event) -> bool {
    event == Event::Barrier
}

fn any_barrier(event: Event) -> bool {
    matches!(event, Event::Barrier | Event::WarpBarrier)
}

/// The main loop's next turn.
fn next_event(event: Event) -> bool {
    hears(event, Block::WAKE)
}

/// The rule for kernels that view buffers, with ports or without.
pub const VIEWS: Rule = Rule::device(
    "neither an acquiring load nor a fence between an entry of the table of buffers and what it leads to",
    |event| reads(event, Place::BufferTable) && is_relaxed(event),
    |event| matches!(event, Event::Access(access) if access.place == Place::Buffer && !is_of_gpu(access)),
)
.until(|event| reads(event, Place::BufferTable) && !is_relaxed(event));

/// Whether an access is made where all threads of the GPU see memory, past any L1 cache.
fn is_of_gpu(access: Access) -> bool {
    access.strength == Strength::Relaxed && !access.narrow && !access.system
}

/// The rules.
pub const RULES: [Rule; 28] = [
    Rule::system(
        "no fence.acq_rel.sys between a look at the doorbell and telling the block of slots to read",
        look,
        |event| tells(event, Block::INBOX_TAIL),
    )
    .until(barrier),
    Rule::system(
        "no fence.acq_rel.sys between answers in slots and the tail that tells the host of them",
        |event| writes(event, Place::ResponseSlot),
        |event| writes(event, Place::ResponseControl),
    ),
    Rule::system(
        "no fence.acq_rel.sys between what a launch begins with and keeping it for the block",
        look,
        |event| writes(event, Place::BlockBoot),
    )
    .until(barrier),
    // Credit: slots are overwritten on its word, by threads that have not read it.
    Rule::system(
        "no fence.acq_rel.sys between a credit in the doorbell and telling the block of it",
        look,
        |event| tells(event, Block::CONSUMED),
    )
    .until(barrier),
    Rule::block(
        "no fence between a credit that another thread of the warp has read and telling the block of it",
        |event| event == Event::WarpBarrier,
        |event| tells(event, Block::CONSUMED),
    )
    // A thread that reads the control atom by itself needs none.
    .until(|event| barrier(event) || reads(event, Place::RequestControl)),
    Rule::block(
        "no fence between the host's credit and telling the block of it",
        |event| reads(event, Place::ResponseCredit),
        |event| tells(event, Block::CONSUMED),
    )
    .until(barrier),
    // Two warps answer one after the other.
    Rule::block(
        "no fence between an answer and telling the other polling warp that it is out",
        |event| {
            write(event, |place| matches!(place, Place::ResponseControl | Place::ResponseAtom))
        },
        |event| tells(event, Block::COMMITTED),
    )
    .until(barrier),
    Rule::block(
        "no fence between hearing that an answer is out and writing the next",
        |event| hears(event, Block::COMMITTED),
        |event| writes(event, Place::ResponseSlot),
    )
    .until(barrier),
    // Nothing goes inline behind an answer in a slot: who claims late looks again where those end.
    Rule::block(
        "no fence between where answers in slots end and opening the claims",
        |event| tells(event, Block::SLOTS_END),
        |event| tells(event, Block::CLAIMS) && !swaps(event), // which claims, or closes them
    )
    .until(barrier),
    Rule::block(
        "neither an acquiring load nor a fence between the claims as they are now and where answers in slots end",
        |event| hears(event, Block::CLAIMS) && is_relaxed(event),
        |event| hears(event, Block::SLOTS_END),
    )
    // Claims that were read before a look are compared with what they are when one is made.
    .until(|event| any_look(event) || reads(event, Place::BlockBoot) || barrier(event)),
    // The values of slots are there when they went through a barrier.
    Rule::block(
        "no barrier or fence between reading slots and telling the host that they are free",
        |event| reads(event, Place::RequestSlot),
        |event| writes(event, Place::RequestCredit),
    )
    .until(any_barrier),
    // The payload, and a state, which are no part of the ring.
    Rule::system(
        "no fence.acq_rel.sys between a look at the doorbell and reading the payload",
        look,
        |event| read(event, is_outside),
    )
    .until(barrier),
    Rule::system(
        "no fence.acq_rel.sys between a message that came in the line and reading the payload",
        look,
        |event| read(event, is_outside),
    )
    .past(&[
        (|event| tells(event, Block::STAGED), never),
        (|event| hears(event, Block::STAGED), never),
    ])
    .until(next_event),
    Rule::block(
        "neither a barrier nor a fence between a look that acquires and reading the payload",
        acquiring_look,
        |event| read(event, is_outside),
    )
    .until(any_barrier),
    Rule::system(
        "no fence.acq_rel.sys between a handler's writes to the payload and its answer",
        |event| write(event, is_outside),
        |event| {
            write(event, |place| matches!(place, Place::ResponseControl | Place::ResponseAtom))
        },
    )
    // Where a handler may have written to it, a word says so: the next rule.
    .where_set(|event| hears(event, Block::USES_PAYLOAD)),
    Rule::without_fence(
        "no word to the block that the payload is used before a handler writes to it",
        next_event,
        |event| write(event, is_outside),
    )
    .until(|event| tells(event, Block::USES_PAYLOAD)),
    VIEWS,
    // By all threads of the warp that looked: before what thread 0 does alone.
    Rule::system(
        "no fence.acq_rel.sys between a command and a state that the host may have written before it",
        |event| hears(event, Block::COMMAND),
        |event| tells(event, Block::ACKNOWLEDGED),
    )
    .until(next_event)
    .only(|event| matches!(event, Event::Access(access) if access.place == Place::State)),
    // A stream: the poller looks and lets workers go on, they say what they have, the committer tells the host.
    Rule::block(
        "no fence between what the poller's threads looked at and their leader's telling of it",
        acquiring_look,
        |event| {
            let told = [Block::INBOX_TAIL, Block::CONSUMED, Block::DISPATCH_LIMIT];
            told.iter().any(|at| tells(event, *at))
        },
    )
    .until(barrier),
    Rule::block(
        "no fence between what the poller saw and letting workers go on",
        |event| hears(event, Block::STOP),
        |event| tells(event, Block::DISPATCH_LIMIT),
    )
    .until(barrier),
    Rule::block(
        "no fence between when requests were not seen yet and letting workers go on",
        |event| tells(event, Block::SPLIT),
        |event| tells(event, Block::DISPATCH_LIMIT),
    )
    .until(barrier),
    Rule::block(
        "no fence between that a worker may have requests and its taking them",
        |event| writes(event, Place::BlockCursors),
        |event| tells(event, Block::TAKEN),
    )
    .until(barrier),
    Rule::block(
        "no fence between how far requests are taken and which of them workers have",
        |event| hears(event, Block::TAKEN),
        |event| reads(event, Place::BlockCursors),
    ),
    Rule::block(
        "no fence between how far a worker may go and the slots that it reads",
        |event| hears(event, Block::DISPATCH_LIMIT),
        |event| reads(event, Place::RequestSlot),
    ),
    Rule::block(
        "no fence between a worker's answers and how far it says that it is",
        |event| writes(event, Place::ResponseSlot),
        |event| writes(event, Place::BlockCursors),
    )
    .until(barrier),
    Rule::block(
        "no fence between how far workers are and what the committer makes of it",
        |event| reads(event, Place::BlockCursors),
        |event| event == Event::WarpBarrier,
    ),
    Rule::block(
        "no fence between what is done and telling the host of it",
        |event| tells(event, Block::STREAM_COMMITTED),
        |event| {
            write(event, |place| matches!(place, Place::ResponseControl | Place::RequestCredit))
        },
    )
    .until(barrier),
    // A handler that panicked.
    Rule::block(
        "no fence between that a handler panicked and what sends the others to a barrier",
        |event| tells(event, Block::PANICKED),
        |event| tells(event, Block::WAKE) || tells(event, Block::STREAM_END),
    )
    .until(barrier),
];

/// What every ring kernel does: without it the rules have nothing to hold on to.
pub const NEEDED: [(&str, Is); 8] = [
    ("a look at the doorbell", any_look),
    ("a look that acquires", |event| {
        let credit = |place| matches!(place, Place::RequestControl | Place::ResponseCredit);
        acquiring_look(event) || read(event, credit)
    }),
    ("telling the block of slots to read", |event| tells(event, Block::INBOX_TAIL)),
    ("reading a request's slot", |event| reads(event, Place::RequestSlot)),
    ("writing a response's slot", |event| writes(event, Place::ResponseSlot)),
    ("a tail for the host", |event| writes(event, Place::ResponseControl)),
    ("a credit for the host", |event| writes(event, Place::RequestCredit)),
    ("an acknowledgement", |event| writes(event, Place::Acknowledgement)),
];
