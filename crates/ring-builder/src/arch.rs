//! The GPU architecture that code is compiled for.

use crate::BuildError;
use std::fmt;
use std::str::FromStr;

/// An architecture, `sm_70` or newer. PTX for one runs on it and on all newer ones, unless its name
/// ends with a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arch {
    number: u32,
    /// `a` or `f`: code for this architecture, or this family, only.
    suffix: Option<char>,
}

impl Arch {
    /// The oldest one served: the first with the PTX memory model.
    pub const OLDEST: Arch = Arch { number: 70, suffix: None };

    /// The PTX version asked of a driver. 8.4 is the first with 16-byte system-scope accesses (driver
    /// 550 or newer); architectures younger than it came with versions of their own.
    #[must_use]
    pub fn ptx_version(self) -> (u32, u32) {
        match (self.number, self.suffix) {
            (..=90, _) => (8, 4),
            (100 | 101, None | Some('a')) => (8, 6),
            (120, None | Some('a')) => (8, 7),
            (100 | 101 | 103 | 120 | 121, _) => (8, 8),
            _ => (9, 0),
        }
    }

    /// Whether newer architectures run its code too.
    #[must_use]
    pub fn serves_newer(self) -> bool {
        self.suffix.is_none()
    }

    /// The PTX version as rustc's target feature.
    #[must_use]
    pub fn feature(self) -> String {
        let (major, minor) = self.ptx_version();
        format!("+ptx{major}{minor}")
    }
}

impl FromStr for Arch {
    type Err = BuildError;

    fn from_str(name: &str) -> Result<Arch, BuildError> {
        let wrong = || BuildError::Arch { name: name.to_owned() };
        let digits = name.strip_prefix("sm_").ok_or_else(wrong)?;
        let suffix = digits.chars().last().filter(|last| matches!(last, 'a' | 'f'));
        let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.parse().ok().filter(|n| plain && *n >= Arch::OLDEST.number);
        Ok(Arch { number: number.ok_or_else(wrong)?, suffix })
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for name in ["sm_70", "sm_90a", "sm_100", "sm_120f"] {
            assert_eq!(name.parse::<Arch>().unwrap().to_string(), name);
        }
        assert_eq!("sm_70".parse::<Arch>().unwrap(), Arch::OLDEST);
        assert!(Arch::OLDEST.serves_newer() && !"sm_90a".parse::<Arch>().unwrap().serves_newer());
    }

    #[test]
    fn a_wrong_one_is_named_with_the_limit() {
        for name in ["", "70", "sm_", "sm_60", "sm_69a", "sm_+80", "sm_x", "sm_90b", "compute_90"] {
            let said = name.parse::<Arch>().unwrap_err().to_string();
            assert!(said.contains(&format!("'{name}'")) && said.contains("sm_70"), "{said}");
        }
    }

    #[test]
    fn younger_architectures_ask_for_newer_ptx() {
        for (name, feature) in [("sm_70", "+ptx84"), ("sm_90a", "+ptx84"), ("sm_100", "+ptx86")] {
            assert_eq!(name.parse::<Arch>().unwrap().feature(), feature);
        }
        assert_eq!("sm_120".parse::<Arch>().unwrap().feature(), "+ptx87");
    }
}
