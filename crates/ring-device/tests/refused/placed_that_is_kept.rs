//! A handler that keeps a message which it has placed, for the next call.

use ring_device::Placed;
use std::cell::Cell;

thread_local! {
    static BEFORE: Cell<Option<Placed<'static, u64>>> = const { Cell::new(None) };
}

ring_device::ring_kernel! {
    /// Keeps what it has placed.
    pub struct Keeps {
        ports: {
            /// Numbers.
            NUMBERS: [u64; 1],
        },
    }

    fn handle(_: &u64, out: &mut Ports) {
        BEFORE.set(Some(out.place(Keeps::NUMBERS)));
    }
}

fn main() {}
