//! Kernels whose messages are traced, one of each scope: they answer with the request.

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

/// The thread of that many copies its words.
fn copy((thread, threads): (usize, usize), request: &Line, response: &ring_device::Output<Line>) {
    let mut i = thread;
    while let Some(word) = request.get(i) {
        response.set(0, i, *word);
        i += threads;
    }
}
