//! Values of options, as they are written.

use ring_host::{Device, Processing, UnknownDevice};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// The longest time that can be asked for: a day.
const LONGEST: Duration = Duration::from_secs(86_400);

/// A number without the underscores that part its digits; none if one stands elsewhere.
fn plain(text: &str) -> Option<String> {
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit)
    };
    let parts = |at: usize| is_digit(at.checked_sub(1)) && is_digit(at.checked_add(1));
    let sound = text.match_indices('_').all(|(at, _)| parts(at));
    sound.then(|| text.replace('_', ""))
}

/// A whole number in that range. Underscores may part its digits: `1_000_000`.
pub fn whole(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    match plain(text).and_then(|text| text.parse().ok()) {
        Some(number) if range.contains(&number) => Ok(number),
        Some(number) => Err(format!("{number} is not in {range:?}")),
        None => Err(format!("not a whole number in {range:?}, such as 500 or 1_000")),
    }
}

/// A whole number of 64 bits.
pub fn number(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

/// A whole number of 32 bits.
pub fn small_number(text: &str) -> Result<u32, String> {
    whole(text, 0..=u32::MAX.into()).map(|number| number as u32)
}

/// A number of seconds above 0.
pub fn seconds(text: &str) -> Result<Duration, String> {
    match duration(text, 1.0) {
        Some(timeout) if !timeout.is_zero() => Ok(timeout),
        _ => Err(format!("not a number of seconds above 0 and up to {}", LONGEST.as_secs())),
    }
}

fn duration(text: &str, unit: f64) -> Option<Duration> {
    let number: f64 = plain(text)?.parse().ok()?;
    Duration::try_from_secs_f64(number * unit).ok().filter(|duration| *duration <= LONGEST)
}

/// Several devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceList {
    /// All GPUs, or CPU threads if there is none.
    All,
    /// These, in this order.
    These(Vec<Device>),
}

impl FromStr for DeviceList {
    type Err = UnknownDevice;

    fn from_str(list: &str) -> Result<DeviceList, UnknownDevice> {
        match list {
            "all" => Ok(DeviceList::All),
            list => {
                list.split(',').map(str::parse).collect::<Result<_, _>>().map(DeviceList::These)
            }
        }
    }
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
    fn underscores_part_digits_and_stand_nowhere_else() {
        for (text, read) in
            [("0", 0), ("500", 500), ("1_000_000", 1_000_000), ("1_0_0", 100), ("+1_2", 12)]
        {
            assert_eq!(number(text), Ok(read), "{text}");
        }
        assert_eq!(number(&u64::MAX.to_string()), Ok(u64::MAX));
        for text in ["", "_", "_1", "1_", "1__0", "+_1", "-1", "1e6", "1.5", "1,000", "\u{661}_1"] {
            assert!(number(text).unwrap_err().contains("1_000"), "{text}");
        }
        assert_eq!(small_number("4_294_967_295"), Ok(u32::MAX));
        assert!(small_number("4294967296").unwrap_err().ends_with("is not in 0..=4294967295"));
        assert_eq!(whole("99", 100..=200), Err("99 is not in 100..=200".to_owned()));
        for text in ["1_.5", "1._5", "_.5", "n_an", "1_e3"] {
            assert!(seconds(text).is_err(), "{text}");
        }
        assert_eq!(seconds("1_0.2_5"), Ok(Duration::from_millis(10_250)));
    }

    #[test]
    fn ways_of_processing_have_names() {
        assert_eq!(processing("continuous"), Ok(Processing::Continuous));
        assert_eq!(processing("batch"), Ok(Processing::Batch));
        assert_eq!(processing("adaptive"), Ok(Processing::Adaptive));
        assert!(processing("Batch").unwrap_err().contains("'Batch'"));
    }
}
