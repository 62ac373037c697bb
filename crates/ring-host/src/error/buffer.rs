//! Why a buffer was not made, read or written.

use super::DriverError;
use crate::device::NoPeer;
use ring_shared::layout::MAX_BUFFERS;
use std::time::Duration;

/// Why a buffer was not made, read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferError {
    /// A buffer has elements.
    #[error("a buffer of 0 elements was asked for; ask for at least one")]
    Empty,
    /// References count elements by 32 bits.
    #[error(
        "a buffer of {length} elements was asked for, and the most is {}; ask for several buffers",
        u32::MAX
    )]
    TooLong {
        /// Elements asked for.
        length: usize,
    },
    /// The table of buffers is full.
    #[error(
        "{MAX_BUFFERS} buffers are there, the most of a runtime; drop some, and receive the answers to what was sent \
         before, or ask for fewer and larger ones"
    )]
    TooMany,
    /// There is no device memory for it.
    #[error("no device memory for a buffer of {bytes} bytes: {source}; drop others first")]
    Memory {
        /// Bytes asked for.
        bytes: usize,
        /// What the driver said.
        source: DriverError,
    },
    /// Not all inside the buffer.
    #[error("{count} elements at offset {offset} are not inside the buffer of {length} elements")]
    OutOfBounds {
        /// Of the first element.
        offset: usize,
        /// How many elements.
        count: usize,
        /// Elements of the buffer.
        length: usize,
    },
    /// The lent memory belongs to another device, or to another context of this one.
    #[error(
        "the lent memory is not of the primary context of the runtime's device; allocate it there"
    )]
    Foreign,
    /// It is a buffer of none of the devices.
    #[error("the buffer is of none of these devices; make it by `devices[..].buffer`")]
    Elsewhere,
    /// Kernels of the device that it is lent to do not reach its memory.
    #[error(
        "kernels of device {to} do not reach the memory of device {from}, which has the buffer: {why}; copy it by the host"
    )]
    NoPeer {
        /// The device that has the buffer.
        from: usize,
        /// The device that it was to be lent to.
        to: usize,
        /// Why not.
        why: NoPeer,
    },
    /// The copy did not end in time. It may still be under way: the next copies wait for it.
    #[error("a copy of {bytes} bytes did not end within {waited:?}; wait longer")]
    Timeout {
        /// How many bytes.
        bytes: usize,
        /// How long was waited.
        waited: Duration,
    },
    /// A driver call failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_value_the_limit_and_the_remedy() {
        let says = |error: BufferError, text: &str| assert_eq!(error.to_string(), text);
        says(BufferError::Empty, "a buffer of 0 elements was asked for; ask for at least one");
        says(
            BufferError::TooLong { length: 1 << 32 },
            "a buffer of 4294967296 elements was asked for, and the most is 4294967295; ask for several buffers",
        );
        says(
            BufferError::TooMany,
            "4096 buffers are there, the most of a runtime; drop some, and receive the answers to what was sent \
             before, or ask for fewer and larger ones",
        );
        says(
            BufferError::OutOfBounds { offset: 3, count: 2, length: 4 },
            "2 elements at offset 3 are not inside the buffer of 4 elements",
        );
    }
}
