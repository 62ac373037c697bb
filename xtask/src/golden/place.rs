//! What each access of memory reaches: a line of the host's or the channel's, a slot, the block's memory.

use super::code::{Function, Instruction};
use super::value::{Base, Value, Values};
use ring_device::BlockMemory;
use ring_shared::layout::{ChannelBlock, ControlBlock, CreditLine, Doorbell, StatusLine, Times};
use ring_shared::ring::CONTROL;
use std::mem::{offset_of, size_of};

/// What an access reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A word of the control block.
    Host,
    /// The word by which a channel acknowledges, or says that it has left.
    Acknowledgement,
    /// Another word of a status line.
    Status,
    /// How many requests are consumed.
    RequestCredit,
    /// How many responses are consumed.
    ResponseCredit,
    /// The control atom of the requests' doorbell.
    RequestControl,
    /// The control atom of the responses' doorbell.
    ResponseControl,
    /// An atom of the responses' doorbell, which of them depends on the thread.
    ResponseAtom,
    /// A bucket of a histogram.
    Times,
    /// An atom of the channel's block or of the control block, which of them depends on the thread.
    SomeAtom,
    /// Another word of the channel's block.
    OtherWord,
    /// The slots of requests.
    RequestSlot,
    /// The slots of responses.
    ResponseSlot,
    /// What a handler keeps from message to message, in device memory.
    State,
    /// The word of the channel's block that says where its call slots are.
    CallsWord,
    /// How many calls to the host are over.
    CallCredit,
    /// An atom of a call to the host, or of its answer.
    CallAtom,
    /// An atom of a record of the channel's trace ring.
    TraceAtom,
    /// Where grids of several devices meet, in the memory of each.
    Meetings,
    /// The payload arena, in device memory.
    Payload,
    /// An entry of the table of buffers, in device memory.
    BufferTable,
    /// A buffer, in device memory.
    Buffer,
    /// The word of the block's memory at that offset.
    Block(usize),
    /// A word of the block's memory that holds how far a worker is.
    BlockCursors,
    /// A word of the block's memory that holds what a launch begins with.
    BlockBoot,
    /// Some word of the block's memory by which its threads tell each other things.
    BlockWord,
    /// Other memory that the host never sees: the block's pool, other shared memory, local memory,
    /// parameters.
    Private,
    /// A variable of the module.
    Image,
    /// Nobody knows.
    Unknown,
}

impl Place {
    /// Whether both host and device see it while a kernel runs, or several devices do.
    #[must_use]
    pub fn is_seen_by_both(self) -> bool {
        !matches!(
            self,
            Place::State
                | Place::Payload
                | Place::BufferTable
                | Place::Buffer
                | Place::Block(_)
                | Place::BlockCursors
                | Place::BlockBoot
                | Place::BlockWord
                | Place::Private
                | Place::Image
        )
    }
}

/// How strong an access is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Not atomic.
    Weak,
    /// Atomic, and orders nothing.
    Relaxed,
    /// Orders what follows, or what comes before.
    Ordered,
    /// `.volatile` or `.mmio`, or what else has a meaning of its own.
    Odd,
}

/// An access of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// What it reaches.
    pub place: Place,
    /// It writes; else it reads.
    pub writes: bool,
    /// It reads as well, as one.
    pub swaps: bool,
    /// How strong it is.
    pub strength: Strength,
    /// It is of system scope.
    pub system: bool,
    /// It is of the block's scope.
    pub narrow: bool,
    /// Bits, all elements together; `None` if several elements make them up.
    pub bits: Option<u32>,
}

/// The access that `instruction` makes at `value`, if it loads or stores.
fn access(instruction: &Instruction<'_>, value: Option<Value>) -> Option<Access> {
    let writes = match instruction.name() {
        "ld" | "ldu" => false,
        "st" | "red" | "atom" => true,
        _ => return None,
    };
    let in_space =
        |space: &str| instruction.opcode.iter().any(|part| part.split("::").next() == Some(space));
    let place = match value {
        Some(value) if value.base == Base::Block => block(value),
        _ if ["shared", "local", "param", "const"].iter().any(|space| in_space(space)) => {
            Place::Private
        }
        Some(value) => place(value),
        None => Place::Unknown,
    };
    let strength = if instruction.has("volatile") || instruction.has("mmio") {
        Strength::Odd
    } else if instruction.has("acquire") || instruction.has("release") {
        Strength::Ordered
    } else if instruction.has("relaxed") || matches!(instruction.name(), "red" | "atom") {
        Strength::Relaxed // what they are if nothing else is said
    } else {
        Strength::Weak
    };
    let vector = instruction.has("v2") || instruction.has("v4") || instruction.has("v8");
    let bits = instruction.opcode.last().and_then(|last| last.get(1..)?.parse().ok());
    let bits = bits.filter(|_| !vector);
    let (swaps, system) = (instruction.name() == "atom", instruction.has("sys"));
    let narrow = instruction.has("cta");
    Some(Access { place, writes, swaps, strength, system, narrow, bits })
}

