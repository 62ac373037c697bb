//! A first block answers where there are several.

ring_device::ring_kernel! {
    pub struct Blocks { first_block_answers: true, }

    fn handle(ctx: &BlockContext, request: &u64, response: &Output<u64>) {
        let _ = (ctx, request, response);
    }
}

fn main() {}
