//! A handler with a state on a kernel whose scope has none.

use ring_device::{InOrderHandler, Kernel, Thread, ThreadContext, ThreadHandler};

struct Both;

impl Kernel for Both {
    const NAME: &'static str = "both";
    const ENTRY: &'static str = "both";
    type Request = u64;
    type Response = u64;
    type Scope = Thread;
}

impl ThreadHandler for Both {
    fn handle(_: &ThreadContext<'_>, request: &u64) -> u64 {
        *request
    }
}

impl InOrderHandler for Both {
    type State = u64;
    fn handle(_: &ThreadContext<'_>, _: &mut u64, request: &u64) -> u64 {
        *request
    }
}

fn main() {}
