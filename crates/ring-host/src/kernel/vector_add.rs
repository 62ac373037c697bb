//! Adding vectors by the built-in kernel, in one call.

use crate::deadline::Deadline;
use crate::error::{ChannelError, PayloadError, RecvTimeoutError, SendTimeoutError};
use crate::kernel::handle::KernelHandle;
use ring_device::kernels::{INLINE_ELEMENTS, VectorAdd, VectorAddRequest, VectorError, status};

/// Why two vectors were not added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The vectors do not fit each other, or not the kernel.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// The vector for the sum has another length.
    #[error("the sum has room for {c} elements, but the vectors have {len}")]
    Sum {
        /// Elements of C.
        c: usize,
        /// Elements of A and B.
        len: usize,
    },
    /// The device refused, with that status.
    #[error("the device refused the request with status {0}")]
    Refused(u32),
    /// The request was not sent.
    #[error("the request was not sent: {0}")]
    Send(SendTimeoutError<()>),
    /// No answer came.
    #[error(transparent)]
    Recv(#[from] RecvTimeoutError),
    /// The payload arena was not read or written.
    #[error(transparent)]
    Payload(#[from] PayloadError),
    /// Channel 0 was taken.
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

impl<T> From<SendTimeoutError<T>> for AddError {
    fn from(error: SendTimeoutError<T>) -> AddError {
        AddError::Send(error.without_message())
    }
}

/// Elements of 32 bytes. Likely the device reads the host's memory by sectors of so many, and one sector for one thread after
/// the other: a call takes 1 us less on an H200 where each vector begins with a sector.
const SECTOR: usize = 8;

/// How many elements lie from the beginning of one vector of `len` to that of the next: whole sectors, if the arena has room
/// for three vectors of so many; it has for three of `most`.
fn apart(len: usize, most: usize) -> usize {
    let whole = len.next_multiple_of(SECTOR);
    if whole <= most { whole } else { len }
}

impl KernelHandle<VectorAdd> {
    /// C = A + B: in one message up to [`INLINE_ELEMENTS`], else through the payload arena, which must have room for all
    /// three, from its beginning. If it has room for three of the next multiple of 8 elements, all of that is overwritten: B and
    /// C begin at such multiples then, and the call is about 1 us shorter on an H200.
    /// Answers not received before, after an error say, are received and dropped first.
    pub fn add(
        &mut self,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        deadline: impl Into<Deadline>,
    ) -> Result<(), AddError> {
        let (deadline, len) = (deadline.into(), a.len());
        let most = (self.payload_bytes() / (3 * size_of::<f32>())).min(u32::MAX as usize);
        let limit = INLINE_ELEMENTS.max(most);
        VectorAddRequest::check(a, b, limit)?;
        if c.len() != len {
            return Err(AddError::Sum { c: c.len(), len });
        }
        while self.channel(0)?.unanswered() > 0 {
            self.recv(deadline)?;
        }
        // What lies between a vector's end and the next one is added too, and not read.
        let apart = apart(len, most);
        let request = if len <= INLINE_ELEMENTS {
            VectorAddRequest::inline(a, b)?
        } else {
            self.write_payload(0, a, deadline)?;
            self.write_payload(4 * apart as u64, b, deadline)?;
            VectorAddRequest::in_payload(apart as u32, 0)
        };
        self.send(request, deadline)?;
        let response = self.recv(deadline)?;
        match response.status {
            status::INLINE if len <= INLINE_ELEMENTS => c.copy_from_slice(&response.c[..len]),
            status::PAYLOAD => self.read_payload(8 * apart as u64, c, deadline)?,
            refused => return Err(AddError::Refused(refused)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn vectors_begin_with_a_sector_where_there_is_room() {
        for (len, arena_bytes, expected) in [
            (26, 1 << 16, 32),
            (100, 1248, 104),
            (100, 1247, 100),
            (100, 1200, 100),
            (104, 1248, 104),
            (5461, 1 << 16, 5461),
            (5456, 1 << 16, 5456),
            (5455, 1 << 16, 5456),
        ] {
            let found = apart(len, arena_bytes / 12);
            assert_eq!(found, expected, "{len} elements, {arena_bytes} bytes");
        }
        // A request has 32 bits for it.
        let most = u32::MAX as usize;
        assert_eq!(apart(most - 3, most), most - 3);
    }
}
