//! Ctrl-C: the first ends the work at the next place where it can be left, so that what was done is still
//! reported; the second ends the program at once.

use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The exit status of a program that Ctrl-C ended: 128 and the number of its signal.
pub const STATUS: u8 = 130;

/// Whether Ctrl-C was pressed.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt(&'static AtomicBool);

impl Interrupt {
    /// Counts Ctrl-C from here on. Where the system does not allow that, Ctrl-C ends the program as ever.
    pub fn listen() -> Interrupt {
        static ASKED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        let asked = ASKED.get_or_init(|| {
            let asked = Arc::new(AtomicBool::new(false));
            // In this order: the first signal finds the flag not set, and then sets it.
            let second =
                flag::register_conditional_shutdown(SIGINT, STATUS.into(), Arc::clone(&asked));
            let _ = second.and_then(|_| flag::register(SIGINT, Arc::clone(&asked)));
            asked
        });
        Interrupt(asked)
    }

    /// Whether the work is to be left at the next place.
    #[inline]
    pub fn requested(self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
impl Interrupt {
    /// One that never comes.
    pub fn never() -> Interrupt {
        static NEVER: AtomicBool = AtomicBool::new(false);
        Interrupt(&NEVER)
    }

    /// One that came.
    pub fn come() -> Interrupt {
        static COME: AtomicBool = AtomicBool::new(true);
        Interrupt(&COME)
    }

    /// One that comes when that is set.
    pub fn by(asked: &'static AtomicBool) -> Interrupt {
        Interrupt(asked)
    }
}
