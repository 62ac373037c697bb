//! What is known of an open device: the report of its opening, or of a later probe if that one was made in a
//! busy moment.

use crate::drive::report::Report;
use crate::sync::unless_locked;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// How long no other probe is made after one that did not find out everything.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known of an open device.
#[derive(Debug)]
pub(crate) struct Findings {
    first: Report,
    /// When everything was found out after all.
    later: OnceLock<Report>,
    /// When the last probe ended that did not.
    tried: Mutex<Instant>,
}

impl Findings {
    pub fn new(first: Report) -> Findings {
        Findings { first, later: OnceLock::new(), tried: Mutex::new(Instant::now()) }
    }

    pub fn report(&self) -> &Report {
        self.later.get().unwrap_or(&self.first)
    }

    /// Probes again if not everything was found out, unless another thread is at it or has just been. `probe`
    /// makes a new report of the first.
    pub fn look_again(&self, probe: impl FnOnce(&Report) -> Option<Report>) {
        if self.report().probe.is_certain() {
            return;
        }
        let Some(mut tried) = unless_locked(self.tried.try_lock()) else { return };
        if tried.elapsed() < PAUSE {
            return;
        }
        if let Some(report) = probe(&self.first).filter(|report| report.probe.is_certain()) {
            let _ = self.later.set(report); // or the same was set meanwhile
        }
        *tried = Instant::now();
    }
}
