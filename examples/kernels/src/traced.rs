//! Kernels whose messages are traced: one of each scope that answers with the request, and some that send messages on.

use crate::graph::Item;

/// What they are sent: 64 bytes.
pub type Line = [u32; 16];

ring_device::ring_kernel! {
    /// A thread for each message.
    pub struct Traced { name: "traced", traced: true, }

    fn handle(request: &Line) -> Line {
        *request
    }
}

ring_device::ring_kernel! {
    /// A warp for each message.
    pub struct TracedWarp { name: "traced_warp", traced: true, }

    fn handle(ctx: &WarpContext, request: &Line, response: &Output<Line>) {
        copy((ctx.thread(), ctx.threads()), request, response);
    }
}

ring_device::ring_kernel! {
    /// The whole block for each message.
    pub struct TracedBlock { name: "traced_block", traced: true, }

    fn handle(ctx: &BlockContext, request: &Line, response: &Output<Line>) {
        copy((ctx.thread(), ctx.threads()), request, response);
    }
}

ring_device::ring_kernel! {
    /// Message after message, with a state that counts them.
    pub struct TracedInOrder { name: "traced_in_order", traced: true, }

    fn handle(count: &mut u64, request: &Line) -> Line {
        *count += 1;
        *request
    }
}

ring_device::ring_kernel! {
    /// Passes each message on.
    pub struct TracedPass {
        name: "traced_pass",
        traced: true,
        ports: {
            /// The messages.
            ON: [u64; 1] by |number| *number as u32,
        },
    }

    fn handle(number: &u64, out: &mut Ports) {
        out.emit(TracedPass::ON, *number);
    }
}

ring_device::ring_kernel! {
    /// Passes on as many copies of a message as it says, up to three.
    pub struct TracedCopier {
        name: "traced_copier",
        traced: true,
        ports: {
            /// The copies.
            COPIES: [Item; 3] by |item| item.key,
            /// The numbers of those messages of which there was no copy.
            NONE: [u64; 1],
        },
    }

    fn handle(item: &Item, out: &mut Ports) {
        for copy in 0..item.copies.min(3) {
            out.emit(TracedCopier::COPIES, item.copied(copy));
        }
        if item.copies == 0 {
            out.emit(TracedCopier::NONE, item.number);
        }
    }
}

ring_device::ring_kernel! {
    /// Passes each message on, by a whole block.
    pub struct TracedTogether {
        name: "traced_together",
        traced: true,
        ports: {
            /// The messages.
            ON: [Item; 1] by |item| item.key,
        },
    }

    fn handle(_ctx: &BlockContext, item: &Item, out: &mut Ports) {
        out.emit(TracedTogether::ON, item.passed());
    }
}

ring_device::ring_kernel! {
    /// Counts messages, one after the other, and passes each on with the count.
    pub struct TracedTally {
        name: "traced_tally",
        traced: true,
        ports: {
            /// The messages.
            COUNTED: [Item; 1] by |item| item.key,
        },
    }

    fn handle(count: &mut u64, item: &Item, out: &mut Ports) {
        *count = count.wrapping_add(1);
        out.emit(TracedTally::COUNTED, Item { counted: *count, ..item.passed() });
    }
}

/// The thread of that many copies its words.
fn copy((thread, threads): (usize, usize), request: &Line, response: &ring_device::Output<Line>) {
    let mut i = thread;
    while let Some(word) = request.get(i) {
        response.set(0, i, *word);
        i += threads;
    }
}
