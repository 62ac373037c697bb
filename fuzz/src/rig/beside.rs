//! A second block, on a thread of its own. One of the two runs at a time: a block that waits lets the other go on, so that a run
//! depends on nothing but its input.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Turns that the other block may still take when the first has left. At its next look it leaves, too.
const PATIENCE: u32 = 10_000;

/// Looks in a row that find nothing, after each of which the first block lets the other go on.
const LOOKS: u32 = 64;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    First,
    Other,
    /// The other has left.
    Left,
    /// The first has panicked.
    Over,
}

#[derive(Debug)]
struct Turns {
    turn: Mutex<Turn>,
    changed: Condvar,
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, to: Turn) {
        *self.lock() = to;
        self.changed.notify_all();
    }

    /// Lets the other block go on until it waits or has left; whether it has not left.
    fn take_turns(&self) -> bool {
        let mut turn = self.lock();
        if *turn == Turn::First {
            *turn = Turn::Other;
            self.changed.notify_all();
        }
        while *turn == Turn::Other {
            turn = self.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *turn != Turn::Left
    }
}

thread_local! {
    static TURNS: RefCell<Option<Arc<Turns>>> = const { RefCell::new(None) };
}

/// The first block waits: at times the other goes on.
pub fn first_waits(looks: u32) {
    if looks == 1 || looks.is_multiple_of(LOOKS) {
        TURNS.with_borrow(|turns| turns.as_ref().map(|turns| turns.take_turns()));
    }
}

/// The other block waits: the first goes on.
pub fn other_waits(_: u32) {
    TURNS.with_borrow(|turns| {
        let turns = turns.as_ref().expect("there are two");
        turns.set(Turn::First);
        let mut turn = turns.lock();
        while *turn == Turn::First {
            turn = turns.changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        assert_eq!(*turn, Turn::Other, "the first block has panicked");
    });
}

/// Says what has become of a block when it ends, also by a panic.
struct Ends<'a>(&'a Turns, Turn);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `first` and `other`, which begins.
pub fn both(first: impl FnOnce(), other: impl FnOnce() + Send) {
    let turns = Arc::new(Turns { turn: Mutex::new(Turn::Other), changed: Condvar::new() });
    std::thread::scope(|threads| {
        let theirs = Arc::clone(&turns);
        threads.spawn(move || {
            TURNS.set(Some(Arc::clone(&theirs)));
            let _ends = Ends(&theirs, Turn::Left);
            other();
        });
        let ends = Ends(&turns, Turn::Over);
        turns.take_turns();
        TURNS.set(Some(Arc::clone(&turns)));
        first();
        TURNS.set(None);
        let left = (0..PATIENCE).any(|_| !turns.take_turns());
        assert!(left, "the other block does not leave");
        std::mem::forget(ends);
    });
}
