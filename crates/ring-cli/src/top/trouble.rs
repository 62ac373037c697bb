//! Why a look at the page gave no sample.

use super::watch::{LONGEST, MOST};
use thiserror::Error;

/// Why a look at the page gave no sample. It is tried again.
#[derive(Debug, Error)]
pub enum Trouble {
    /// Nobody answers there.
    #[error("the page cannot be reached: {0}; does the program run, and serve its metrics there?")]
    Unreachable(String),
    /// The page is not there.
    #[error("the server answers with status {0} in place of a page; ring's exporter has /metrics")]
    Status(u16),
    /// It takes too long.
    #[error("the page did not come within {} s", LONGEST.as_secs())]
    Late,
    /// It is too large.
    #[error("the page has more than {} MiB, and no more is read", MOST >> 20)]
    Large,
    /// It is not text.
    #[error("the page is not text in UTF-8; is it the page of metrics?")]
    NoText,
    /// It has no metrics.
    #[error("the page has no metrics in the text format of Prometheus; is it the right one?")]
    NoMetrics,
    /// It has none of ring's.
    #[error("the page has metrics, but none of ring's; is `ring_host::metrics` registered there?")]
    NoneOfOurs,
}
