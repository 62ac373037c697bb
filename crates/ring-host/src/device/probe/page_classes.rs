//! Pages of pinned memory by how long the device takes to read them.

use std::fmt;

/// Percent by which a slow page takes longer, at least.
const GAP: u64 = 5;

/// How many times as far apart the classes are as the middle half of each reaches, at least. Values that are spread
/// evenly have 2.
const CLEAR: u64 = 3;

/// Two classes of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct PageClasses {
    /// Pages that were measured: of the quick class, and of the slow one.
    pub pages: [usize; 2],
    /// Cycles of the device for a read, the median of each class.
    pub cycles: [u32; 2],
    /// Most cycles of a page of the quick class.
    #[cfg_attr(feature = "serde", serde(skip))]
    most: u32,
    clear: bool,
}

impl PageClasses {
    /// Divides pages by the cycles of each in the middle between the tenth of them that are read soonest and the tenth
    /// that are read last. `None` if there are fewer than two, or one was not measured.
    pub(crate) fn of(cycles: &[u32]) -> Option<PageClasses> {
        let mut sorted = cycles.to_vec();
        sorted.sort_unstable();
        if sorted.len() < 2 || sorted[0] == 0 {
            return None;
        }
        let tenth = sorted.len() / 10;
        let most = sorted[tenth].midpoint(sorted[sorted.len() - 1 - tenth]);
        let (quick, slow) = sorted.split_at(sorted.partition_point(|cycles| *cycles <= most));
        // Where all are alike, none is slow.
        let slow = if slow.is_empty() { quick } else { slow };
        let medians = [quantile(quick, 2), quantile(slow, 2)];
        let spread = spread(quick).max(spread(slow));
        let gap = u64::from(medians[1] - medians[0]);
        let clear = gap * 100 >= u64::from(medians[0]) * GAP
            && gap >= CLEAR * u64::from(spread)
            && 4 * quick.len() >= sorted.len();
        let pages = [quick.len(), sorted.len() - quick.len()];
        Some(PageClasses { pages, cycles: medians, most, clear })
    }

    /// Whether these are two kinds of pages, and no mere spread: the medians are 5 % apart at least, and three times as
    /// far as the middle half of either class reaches; and a quarter of all pages is quick.
    pub fn are_clear(&self) -> bool {
        self.clear
    }

    /// Whether a page that took so many cycles is of the quick class.
    pub(crate) fn is_quick(&self, cycles: u32) -> bool {
        cycles <= self.most
    }

    /// Classes as an emulated device is said to have them.
    #[cfg(feature = "quirks")]
    pub(crate) fn emulated(pages: usize) -> PageClasses {
        PageClasses { pages: [pages; 2], cycles: [1000, 1100], most: 1000, clear: true }
    }
}

impl fmt::Display for PageClasses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([quick, slow], [soon, late]) = (self.pages, self.cycles);
        write!(f, "{quick} pages are read in {soon} cycles, {slow} in {late}")
    }
}

/// The value that so many quarters of the values, which are sorted, are not above.
fn quantile(sorted: &[u32], quarters: usize) -> u32 {
    sorted[(sorted.len() - 1) * quarters / 4]
}

/// How far the middle half reaches.
fn spread(sorted: &[u32]) -> u32 {
    quantile(sorted, 3) - quantile(sorted, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers below `n` in an order that looks like none.
    fn noise(n: u32) -> impl FnMut() -> u32 {
        let mut state = 1u64;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32 % n
        }
    }

    /// So many pages, each `every`-th of which is quick, with noise in what they take.
    fn measured(pages: usize, every: usize, (quick, slow): (u32, u32), width: u32) -> Vec<u32> {
        let mut noise = noise(width);
        let base = |page: usize| if page.is_multiple_of(every) { quick } else { slow };
        (0..pages).map(|page| base(page) + noise()).collect()
    }

    #[test]
    fn two_kinds_of_pages_are_told_apart() {
        for (every, quick_pages) in [(2, 512), (3, 342)] {
            let mut cycles = measured(1024, every, (2000, 2250), 60);
            (cycles[4], cycles[3]) = (9000, 9000); // one of either kind that was held up
            let classes = PageClasses::of(&cycles).unwrap();
            assert!(classes.are_clear(), "{classes:?}");
            assert!(classes.pages[0].abs_diff(quick_pages) <= 1, "{classes:?}");
            assert_eq!(classes.pages.iter().sum::<usize>(), 1024);
            assert!((2020..2040).contains(&classes.cycles[0]), "{classes:?}");
            assert!((2270..2290).contains(&classes.cycles[1]), "{classes:?}");
            for (page, cycles) in cycles.iter().enumerate().filter(|(page, _)| *page > 4) {
                assert_eq!(classes.is_quick(*cycles), page.is_multiple_of(every), "{page}");
            }
        }
    }

    #[test]
    fn a_spread_is_no_difference() {
        let clear = |cycles: &[u32]| PageClasses::of(cycles).unwrap().are_clear();
        assert!(!clear(&[2000; 64]), "all alike");
        assert!(!clear(&measured(1024, 1, (2000, 2000), 400)), "spread evenly");
        assert!(!clear(&measured(1024, 2, (2000, 2250), 250)), "more spread than apart");
        assert!(!clear(&measured(1024, 2, (2000, 2080), 4)), "4 % apart");
        assert!(clear(&measured(1024, 2, (2000, 2110), 4)), "5 % apart");
    }

    #[test]
    fn few_quick_pages_are_not_worth_it() {
        let clear = |every| {
            let classes = PageClasses::of(&measured(1024, every, (2000, 2250), 40)).unwrap();
            classes.are_clear()
        };
        assert!(clear(4) && !clear(5));
        let mut cycles = vec![2250; 1024];
        cycles[7] = 2000; // an outlier
        assert!(!PageClasses::of(&cycles).unwrap().are_clear());
    }

    #[test]
    fn what_was_not_measured_has_no_classes() {
        assert_eq!(PageClasses::of(&[]), None);
        assert_eq!(PageClasses::of(&[2000]), None);
        assert_eq!(PageClasses::of(&[2000, 0, 2250]), None);
        let most = PageClasses::of(&[1, u32::MAX]).unwrap();
        assert_eq!((most.cycles, most.is_quick(1)), ([1, u32::MAX], true));
    }
}
