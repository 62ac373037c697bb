//! Values of options, as they are written.

use ring_host::Processing;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest time that can be asked for: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A number of seconds above 0.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match duration(text, 1.0) {
        Some(timeout) if !timeout.is_zero() => Ok(timeout),
        _ => Err(format!("not a number of seconds above 0 and up to {}", LONGEST.as_secs())),
    }
}

fn duration(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok().filter(|duration| *duration <= LONGEST)
}

/// A time written as a number of milliseconds. It may be 0: what that means is for others to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milliseconds(pub Duration);

impl FromStr for Milliseconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Milliseconds, String> {
        let most = LONGEST.as_millis();
        let refused = || format!("not a number of milliseconds from 0 to {most}");
        duration(text, 1e-3).map(Milliseconds).ok_or_else(refused)
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.as_nanos() as f64 / 1e6)
    }
}

/// How many messages an iteration takes, by name.
pub fn processing(text: &str) -> Result<Processing, String> {
    match text {
        "continuous" => Ok(Processing::Continuous),
        "batch" => Ok(Processing::Batch),
        "adaptive" => Ok(Processing::Adaptive),
        _ => Err(format!("unknown processing '{text}'; use continuous, batch or adaptive")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_read_as_written() {
        for (text, microseconds) in [("0", 0), ("0.1", 100), ("5", 5_000), ("2.25", 2_250)] {
            let read: Milliseconds = text.parse().unwrap();
            assert_eq!(read.0, Duration::from_micros(microseconds));
            assert_eq!(read.to_string(), text);
        }
        assert_eq!("86400000".parse(), Ok(Milliseconds(LONGEST)));
        for text in ["-1", "nan", "inf", "86400001", "soon", "1e99", ""] {
            assert!(text.parse::<Milliseconds>().unwrap_err().contains("from 0 to 86400000"));
        }
    }

    #[test]
    fn ways_of_processing_have_names() {
        assert_eq!(processing("continuous"), Ok(Processing::Continuous));
        assert_eq!(processing("batch"), Ok(Processing::Batch));
        assert_eq!(processing("adaptive"), Ok(Processing::Adaptive));
        assert!(processing("Batch").unwrap_err().contains("'Batch'"));
    }
}
