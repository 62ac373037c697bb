//! A kernel's life around one check: launch, activate, work, terminate, compare the counts.

use super::way::Way;
use crate::args::Validate;
use crate::failure::Failure;
use ring_host::{ControlError, Kernel, KernelHandle, Runtime, Summary};

/// What came of a kernel's life.
#[derive(Clone, Debug)]
pub struct Session<T> {
    /// What the work made.
    pub result: T,
    /// What was wrong.
    pub passed: Result<(), String>,
    /// How the kernel was run.
    pub way: Way,
}

/// Launches and activates a kernel as the options ask, lets `work` use it, and terminates it.
///
/// `work` gives the number of messages that were answered, its result, and whether all went well;
/// what the kernel counted must agree. What was wrong at the end is reported with what was wrong
/// before: it may be the reason.
pub fn with<K: Kernel, T>(
    host: &Runtime,
    options: &Validate,
    work: impl FnOnce(&mut KernelHandle<K>) -> (u64, T, Result<(), String>),
) -> Result<Session<T>, Failure> {
    let launched = host.launch::<K>(options.kernel.launch());
    let mut kernel = launched.map_err(|source| Failure::Launch { kernel: K::NAME, source })?;
    kernel.activate(options.timeout)?;
    let (answered, result, passed) = work(&mut kernel);
    let ended = kernel.terminate(options.timeout);
    Ok(Session { result, passed: judge(passed, answered, ended), way: Way::of(&kernel) })
}

fn judge(
    passed: Result<(), String>,
    answered: u64,
    ended: Result<Summary, ControlError>,
) -> Result<(), String> {
    match (passed, ended) {
        (Ok(()), Err(error)) => Err(format!("at the end: {error}")),
        (Err(wrong), Err(error)) if !wrong.contains(&error.to_string()) => {
            Err(format!("{wrong}; at the end: {error}"))
        }
        (Err(wrong), _) => Err(wrong),
        (Ok(()), Ok(summary)) => match (summary.processed, summary.unhandled) {
            (handled, 0) if handled == answered => Ok(()),
            (handled, left) => Err(format!(
                "{answered} messages were answered, but the kernel counted {handled} handled and \
                 {left} not handled"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(processed: u64, unhandled: u64) -> Result<Summary, ControlError> {
        Ok(Summary { processed, unhandled })
    }

    #[test]
    fn counts_must_agree() {
        assert_eq!(judge(Ok(()), 7, summary(7, 0)), Ok(()));
        for (processed, unhandled) in [(6, 0), (8, 0), (7, 1)] {
            let wrong = judge(Ok(()), 7, summary(processed, unhandled)).unwrap_err();
            let parts = ["7 messages", &format!("{processed} handled and {unhandled} not")];
            assert!(parts.iter().all(|part| wrong.contains(part)), "{wrong}");
        }
        assert_eq!(judge(Err("before".into()), 7, summary(3, 4)), Err("before".into()));
    }

    #[test]
    fn an_error_of_the_end_is_reported_after_what_was_wrong_before() {
        let error = ControlError::Terminated { kernel: "echo" };
        let alone = judge(Ok(()), 0, Err(error.clone())).unwrap_err();
        assert_eq!(alone, format!("at the end: {error}"));
        let both = judge(Err("no answer".to_string()), 0, Err(error.clone())).unwrap_err();
        assert_eq!(both, format!("no answer; at the end: {error}"));
        let same = format!("round 3: {error}");
        assert_eq!(judge(Err(same.clone()), 0, Err(error)), Err(same), "not twice");
    }
}
