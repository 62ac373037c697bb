//! PageRank by a grid ([`grid`]), by the grids of two devices ([`two`]), and by messages between kernels ([`links`]).

pub mod files;
pub mod graph;
pub mod grid;
pub mod links;
pub mod two;

use ring_host::{Buffer, Element, Kernels, Runtime};
use ring_whole_device_kernels::PTX;
use std::time::Duration;

/// The longest wait for an answer.
pub const LONG: Duration = Duration::from_secs(60);

/// Edges of each vertex, on average.
pub const OF_VERTEX: usize = 16;

/// The part of a rank that goes along edges.
pub const DAMPING: f32 = 0.85;

/// Iterations of a ranking.
pub const ITERATIONS: u32 = 20;

/// The kernels.
// SAFETY: the PTX that was made of the crate whose kernels are launched.
pub const KERNELS: Kernels = unsafe { Kernels::new(PTX) };

/// What was asked for, or why it was not done.
pub type Done<T> = Result<T, Box<dyn std::error::Error>>;

/// The vertices of the highest ranks, with these, the highest first.
pub fn highest(ranks: &[f32], most: usize) -> Vec<(u32, f32)> {
    let mut all: Vec<(u32, f32)> = (0..).zip(ranks.iter().copied()).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.truncate(most);
    all
}

/// By how much ranks are off in all: the L1 norm of the difference.
pub fn error(ranks: &[f32], right: &[f64]) -> f64 {
    ranks.iter().zip(right).map(|(rank, right)| (f64::from(*rank) - right).abs()).sum()
}

/// By how much ranks may be off in all.
const MOST_OFF: f64 = 1e-5;

/// The same, if it is less than 1e-5.
///
/// # Errors
/// When it is not, or when there are not as many ranks.
pub fn check(ranks: &[f32], right: &[f64]) -> Result<f64, String> {
    let off = error(ranks, right);
    match ranks.len() == right.len() && off < MOST_OFF {
        true => Ok(off),
        false => Err(format!("the ranks are {off:.1e} off in all (L1)")),
    }
}

/// A buffer with these elements; one at least.
fn filled<T: Element>(host: &Runtime, elements: &[T]) -> Done<Buffer<T>> {
    let buffer = host.buffer(elements.len().max(1))?;
    buffer.upload(0, elements, LONG)?;
    Ok(buffer)
}

#[test]
fn the_highest_ranks_come_first() {
    assert_eq!(highest(&[0.1, 0.4, 0.2, 0.4], 3), [(1, 0.4), (3, 0.4), (2, 0.2)]);
    assert_eq!(highest(&[0.5], 10), [(0, 0.5)]);
}
