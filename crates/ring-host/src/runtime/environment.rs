//! What the environment forces.

use crate::drive::report::Report;
use crate::drive::selection::Asked;
use crate::error::OpenError;
use crate::mode::{Memory, Mode};

/// Forces the mode of every kernel: `persistent`, `event-driven` or `graph`.
pub const MODE_VARIABLE: &str = "RING_MODE";

/// Forces the memory of every kernel: `mapped`, `staged-async` or `staged-sync`.
pub const MEMORY_VARIABLE: &str = "RING_MEMORY";

/// What the environment forces.
pub(super) fn forced_by_environment() -> Result<Vec<(&'static str, String)>, OpenError> {
    let mut forced = Vec::new();
    for variable in [MODE_VARIABLE, MEMORY_VARIABLE] {
        let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else {
            continue;
        };
        let value = value.to_string_lossy().into_owned();
        let known = match variable {
            MODE_VARIABLE => value.parse::<Mode>().map(drop),
            _ => value.parse::<Memory>().map(drop),
        };
        known.map_err(|source| OpenError::Environment { variable, source })?;
        tracing::info!(variable, value, "forced by the environment");
        forced.push((variable, value));
    }
    Ok(forced)
}

/// What is asked for, the environment before the caller.
pub(super) fn asked(report: &Report, (mode, memory): (Mode, Memory)) -> Asked {
    let forced = |variable| report.forced.iter().find(|(v, _)| *v == variable);
    let by_mode = forced(MODE_VARIABLE).and_then(|(_, value)| value.parse().ok());
    let by_memory = forced(MEMORY_VARIABLE).and_then(|(_, value)| value.parse().ok());
    let by = match (by_mode, by_memory) {
        (None, None) => "",
        (Some(_), None) => MODE_VARIABLE,
        (None, Some(_)) => MEMORY_VARIABLE,
        (Some(_), Some(_)) => "RING_MODE and RING_MEMORY",
    };
    Asked { mode: by_mode.unwrap_or(mode), memory: by_memory.unwrap_or(memory), by }
}
