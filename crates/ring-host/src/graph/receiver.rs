//! The receiving half of a port.

use crate::deadline::{Deadline, Patience, wait};
use crate::drive::traces::HostTrace;
use crate::error::{DeviceFault, RecvTimeoutError, TryRecvError};
use crate::kernel::channel::idle_polls::IdlePolls;
use crate::kernel::channel::select::{Incoming, Ready};
use crate::kernel::core::KernelCore;
use crate::memory::links::GraphMemory;
use ring_shared::ring::Corrupt;
use ring_shared::{Inbox, Message, Ring};
use std::marker::PhantomData;
use std::sync::Arc;

/// Receives what a channel of a kernel emits to a port, in order. Not `Clone`: a ring has one consumer. Its calls are those of
/// [`Receiver`](crate::Receiver).
#[derive(Debug)]
pub struct PortReceiver<M> {
    core: Arc<KernelCore>,
    /// Where the ring lies.
    _memory: GraphMemory,
    channel: u32,
    inbox: Inbox,
    /// The end was returned, and nothing follows it.
    over: bool,
    idle_polls: IdlePolls,
    /// If there is a trace: what is noted, and the index up to which it is.
    trace: Option<(Arc<HostTrace>, u64)>,
    of: PhantomData<fn() -> M>,
}

impl<M: Message> PortReceiver<M> {
    /// The consumer of a ring in that memory, which notes messages there, if anywhere.
    pub(super) fn new(
        core: Arc<KernelCore>,
        channel: u32,
        (memory, ring): (GraphMemory, Ring),
        trace: Option<Arc<HostTrace>>,
    ) -> PortReceiver<M> {
        let (inbox, idle_polls) = (Inbox::new(ring), IdlePolls::new());
        let trace = trace.map(|trace| (trace, inbox.next()));
        let (over, of) = (false, PhantomData);
        PortReceiver { core, _memory: memory, channel, inbox, over, idle_polls, trace, of }
    }

    /// The next message, or [`Empty`](TryRecvError::Empty) if there is none yet.
    #[inline]
    pub fn try_recv(&mut self) -> Result<M, TryRecvError> {
        let short = if self.over { None } else { self.inbox.pop_short() };
        let message = match short {
            Some(message) => {
                self.note();
                message
            }
            None => self.take(Inbox::pop)?,
        };
        // Now, and not when the next look finds nothing: by then the caller may have sent a request, and the kernel would have to
        // send what that leads to by slots. Until it knows, each of its looks goes across the bus.
        self.inbox.publish_if_empty();
        Ok(message)
    }

    /// The next message, waiting for it until the deadline.
    #[inline]
    pub fn recv(&mut self, deadline: impl Into<Deadline>) -> Result<M, RecvTimeoutError> {
        let (deadline, core) = (deadline.into(), Arc::clone(&self.core));
        // A fault is returned by the next look, which first takes what was emitted before it.
        let check = || {
            let _ = core.check();
            Ok(())
        };
        let look = || match self.try_recv() {
            Ok(message) => Ok(Some(message)),
            Err(error) => RecvTimeoutError::unless_empty(error).map(|()| None),
        };
        let found = wait(deadline, core.device.patience, look, check)?;
        found.ok_or_else(|| RecvTimeoutError::Timeout {
            kernel: core.device.name,
            channel: self.channel,
            waited: deadline.waited(),
            state: core.device.state(),
        })
    }

    /// Takes as many messages as are there and fit, in order; how many that is, 0 if the ring is empty.
    #[inline]
    pub fn try_recv_batch(&mut self, messages: &mut [M]) -> Result<usize, TryRecvError> {
        self.take_some(messages.len(), |inbox| inbox.pop_slice(messages))
    }

    /// Shows up to `most` messages, as many as are there, in order, to `each`; how many that is, 0 if the ring is empty. Each is
    /// received before it is shown.
    #[inline]
    pub fn try_recv_each(
        &mut self,
        most: usize,
        mut each: impl FnMut(&M),
    ) -> Result<usize, TryRecvError> {
        self.take_some(most, |inbox| inbox.pop_each(most, &mut each))
    }

    #[inline]
    fn take_some(
        &mut self,
        most: usize,
        mut pop: impl FnMut(&mut Inbox) -> Result<usize, Corrupt>,
    ) -> Result<usize, TryRecvError> {
        if most == 0 {
            return Ok(0);
        }
        match self.take(|inbox| pop(inbox).map(|taken| (taken > 0).then_some(taken))) {
            Err(TryRecvError::Empty) => Ok(0),
            taken => taken,
        }
    }

    /// What `pop` takes; when there is nothing, why.
    fn take<T>(
        &mut self,
        mut pop: impl FnMut(&mut Inbox) -> Result<Option<T>, Corrupt>,
    ) -> Result<T, TryRecvError> {
        if let Some(taken) = self.pop(&mut pop)? {
            return Ok(taken);
        }
        let end = self.idle_polls.nothing(&self.core);
        if matches!(end, TryRecvError::Empty) {
            return Err(end);
        }
        // What was emitted before the end is here by now.
        let taken = self.pop(pop)?;
        self.over |= taken.is_none();
        taken.ok_or(end)
    }

    fn pop<T>(
        &mut self,
        pop: impl FnOnce(&mut Inbox) -> Result<Option<T>, Corrupt>,
    ) -> Result<Option<T>, DeviceFault> {
        if self.over {
            return Ok(None);
        }
        let popped = pop(&mut self.inbox);
        self.note();
        popped.map_err(|corrupt| {
            self.over = true;
            self.core.device.corrupt(self.channel, corrupt)
        })
    }

    /// After something was received, or not.
    #[inline]
    fn note(&mut self) {
        if let Some((trace, noted)) = &mut self.trace {
            let next = self.inbox.next();
            if *noted != next {
                trace.note(*noted, next.wrapping_sub(*noted), self.core.device.traces.now());
                *noted = next;
            }
        }
    }
}

impl<M: Message> Incoming for PortReceiver<M> {}

impl<M: Message> Ready for PortReceiver<M> {
    fn is_ready(&mut self) -> bool {
        let is_there = self.over || self.inbox.there() > 0;
        is_there || !matches!(self.idle_polls.nothing(&self.core), TryRecvError::Empty)
    }

    fn patience(&self) -> Patience {
        self.core.device.patience
    }
}

#[cfg(test)]
mod tests {
    use crate::{Device, GraphBuilder, LaunchConfig, Runtime};
    use std::time::Duration;

    ring_device::ring_kernel! {
        /// Emits what it gets.
        pub struct On {
            ports: { ON: [u64; 1] },
        }

        fn handle(message: &u64, out: &mut Ports) {
            out.emit(On::ON, *message);
        }
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_kernel_is_told_at_once_of_the_last_message_that_was_there() {
        let mut graph = GraphBuilder::new();
        let on = graph.kernel::<On>(LaunchConfig::default());
        let read = graph.feed(on).read(on, On::ON);
        let mut graph = Runtime::open(Device::Cpu).unwrap().launch_graph(&graph).unwrap();
        graph.activate(LONG).unwrap();
        let mut sender = graph.sender(on, 0).unwrap();
        let mut receiver = graph.receiver(read, 0).unwrap();
        let count = if cfg!(miri) { 3 } else { 100 }; // Miri takes seconds for each
        for number in 0..count {
            sender.send(number, LONG).unwrap();
            assert_eq!(receiver.recv(LONG), Ok(number));
            assert!(receiver.inbox.is_settled(), "behind message {number}");
        }
    }
}
