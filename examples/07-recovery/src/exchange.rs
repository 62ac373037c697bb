//! Requests there, answers back, as far as it goes.

use crate::LIMIT;
use ring_example_kernels::Fragile;
use ring_host::{DeviceFault, Error, KernelHandle, RecvTimeoutError, TrySendError};

/// Sends requests and checks their answers, until all are answered or the kernel is lost: how many were
/// answered, and the fault.
pub fn exchange(
    kernel: &mut KernelHandle<Fragile>,
    requests: impl Iterator<Item = u64> + Clone,
) -> Result<(u64, Option<DeviceFault>), Error> {
    let (mut to_send, mut answered) = (requests.clone().peekable(), 0);
    for expected in requests {
        while let Some(request) = to_send.peek() {
            match kernel.try_send(*request) {
                Ok(()) => drop(to_send.next()),
                // Receive what is there, also after a fault: `recv` gives it when all was taken.
                Err(TrySendError::Full(_) | TrySendError::Fault { .. }) => break,
                Err(error) => return Err(error.into()),
            }
        }
        match kernel.recv(LIMIT) {
            Ok(response) => assert_eq!(response, expected * expected),
            Err(RecvTimeoutError::Fault(fault)) => return Ok((answered, Some(fault))),
            Err(error) => return Err(error.into()),
        }
        answered += 1;
    }
    Ok((answered, None))
}
