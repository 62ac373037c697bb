//! A channel on a host that keeps no rule but that of `ring_device::run`: addresses lead to memory as large as
//! the configuration says. All else is the script's: it edits before each launch, and while the channel rests or looks
//! at the clock. In the end it commands termination, and goes on lying until the channel has left.
//!
//! Time is the script's too, so a run depends on nothing else.

mod after;
mod beside;
mod buffers;
mod field;
mod host;
mod script;
#[cfg(test)]
mod tests;

pub use buffers::{TableLie, Tables};
pub use field::{Edit, Field, Part};
pub use host::{Host, Shape};
pub use script::{Message, Script, Step};

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use ring_device::kernel::Scope;
use ring_device::{BlockMemory, ControlBlock, Hooks, Kernel, ThreadBlock, run};
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
    static MEMORY: RefCell<[Box<BlockMemory>; 2]> =
        RefCell::new([const { BlockMemory::new() }; 2].map(Box::new));
}

/// Runs the launches, and checks after each what must be so whatever the host did.
pub fn launches<K: Kernel>(input: Input) {
    run_all::<K>(Host::new::<K>(input.shape), input.launches);
}

/// The same of a kernel that views buffers; one of scope `Grid` runs on that many blocks, one or two.
pub fn launches_with_buffers<K: Kernel>(blocks: u32, tables: Tables, mut input: Input) {
    if <K::Scope as Scope<K>>::IS_GRID {
        input.shape.channel = 0; // it has no other
    }
    let host = Host::new::<K>(input.shape).with_buffers(tables).on_blocks(blocks);
    run_all::<K>(host, input.launches);
}

fn run_all<K: Kernel>(mut host: Host, launches: Vec<LaunchConfig>) {
    for launch in launches.into_iter().take(LAUNCHES) {
        for edit in &launch.before {
            host.edit(edit, true);
        }
        host = one::<K>(host, launch.during);
    }
}

fn one<K: Kernel>(mut host: Host, steps: Vec<Step>) -> Host {
    host.tell_lies(true);
    let expected = host.before_launch();
    let (control, channel, blocks) = (host.control(), host.shape.block(), host.blocks());
    script::begin(Script::new(host, steps));
    MEMORY.with_borrow_mut(|[memory, other]| {
        let hooks = Hooks { now: script::now, rest: script::rest, unwind: || unreachable!() };
        if blocks == 1 {
            return block::<K>((channel, 1), memory, hooks, control);
        }
        let control = control.expose_provenance();
        let at = |control| std::ptr::with_exposed_provenance(control);
        let others = Hooks { now: || 1, rest: beside::other_waits, unwind: || unreachable!() };
        beside::both(
            || block::<K>((0, 2), memory, hooks, at(control)),
            || block::<K>((1, 2), other, others, at(control)),
        );
    });
    let host = script::end();
    host.check_after(&expected);
    host
}

/// Runs a block, in memory that holds what somebody left in it, as block-shared memory of a GPU does.
fn block<K: Kernel>(
    index: (u32, u32),
    memory: &mut BlockMemory,
    hooks: Hooks,
    control: *const ControlBlock,
) {
    // SAFETY: integers, and atomics and cells of integers: any bytes are valid.
    unsafe { std::ptr::write_bytes(std::ptr::from_mut(memory), 0xa5, 1) };
    let block = ThreadBlock::new(index, memory, hooks);
    // SAFETY: the host's memory, as large as its words say, which stays for as long as the script does; no other launch
    // runs over it.
    unsafe { run::<K>(&block, control) };
}
