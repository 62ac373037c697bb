//! What the page probe is told, and what it tells.

/// Bytes of a page whose home is asked for: the least that a processor's memory is mapped by.
pub const PAGE: usize = 4096;

/// What the kernel `ring_page_probe` is to measure; its address is the kernel's one parameter. The host writes it before
/// the launch, and reads the results when the kernel has ended, so both sides use plain accesses. It is no part of
/// [`table`](super::table): a module without that kernel is served as well.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct PageProbe {
    /// Device address of the first page. Pages lie side by side; no 8 bytes of them are all ones.
    pub pages: u64,
    /// Device address of the results: for each page a `u32`, the cycles that a read of one of its lines took, on average.
    pub cycles: u64,
    /// How many pages there are.
    pub count: u32,
    /// Zero.
    pub pad: u32,
}

static_assertions::const_assert_eq!(size_of::<PageProbe>(), 64);
static_assertions::const_assert_eq!(core::mem::offset_of!(PageProbe, pages), 0);
static_assertions::const_assert_eq!(core::mem::offset_of!(PageProbe, cycles), 8);
static_assertions::const_assert_eq!(core::mem::offset_of!(PageProbe, count), 16);
static_assertions::const_assert!(PAGE.is_multiple_of(super::LINE));
