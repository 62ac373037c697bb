use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The whole device, in the unit in which shares of it are counted: so fine that what is left of it
/// by `limit` equal shares is smaller than one more.
const WHOLE: u64 = 1 << 63;

/// How much of a device resident kernels occupy, whoever launched them in this process. A lane
/// that is not resident never answers, so a launch that does not fit is refused.
#[derive(Clone, Debug, Default)]
pub struct Residency(Arc<AtomicU64>);

impl PartialEq for Residency {
    /// Whether they are of the same device.
    fn eq(&self, other: &Residency) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Residency {}

impl Residency {
    /// Reserves the share of `lanes` lanes of which `limit` fill the device; or says how many
    /// lanes of that kind still fit.
    pub fn reserve(&self, lanes: u32, limit: u32) -> Result<Share, u32> {
        let each = WHOLE / u64::from(limit.max(1));
        let share = each.saturating_mul(lanes.into());
        let take = |used: u64| used.checked_add(share).filter(|used| *used <= WHOLE);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(Share { of: self.clone(), share }),
            Err(used) => Err(((WHOLE - used) / each) as u32),
        }
    }
}

/// A share of the device, given back when dropped.
#[derive(Debug)]
pub struct Share {
    of: Residency,
    share: u64,
}

impl Share {
    /// The device.
    pub(crate) fn device(&self) -> &Residency {
        &self.of
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.share, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_device_refuses_and_frees() {
        let device = Residency::default();
        let half = device.reserve(66, 132).unwrap();
        assert_eq!(device.reserve(67, 132).unwrap_err(), 66);
        let rest = device.reserve(33, 66).unwrap();
        assert_eq!(device.reserve(1, 132).unwrap_err(), 0);
        drop((half, rest));
        assert!(device.reserve(132, 132).is_ok());
        assert_eq!(device.reserve(u32::MAX, 1).unwrap_err(), 1);
    }

    #[test]
    fn the_whole_is_a_whole_number_of_lanes() {
        for limit in [1, 3, 132, 1056, 2112, 4224, 1 << 20] {
            let device = Residency::default();
            let all = device.reserve(limit, limit).unwrap();
            assert_eq!(device.reserve(1, limit).unwrap_err(), 0, "beside {limit} lanes");
            drop(all);
            assert!(device.reserve(limit, limit).is_ok());
        }
    }
}
