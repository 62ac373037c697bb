//! Numbers that tell buffers apart which have the same entry of a table one after the other, or of tables of other runtimes.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A generation: no other buffer of this process had it before, until 2^32 were made, and it is not 0. The first one is
/// drawn at random, so that a reference that was kept from another process hardly ever names one of this.
pub(super) fn next() -> u32 {
    static NEXT: OnceLock<AtomicU32> = OnceLock::new();
    let next =
        NEXT.get_or_init(|| AtomicU32::new(RandomState::new().build_hasher().finish() as u32));
    loop {
        match next.fetch_add(1, Relaxed) {
            0 => {}
            generation => return generation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_are_the_same_and_none_is_zero() {
        let mut all: Vec<_> = (0..1000).map(|_| next()).collect();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() == 1000 && !all.contains(&0));
    }
}
