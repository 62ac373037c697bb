//! A channel on a host that keeps no rule but that of `ring_device::run`: addresses lead to memory as large as
//! the configuration says. All else is the script's: it edits before each launch, and while the channel rests or looks
//! at the clock. In the end it commands termination, and goes on lying until the channel has left.
//!
//! Time is the script's too, so a run depends on nothing else.

mod after;
mod field;
mod host;
mod script;
#[cfg(test)]
mod tests;

pub use field::{Edit, Field, Part};
pub use host::{Host, Shape};
pub use script::{Message, Script, Step};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_device::{BlockMemory, Hooks, Kernel, ThreadBlock, run};
use std::cell::RefCell;

/// Launches over the same memory, and what is done to it.
#[derive(Arbitrary, Debug)]
pub struct Input {
    /// How large everything is.
    pub shape: Shape,
    /// One launch each, at most [`LAUNCHES`].
    pub launches: Vec<LaunchConfig>,
}

/// What is done to one launch.
#[derive(Arbitrary, Debug)]
pub struct LaunchConfig {
    /// Before it.
    pub before: Vec<Edit>,
    /// While it runs.
    pub during: Vec<Step>,
}

/// Most launches of an input.
const LAUNCHES: usize = 3;

thread_local! {
    static MEMORY: RefCell<Box<BlockMemory>> = RefCell::new(Box::new(const { BlockMemory::new() }));
}

/// Runs the launches, and checks after each what must be so whatever the host did.
pub fn launches<K: Kernel>(input: Input) {
    let mut host = Host::new::<K>(input.shape);
    for launch in input.launches.into_iter().take(LAUNCHES) {
        for edit in &launch.before {
            host.edit(edit, true);
        }
        host = one::<K>(host, launch.during);
    }
}

fn one<K: Kernel>(mut host: Host, steps: Vec<Step>) -> Host {
    let expected = host.before_launch();
    let (control, channel) = (host.control(), host.shape.block());
    script::begin(Script::new(host, steps));
    MEMORY.with_borrow_mut(|memory| {
        // As on a GPU, where block-shared memory holds what somebody left in it.
        // SAFETY: integers, and atomics and cells of integers: any bytes are valid.
        unsafe { std::ptr::write_bytes(std::ptr::from_mut(&mut **memory), 0xa5, 1) };
        let hooks = Hooks { now: script::now, rest: script::rest, unwind: || unreachable!() };
        let block = ThreadBlock::new((channel, 1), memory, hooks);
        // SAFETY: the host's memory, as large as its words say, which stays for as long as the script
        // does; no other launch runs over it.
        unsafe { run::<K>(&block, control) };
    });
    let host = script::end();
    host.check_after(&expected);
    host
}
