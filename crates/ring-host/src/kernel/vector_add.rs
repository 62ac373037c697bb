use crate::deadline::Deadline;
use crate::error::AddError;
use crate::kernel::handle::KernelHandle;
use ring_device::kernels::{INLINE_ELEMENTS, VectorAdd, VectorAddRequest, status};

impl KernelHandle<VectorAdd> {
    /// C = A + B: in one message up to [`INLINE_ELEMENTS`], else through the payload arena.
    /// Answers not received before, after an error say, are received and dropped first.
    pub fn add(
        &mut self,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        deadline: impl Into<Deadline>,
    ) -> Result<(), AddError> {
        let (deadline, len) = (deadline.into(), a.len());
        let limit = INLINE_ELEMENTS.max(self.payload_bytes() / 12).min(u32::MAX as usize);
        VectorAddRequest::check(a, b, limit)?;
        if c.len() != len {
            return Err(AddError::Sum { c: c.len(), len });
        }
        while self.channel(0)?.unanswered() > 0 {
            self.recv(deadline)?;
        }
        let request = if len <= INLINE_ELEMENTS {
            VectorAddRequest::inline(a, b)?
        } else {
            self.write_payload(0, a, deadline)?;
            self.write_payload(4 * len as u64, b, deadline)?;
            VectorAddRequest::in_payload(len as u32, 0)
        };
        self.send(request, deadline)?;
        let response = self.recv(deadline)?;
        match response.status {
            status::INLINE if len <= INLINE_ELEMENTS => c.copy_from_slice(&response.c[..len]),
            status::PAYLOAD => self.read_payload(8 * len as u64, c, deadline)?,
            refused => return Err(AddError::Refused(refused)),
        }
        Ok(())
    }
}
