//! Calls of a kernel's handlers to the host as a `Stream`.

use super::host_calls::{HostCall, HostCalls};
use crate::error::{DeviceFault, TryRecvError};
use crate::kernel::channel::asynchronous::waiting::Waiting;
use crate::kernel::channel::idle_polls::IdlePolls;
use futures_core::stream::{FusedStream, Stream};
use ring_device::CallsHost;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The calls that handlers of a kernel make to the host, for an executor. Each may be answered by any task, in any order. It ends when the
/// kernel was terminated. A fault comes once; then it ends too. [How a task waits](crate::asynchronous#how-a-task-waits): the first call
/// after a while without any takes longer.
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct HostCallStream<K: CallsHost> {
    calls: HostCalls<K>,
    waiting: Waiting,
    idle_polls: IdlePolls,
    has_ended: bool,
}

impl<K: CallsHost> HostCalls<K> {
    /// The same calls, for an executor.
    ///
    /// ```
    /// # use futures_util::StreamExt;
    /// # use ring_host::{Device, LaunchConfig, Runtime};
    /// # use std::time::Duration;
    /// ring_device::ring_kernel! {
    ///     /// What the host says to a number.
    ///     pub struct Ask { calls: { fn double(u64) -> u64; }, }
    ///
    ///     fn handle(ctx: &ThreadContext, n: &u64) -> u64 {
    ///         ctx.call(Ask::double, *n, core::time::Duration::from_secs(10)).unwrap_or(0)
    ///     }
    /// }
    /// # let second = Duration::from_secs(1);
    /// let mut kernel = Runtime::open(Device::Cpu)?.launch::<Ask>(LaunchConfig::default())?;
    /// let mut calls = kernel.host_calls()?.into_stream();
    /// kernel.activate(second)?;
    /// kernel.send(21, second)?;
    /// futures_executor::block_on(async {
    ///     let call = calls.next().await.expect("it is not terminated")?;
    ///     call.on(Ask::double, |n| 2 * n);
    ///     Ok::<(), ring_host::DeviceFault>(())
    /// })?;
    /// assert_eq!(kernel.recv(second)?, 42);
    /// # kernel.terminate(second)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn into_stream(self) -> HostCallStream<K> {
        let waiting = Waiting::new(self.core().device.patience);
        HostCallStream { calls: self, waiting, idle_polls: IdlePolls::new(), has_ended: false }
    }
}

impl<K: CallsHost> HostCallStream<K> {
    /// The calls again, behind the last that the stream gave.
    pub fn into_calls(self) -> HostCalls<K> {
        self.calls
    }
}

impl<K: CallsHost> Stream for HostCallStream<K> {
    type Item = Result<HostCall<K>, DeviceFault>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let it = self.get_mut();
        if it.has_ended {
            return Poll::Ready(None);
        }
        if it.waiting.is_others_turn(context, &mut it.idle_polls) {
            return Poll::Pending;
        }
        if let Some(call) = it.calls.try_next() {
            it.waiting.found();
            return Poll::Ready(Some(Ok(call)));
        }
        match it.idle_polls.nothing(it.calls.core()) {
            TryRecvError::Empty => {
                it.waiting.found_nothing(context, 0); // nobody tells beforehand that a call is about to come
                Poll::Pending
            }
            end => {
                it.has_ended = true;
                Poll::Ready(match end {
                    TryRecvError::Fault(fault) => Some(Err(fault)),
                    _ => None,
                })
            }
        }
    }
}

impl<K: CallsHost> FusedStream for HostCallStream<K> {
    fn is_terminated(&self) -> bool {
        self.has_ended
    }
}