/// All accesses of `function`, by instruction.
#[must_use]
pub fn accesses(function: &Function<'_>, values: &Values) -> Vec<Option<Access>> {
    let all = function.code.iter().enumerate();
    all.map(|(at, instruction)| access(instruction, values.address(at))).collect()
}

fn place(value: Value) -> Place {
    let told = |at: i64| match usize::try_from(at) {
        Ok(BlockMemory::REQUEST_SLOTS) => Place::RequestSlot,
        Ok(BlockMemory::RESPONSE_SLOTS) => Place::ResponseSlot,
        Ok(BlockMemory::STATE | BlockMemory::GRID) => Place::State,
        Ok(at) if at == BlockMemory::DEVICES[0] => Place::Meetings,
        Ok(BlockMemory::PAYLOAD) => Place::Payload,
        Ok(BlockMemory::BUFFERS) => Place::BufferTable,
        _ => Place::Unknown,
    };
    match value.base {
        Base::Parameter => kernel(value),
        Base::Block => block(value),
        Base::Shared => Place::Private,
        Base::Image => Place::Image,
        Base::Told(at) if usize::try_from(at) == Ok(BlockMemory::CALLS) => call(value),
        Base::Told(at) if usize::try_from(at) == Ok(BlockMemory::TRACE) => trace(value),
        Base::Told(at) => told(at),
        Base::Line(at) => line(at, value),
        Base::Lines if value.stride.is_multiple_of(16) => Place::SomeAtom,
        Base::Lines => Place::OtherWord,
        Base::Buffer => Place::Buffer,
        Base::Number | Base::Entry | Base::Unknown => Place::Unknown,
    }
}

/// Whether an atom begins there, of memory that begins with one.
fn is_atom(value: Value) -> bool {
    value.stride.is_multiple_of(16) && value.home.rem_euclid(16) == 0
}

/// What lies at an offset of a channel's call slots.
fn call(value: Value) -> Place {
    if value.is_exact() && value.home == offset_of!(CreditLine, consumed) as i64 {
        return Place::CallCredit;
    }
    if is_atom(value) { Place::CallAtom } else { Place::OtherWord }
}

/// What lies at an offset of the ring's lines whose address the host left at `told`.
fn line(told: i64, value: Value) -> Place {
    const LINE: usize = size_of::<Doorbell>();
    let (control, credit) = (16 * CONTROL as i64, offset_of!(CreditLine, consumed) as i64);
    let (exact, at) = (value.is_exact(), value.home);
    let atom = is_atom(value);
    // Of some line, which of them depends on the message.
    let is_control =
        value.stride.is_multiple_of(LINE as u64) && at.rem_euclid(LINE as i64) == control;
    match usize::try_from(told) {
        Ok(BlockMemory::REQUEST_LINES) if is_control => Place::RequestControl,
        Ok(BlockMemory::REQUEST_LINES) if atom => Place::SomeAtom,
        Ok(BlockMemory::RESPONSE_LINES) if is_control => Place::ResponseControl,
        Ok(BlockMemory::RESPONSE_LINES) if atom => Place::ResponseAtom,
        Ok(BlockMemory::REQUEST_CREDIT) if exact && at == credit => Place::RequestCredit,
        Ok(BlockMemory::RESPONSE_CREDIT) if exact && at == credit => Place::ResponseCredit,
        _ => Place::OtherWord,
    }
}

fn block(value: Value) -> Place {
    let Ok(at) = usize::try_from(value.home) else { return Place::Unknown };
    let [first, behind] = BlockMemory::CURSORS;
    let [boot, end] = BlockMemory::BOOT;
    match at {
        at if (first..behind).contains(&at) => Place::BlockCursors,
        at if at >= BlockMemory::SCRATCH => Place::Private,
        at if value.is_exact() => Place::Block(at),
        at if (boot..end).contains(&at) => Place::BlockBoot,
        _ => Place::BlockWord,
    }
}

/// What lies at an offset of a channel's trace ring.
fn trace(value: Value) -> Place {
    if is_atom(value) { Place::TraceAtom } else { Place::OtherWord }
}

