//! A handler that keeps the payload arena for later.

use ring_host::{Payload, ThreadContext};

fn keep(ctx: &ThreadContext<'_>) -> Payload<'static> {
    ctx.payload()
}

fn main() {}
