use super::script::{Act, Message};
use super::*;
use crate::Lie;
use crate::kernels::Counter;
use crate::lie::Start;
use ring_device::VectorAdd;
use ring_device::kernels::{VectorAddResponse, status};
use ring_shared::layout::Exit;
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
