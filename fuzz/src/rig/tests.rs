use super::script::{Act, Message};
use super::*;
use crate::Lie;
use crate::kernels::{ByGrid, ByGridLong, ByReference, Counter};
use crate::lie::Start;
use core::mem::offset_of;
use ring_device::VectorAdd;
use ring_device::kernels::{VectorAddResponse, status};
use ring_shared::layout::{Command, Exit, HostLine, State};
use std::sync::atomic::Ordering::Relaxed;

fn shape(lines: u8) -> Shape {
    Shape { channels: 0, channel: 0, log2: 3, payload: 6, start: Start::Zero, head: None, lines }
}

/// Lines in the block, and one, two and 64 behind the blocks.
const LINES: [u8; 4] = [0, 1, 2, 7];

fn step(act: Act) -> Step {
    Step { quiet: 31, nanoseconds: 100, act }
}

/// Without answers the targets would show nothing.
#[test]
fn messages_of_the_script_are_answered() {
    for lines in LINES {
        let vectors = |len, at| step(Act::Slots(1, Message::Vectors(len, false, at), None));
        let steps = vec![vectors(2, Lie::Near(0)), vectors(2, Lie::Near(4))];
        let host = one::<VectorAdd>(Host::new::<VectorAdd>(shape(lines)), steps);
        assert!(host.own().status.processed.load(Relaxed) >= 2);
        assert!(host.own().status.refused.load(Relaxed) >= 1);
        let answers = host.answers::<VectorAddResponse>();
        assert_eq!((answers[0].status, answers[1].status), (status::PAYLOAD, status::BAD_PAYLOAD));
        assert_eq!(host.own().status.exit.load(Relaxed), Exit::Asked as u64);
        let payload = |at, words| step(Act::Inline(Message::Payload(at, words), None));
        let steps =
            vec![payload(Lie::Near(-8), Lie::Near(0)), payload(Lie::Near(-8), Lie::Near(1))];
        let host = one::<Counter>(Host::new::<Counter>(shape(lines)), steps);
        assert!(host.own().status.processed.load(Relaxed) >= 2);
        assert!(host.own().status.refused.load(Relaxed) >= 1);
    }
}

/// Channel 0 looks at the others before it leaves, and a channel leaves when channel 0 calls it.
#[test]
fn budgets_of_the_script_are_spent() {
    for lines in LINES {
        let idle = Edit::Lie(Field::Kernel(6), Part::Word, Lie::Small(200));
        let steps = || (0..4).map(|_| step(Act::Credit(Lie::Near(0)))).collect::<Vec<_>>();
        let mut host = Host::new::<VectorAdd>(Shape { channels: 1, ..shape(lines) });
        host.edit(&idle, true);
        let host = one::<VectorAdd>(host, steps());
        assert_eq!(host.own().status.exit.load(Relaxed), Exit::Idle as u64);
        let mut host = Host::new::<VectorAdd>(Shape { channels: 1, channel: 1, ..shape(lines) });
        host.edit(&idle, true);
        host.edit(&Edit::Lie(Field::Other(0, 13), Part::Word, Lie::Small(1)), true);
        let host = one::<VectorAdd>(host, steps());
        assert_eq!(host.own().status.exit.load(Relaxed), Exit::Idle as u64);
    }
}

fn tables(lies: Vec<TableLie>) -> Tables {
    Tables { words: [9, 200], lies }
}

fn with_tables<K: Kernel>(lines: u8, blocks: u32, lies: Vec<TableLie>) -> Host {
    Host::new::<K>(shape(lines)).with_buffers(tables(lies)).on_blocks(blocks)
}

/// A message of so many elements, as far behind the last place that has room for them.
fn reference(count: u8, behind: i8) -> Message {
    Message::Vectors(count, false, Lie::Near(behind))
}

fn in_slots(message: Message) -> Step {
    step(Act::Slots(1, message, None))
}

/// All blocks see the elements, and only those: each is counted up by one for each message.
#[test]
fn references_of_the_script_are_viewed_by_each_block() {
    fn goes_round<K: Kernel>(lines: u8, blocks: u32) {
        let words = Message::Payload(Lie::Near(0), Lie::Near(0));
        let steps = vec![in_slots(words), in_slots(reference(4, -1)), in_slots(reference(4, 1))];
        let mut host = with_tables::<K>(lines, blocks, Vec::new());
        for launch in 1..3 {
            host = one::<K>(host, steps.clone());
            assert_eq!(host.own().status.exit.load(Relaxed), Exit::Asked as u64);
            let status = &host.own().status;
            let [processed, refused] =
                [&status.processed, &status.refused].map(|n| n.load(Relaxed));
            assert!(processed >= 3 * launch && refused >= launch, "{processed}, {refused}");
            assert!(refused < processed - launch, "{processed}, {refused}");
            let again = Command { epoch: 10 * launch as u32, state: State::Active as u32 };
            host.write(offset_of!(HostLine, command), again.to_word());
        }
        let found = host.buffers.as_ref().unwrap().contents(0);
        assert!(found.iter().all(|word| *word > 0), "{found:?}");
        // The upper half of an element that is added to, too.
        assert!(found[5] > found[0] && found[8] == found[0], "{found:?}");
        assert_eq!(host.buffers.as_ref().unwrap().contents(1), [0; 200]);
    }
    for lines in LINES {
        goes_round::<ByReference>(lines, 1);
        for blocks in [1, 2] {
            goes_round::<ByGrid>(lines, blocks);
            goes_round::<ByGridLong>(lines, blocks);
        }
    }
}

/// An entry that a lie has made another's is refused, before a launch or while it runs; so is every reference where there is no
/// table.
#[test]
fn lies_of_the_script_are_told() {
    let lie =
        |before, word| TableLie { before, entry: false, word, part: Part::Word, lie: Lie::Near(1) };
    let step = |quiet| Step { quiet, ..in_slots(reference(2, 0)) };
    for word in [1, 3, 4] {
        for blocks in [1, 2] {
            let host = with_tables::<ByGrid>(0, blocks, vec![lie(true, word)]);
            let host = one::<ByGrid>(host, vec![step(31)]);
            let status = &host.own().status;
            assert!(status.processed.load(Relaxed) > 0);
            assert_eq!(status.processed.load(Relaxed), status.refused.load(Relaxed), "{word}");
        }
    }
    let host = with_tables::<ByGrid>(0, 2, vec![lie(false, 1), lie(false, 3)]);
    let host = one::<ByGrid>(host, vec![step(31), step(31), step(255), step(31)]);
    let status = &host.own().status;
    let [processed, refused] = [&status.processed, &status.refused].map(|n| n.load(Relaxed));
    assert!(refused > 0 && refused < processed, "{processed}, {refused}");
}
