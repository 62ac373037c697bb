//! What the environment forces.

use crate::device::UnknownName;
use crate::drive::report::{AskedBy, Forced, Report};
use crate::drive::selection::Asked;
use crate::error::OpenError;
use crate::mode::{Memory, Mode};
use std::str::FromStr;

/// Forces the mode of every kernel: `persistent`, `event-driven` or `graph`.
pub const MODE_VARIABLE: &str = "RING_MODE";

/// Forces the memory of every kernel: `mapped`, `staged-async` or `staged-sync`.
pub const MEMORY_VARIABLE: &str = "RING_MEMORY";

/// What the environment forces.
pub(super) fn forced_by_environment() -> Result<Forced, OpenError> {
    Ok(Forced { mode: forced_by(MODE_VARIABLE)?, memory: forced_by(MEMORY_VARIABLE)? })
}

/// What a variable of the environment forces, if it is set.
fn forced_by<T>(variable: &'static str) -> Result<Option<T>, OpenError>
where
    T: FromStr<Err = UnknownName>,
{
    let value = std::env::var_os(variable).filter(|value| !value.is_empty());
    let Some(value) = value.map(|value| value.to_string_lossy().into_owned()) else {
        return Ok(None);
    };
    let forced = value.parse().map_err(|source| OpenError::Environment { variable, source })?;
    tracing::info!(variable, value, "forced by the environment");
    Ok(Some(forced))
}

/// What is asked for, the environment before the caller.
pub(super) fn asked(report: &Report, (mode, memory): (Mode, Memory)) -> Asked {
    let Forced { mode: by_mode, memory: by_memory } = report.forced;
    let by = match report.forced.is_empty() {
        true => AskedBy::Launch,
        false => AskedBy::Environment { mode: by_mode.is_some(), memory: by_memory.is_some() },
    };
    Asked { mode: by_mode.unwrap_or(mode), memory: by_memory.unwrap_or(memory), by }
}
