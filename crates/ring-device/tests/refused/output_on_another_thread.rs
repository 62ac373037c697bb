//! A handler that lets another thread write its response, and one that lends its context.

ring_device::ring_kernel! {
    /// Not alone.
    pub struct Lends;

    fn handle(ctx: &BlockContext, request: &u32, response: &Output<u32>) {
        std::thread::scope(|threads| {
            threads.spawn(|| response.set(0, 0, *request));
            threads.spawn(|| ctx.sync());
        });
    }
}

fn main() {}
