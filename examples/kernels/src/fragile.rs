//! Kernels that a request is too much for, one of each scope: their handlers panic on 13.

ring_device::ring_kernel! {
    /// Answers with the square, a thread for each message.
    pub struct Fragile { name: "fragile", }

    fn handle(request: &u64) -> u64 {
        assert_ne!(*request, 13, "a request that the handler cannot bear");
        request.wrapping_mul(*request)
    }
}

ring_device::ring_kernel! {
    /// The same, a warp for each message; one thread of it panics.
    pub struct FragileWarp { name: "fragile_warp", }

    fn handle(ctx: &WarpContext, request: &u64, response: &Output<u64>) {
        if ctx.thread() == ctx.threads() / 2 {
            assert_ne!(*request, 13, "a request that the handler cannot bear");
        }
        square(ctx.thread(), *request, response);
    }
}

ring_device::ring_kernel! {
    /// The same, a block for each message; one thread of it panics.
    pub struct FragileBlock { name: "fragile_block", }

    fn handle(ctx: &BlockContext, request: &u64, response: &Output<u64>) {
        if ctx.thread() == ctx.threads() / 2 {
            assert_ne!(*request, 13, "a request that the handler cannot bear");
        }
        ctx.sync();
        square(ctx.thread(), *request, response);
    }
}

ring_device::ring_kernel! {
    /// The same, message after message.
    pub struct FragileInOrder { name: "fragile_in_order", }

    fn handle(_: &mut u64, request: &u64) -> u64 {
        assert_ne!(*request, 13, "a request that the handler cannot bear");
        request.wrapping_mul(*request)
    }
}

fn square(thread: usize, number: u64, response: &ring_device::Output<u64>) {
    let square = number.wrapping_mul(number);
    if thread == 0 {
        response.set(0, 0, square as u32);
        response.set(0, 1, (square >> 32) as u32);
    }
}
