//! The scopes, a file each: the marker, the trait that a handler implements, and how messages are handed to it.

mod block;
mod emit;
mod emit_block;
mod emit_in_order;
mod emit_warp;
mod grid;
mod has_state;
mod in_order;
mod thread;
mod warp;

pub use block::{Block, BlockHandler};
pub use emit::{Emit, EmitHandler};
pub use emit_block::{EmitBlock, EmitBlockHandler};
pub use emit_in_order::{EmitInOrder, EmitInOrderHandler};
pub use emit_warp::{EmitWarp, EmitWarpHandler};
pub use grid::{Grid, GridHandler};
pub use has_state::HasState;
pub use in_order::{InOrder, InOrderHandler, MAX_STATE_BYTES};
pub use thread::{Thread, ThreadHandler};
pub use warp::{Warp, WarpHandler};

use crate::block::{Cooperate, Threads};

/// Zeroes `words` words at `at`, by threads `first..` of a group of `step`, each some of them.
///
/// # Safety
/// `at` has aligned room for `words` words that only this group uses; each of its threads passes another `first`.
#[inline(always)]
unsafe fn zero(at: *mut u32, words: usize, first: u32, step: u32) {
    let mut word = first as usize;
    while word < words {
        // SAFETY: below `words`; each word has one thread.
        unsafe { at.add(word).write(0) };
        word += step as usize;
    }
}

/// Threads of a warp.
const WARP: u32 = Threads::WARP;