/// What lies at an offset of the control block and the channels' blocks behind it.
fn kernel(value: Value) -> Place {
    const CHANNEL: u64 = size_of::<ChannelBlock>() as u64;
    let control = size_of::<ControlBlock>() as i64;
    if value.is_exact() && (0..control).contains(&value.home) {
        return Place::Host;
    }
    // Exact but for the channel; else the place that the thread with index 0 reaches.
    let exact = value.stride.is_multiple_of(CHANNEL);
    let at = (value.home - control).rem_euclid(CHANNEL as i64) as usize;
    let atom = value.stride.is_multiple_of(16) && at.is_multiple_of(16);
    let inside = |begin: usize, bytes: usize| (begin..begin + bytes).contains(&at);
    let control_of = |bell: usize| exact && at == bell + 16 * CONTROL;
    let status = offset_of!(ChannelBlock, status);
    let ends = [offset_of!(StatusLine, acknowledged), offset_of!(StatusLine, launches_left)];
    let credit = |line: usize| exact && at == line + offset_of!(CreditLine, consumed);
    let response_bell = offset_of!(ChannelBlock, response_bell);
    if control_of(response_bell) {
        Place::ResponseControl
    } else if control_of(offset_of!(ChannelBlock, request_bell)) {
        Place::RequestControl
    } else if atom && inside(response_bell, size_of::<Doorbell>()) {
        Place::ResponseAtom
    } else if inside(offset_of!(ChannelBlock, times), size_of::<Times>()) && (exact || !atom) {
        Place::Times
    } else if exact && ends.contains(&at.wrapping_sub(status)) {
        Place::Acknowledgement
    } else if exact && inside(status, size_of::<StatusLine>()) {
        Place::Status
    } else if credit(offset_of!(ChannelBlock, request_credit)) {
        Place::RequestCredit
    } else if credit(offset_of!(ChannelBlock, response_credit)) {
        Place::ResponseCredit
    } else if exact && at == offset_of!(ChannelBlock, calls) {
        Place::CallsWord
    } else if atom && !exact {
        Place::SomeAtom
    } else {
        Place::OtherWord
    }
}

#[cfg(test)]
mod tests {
    use super::{Base, Place, Value, place};
    use ring_device::BlockMemory;
    use ring_shared::layout::ChannelBlock;
    use std::mem::{offset_of, size_of};

    fn at(base: Base, home: i64, stride: u64) -> Place {
        place(Value { base, home, stride })
    }

    #[test]
    fn lines_of_each_channel_are_told_apart() {
        let channel = size_of::<ChannelBlock>() as u64;
        let of = |at: usize| 256 + at as i64;
        let bell = of(offset_of!(ChannelBlock, response_bell));
        for (home, stride, place) in [
            (16, 0, Place::Host),
            (of(128), channel, Place::Acknowledgement),
            (of(128 + 56), 3 * channel, Place::Acknowledgement),
            (of(128 + 8), 0, Place::Status),
            (of(256), channel, Place::RequestCredit),
            (of(256 + 8), channel, Place::OtherWord),
            (bell + 112, channel, Place::ResponseControl),
            (bell + 112, 16, Place::ResponseAtom),
            (bell, 8, Place::OtherWord),
            (of(512), 8, Place::Times),
            (of(512), 16, Place::SomeAtom),
            (of(1024 + 112), channel, Place::RequestControl),
            (of(1024), 16, Place::SomeAtom),
            (of(1152), channel, Place::ResponseCredit),
            (of(0), channel, Place::OtherWord),
            (of(120), channel, Place::CallsWord),
        ] {
            assert_eq!(at(Base::Parameter, home, stride), place, "{home} and {stride} times k");
        }
    }

    #[test]
    fn atoms_of_lines_elsewhere_are_told_apart() {
        let requests = Base::Line(BlockMemory::REQUEST_LINES as i64);
        let responses = Base::Line(BlockMemory::RESPONSE_LINES as i64);
        for (base, home, stride, place) in [
            (requests, 112, 0, Place::RequestControl),
            (requests, 112, 128, Place::RequestControl),
            (requests, 112 + 3 * 128, 256, Place::RequestControl),
            (requests, 112, 16, Place::SomeAtom),
            (requests, 96, 128, Place::SomeAtom),
            (responses, 112, 128, Place::ResponseControl),
            (responses, 0, 16, Place::ResponseAtom),
            (responses, 8, 16, Place::OtherWord),
        ] {
            assert_eq!(at(base, home, stride), place, "{base:?}: {home} and {stride} times k");
        }
    }

    #[test]
    fn the_team_s_words_and_what_the_host_left_there_are_told_apart() {
        let tail = BlockMemory::INBOX_TAIL;
        assert_eq!(at(Base::Block, tail as i64, 0), Place::Block(tail));
        assert_eq!(at(Base::Block, tail as i64, 8), Place::BlockWord);
        assert_eq!(at(Base::Block, BlockMemory::CURSORS[0] as i64, 8), Place::BlockCursors);
        assert_eq!(at(Base::Block, BlockMemory::SCRATCH as i64, 16), Place::Private);
        assert_eq!(at(Base::Told(BlockMemory::REQUEST_SLOTS as i64), 0, 16), Place::RequestSlot);
        assert_eq!(at(Base::Told(BlockMemory::STATE as i64), 8, 0), Place::State);
        let calls = Base::Told(BlockMemory::CALLS as i64);
        assert_eq!(at(calls, 0, 0), Place::CallCredit);
        assert_eq!(at(calls, 8, 0), Place::OtherWord);
        assert_eq!(at(calls, 128, 16), Place::CallAtom);
        assert_eq!(at(calls, 128, 8), Place::OtherWord);
        let trace = Base::Told(BlockMemory::TRACE as i64);
        assert_eq!(at(trace, 48, 64), Place::TraceAtom);
        assert_eq!(at(trace, 8, 64), Place::OtherWord);
        assert_eq!(at(Base::Number, 0, 1), Place::Unknown);
    }
}
