//! Going on after a fault, all kernels of a graph together.

use super::handle::{Graph, Lost, Place};
use super::launched::Launched;
use super::snapshot::{FeedLoss, GraphSnapshot};
use crate::deadline::Deadline;
use crate::devices::Devices;
use crate::error::{DeviceFault, RecoverGraphError};
use crate::kernel::handle::Summary;
use crate::runtime::Runtime;
use std::mem::replace;
use std::sync::Arc;

/// What [`Graph::recover_from`] has done about a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GraphRestart {
    /// For each kernel, in the order in which they were declared, what [`Graph::recover`] returns.
    pub kernels: Vec<Summary>,
    /// What became of the messages that the host had sent, of each channel that it feeds.
    pub fed: Vec<FeedLoss>,
}

impl Graph {
    /// After a fault of one kernel, or at any time: makes all kernels leave the device, and launches the graph anew from its
    /// declaration. Then it waits to be [activated](Self::activate), as after [`Runtime::launch_graph`].
    ///
    /// Nothing of the lost launch comes back: links and ports are empty, states and payload as a launch makes them. How many
    /// messages each kernel had handled, and of those that the host feeds how many were sent and not handled, is returned in
    /// the order in which they were declared; messages that were on links are in neither. Of a channel that is lost what it had
    /// reported last counts: it may have handled some more, as [`DeviceFault::HandlerPanicked`] says.
    ///
    /// Senders and receivers that were taken before belong to the lost launch: they give its fault, or `Closed` where nothing
    /// was wrong, once a receiver has taken what had been emitted to it. Take new ones. As long as they are kept, so is the
    /// memory of the launch that they belong to.
    ///
    /// It waits for kernels to leave until the deadline. If one does not, because its handler does not end, that is
    /// [`RecoverGraphError::Staying`], and this may be called again; in the meantime the graph can only be dropped. If it
    /// cannot be launched ([`RecoverGraphError::Launch`]), it has no kernels, every call says so, and this may be called again,
    /// which then returns the same counts.
    ///
    /// `host` is the runtime that the graph was launched by, or any other. A device that was reset, or on which a kernel
    /// trapped, is lost with all that runs there: [`RecoverGraphError::Device`] says so. Then
    /// [recover the runtime](Runtime::recover) first. A handler that panics does not trap.
    ///
    /// ```
    /// use ring_device::ring_kernel;
    /// use ring_host::{Device, GraphBuilder, LaunchConfig, Route, Runtime, RecvTimeoutError};
    /// use std::time::Duration;
    ///
    /// ring_kernel! {
    ///     /// Divides a million by what it gets.
    ///     pub struct Divide {
    ///         ports: { QUOTIENTS: [u64; 1] },
    ///     }
    ///
    ///     fn handle(request: &u64, out: &mut Ports) {
    ///         out.emit(Divide::QUOTIENTS, 1_000_000 / *request);
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), ring_host::Error> {
    /// let second = Duration::from_secs(1);
    /// let mut graph = GraphBuilder::new();
    /// let divide = graph.kernel::<Divide>(LaunchConfig::default());
    /// graph.feed(divide);
    /// let quotients = graph.read(divide, Divide::QUOTIENTS);
    ///
    /// let host = Runtime::open(Device::Cpu)?;
    /// let mut graph = host.launch_graph(&graph)?;
    /// graph.activate(second)?;
    /// let (mut sender, mut receiver) = (graph.sender(divide, 0)?, graph.receiver(quotients, 0)?);
    /// sender.send(0, second)?; // the handler panics
    /// assert!(matches!(receiver.recv(second), Err(RecvTimeoutError::Fault(_))));
    ///
    /// let counts = graph.recover(&host, second)?;
    /// assert_eq!((counts[0].processed, counts[0].unhandled), (0, 1));
    /// graph.activate(second)?;
    /// let (mut sender, mut receiver) = (graph.sender(divide, 0)?, graph.receiver(quotients, 0)?);
    /// sender.send(8, second)?;
    /// assert_eq!(receiver.recv(second)?, 125_000);
    /// graph.terminate(second)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn recover(
        &mut self,
        host: &Runtime,
        deadline: impl Into<Deadline>,
    ) -> Result<Vec<Summary>, RecoverGraphError> {
        self.recover_on(&host.clone().into(), deadline)
    }

    /// The same of a graph on several devices: those that it was launched on, or others, as many. Of kernels on a device that is lost
    /// the others are made to leave; then [recover the devices](Devices::recover) first.
    pub fn recover_on(
        &mut self,
        devices: &Devices,
        deadline: impl Into<Deadline>,
    ) -> Result<Vec<Summary>, RecoverGraphError> {
        Ok(self.launched_anew(devices, None, deadline.into())?.counts)
    }

    /// As [`recover_on`](Self::recover_on), and gives the kernels the states of a snapshot; the graph then waits to be activated. What
    /// the states do not know of is reported by index: nothing that was sent is lost untold. What is to be sent again is the caller's to
    /// choose, and so is what to do with what was [emitted](GraphSnapshot::emitted) behind the snapshot and received: it will be emitted again for
    /// what is sent again.
    ///
    /// The snapshot may be of the launch that is lost, of one before, or from a file; only of the first do the states know of
    /// messages that this launch was sent.
    ///
    /// ```
    /// # use ring_device::ring_kernel;
    /// # use ring_host::{Device, Devices, GraphBuilder, LaunchConfig, RecvTimeoutError, Runtime};
    /// # use std::time::Duration;
    /// ring_kernel! {
    ///     /// Adds up, but for 13.
    ///     pub struct Sum {
    ///         ports: { SUMS: [u64; 1] },
    ///     }
    ///
    ///     fn handle(sum: &mut u64, request: &u64, out: &mut Ports) {
    ///         assert_ne!(*request, 13);
    ///         *sum = sum.wrapping_add(*request);
    ///         out.emit(Sum::SUMS, *sum);
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), ring_host::Error> {
    /// # let second = Duration::from_secs(1);
    /// let mut graph = GraphBuilder::new();
    /// let sum = graph.kernel::<Sum>(LaunchConfig::default());
    /// let sums = graph.feed(sum).read(sum, Sum::SUMS);
    ///
    /// let host: Devices = Runtime::open(Device::Cpu)?.into();
    /// let mut graph = host.launch_graph(&graph)?;
    /// graph.activate(second)?;
    /// let (mut sender, mut receiver) = (graph.sender(sum, 0)?, graph.receiver(sums, 0)?);
    /// sender.send(3, second)?;
    /// let snapshot = graph.snapshot(second)?;
    /// sender.send(13, second)?; // the handler panics
    /// assert_eq!(receiver.recv(second)?, 3);
    /// assert!(matches!(receiver.recv(second), Err(RecvTimeoutError::Fault(_))));
    ///
    /// let restart = graph.recover_from(&host, &snapshot, second)?;
    /// assert_eq!(restart.fed[0].not_in_state(), 1..2);
    /// graph.activate(second)?;
    /// let (mut sender, mut receiver) = (graph.sender(sum, 0)?, graph.receiver(sums, 0)?);
    /// sender.send(4, second)?;
    /// assert_eq!(receiver.recv(second)?, 7);
    /// graph.terminate(second)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn recover_from(
        &mut self,
        devices: &Devices,
        snapshot: &GraphSnapshot,
        deadline: impl Into<Deadline>,
    ) -> Result<GraphRestart, RecoverGraphError> {
        snapshot.fits(&self.declared).map_err(RecoverGraphError::Restore)?;
        let lost = self.launched_anew(devices, Some(snapshot), deadline.into())?;
        let fed = snapshot.losses(lost.launch, &lost.sent);
        Ok(GraphRestart { kernels: lost.counts, fed })
    }

    /// Takes the kernels down and launches them anew, with the states of a snapshot; what the launch had done that has left.
    fn launched_anew(
        &mut self,
        devices: &Devices,
        snapshot: Option<&GraphSnapshot>,
        deadline: Deadline,
    ) -> Result<Lost, RecoverGraphError> {
        let has = |number: usize| {
            let (old, new) = (self.hosts.get(number), devices.get(number));
            old.zip(new).is_some_and(|(old, new)| old.as_ptr() == Arc::as_ptr(&new.core))
        };
        let on = self.declared.members.iter().map(|of| (of.device, has(of.device)));
        let on: Vec<(usize, bool)> = on.collect();
        let lost = match &mut self.place {
            Place::OnDevice(launched) => {
                let counts = launched.leave(&on, deadline)?;
                Lost { launch: launched.number, counts, sent: launched.sent(&self.declared) }
            }
            Place::TakenDown(lost) => lost.clone(),
        };
        // Before it is launched again, so that there is room for it.
        drop(replace(&mut self.place, Place::TakenDown(lost.clone())));
        let launched = Launched::new(devices, &self.declared);
        let launched = launched.map_err(RecoverGraphError::Launch)?;
        if let Some(snapshot) = snapshot {
            let restored = launched.restore(snapshot, deadline);
            restored.map_err(|error| RecoverGraphError::Restore(error.into()))?;
        }
        self.hosts = Graph::cores(devices);
        self.place = Place::OnDevice(launched);
        tracing::info!(kernels = lost.counts.len(), "graph recovered");
        Ok(lost)
    }
}

impl Launched {
    /// Makes all kernels leave, lost or not; what they had handled. Each is `on` the device of a number, and it is said whether that is to
    /// serve on: if it is gone, that is an error then, and else its kernels have left.
    fn leave(
        &mut self,
        on: &[(usize, bool)],
        deadline: Deadline,
    ) -> Result<Vec<Summary>, RecoverGraphError> {
        for kernel in &self.kernels {
            let _ = kernel.core().check(); // what is lost is known from here on
        }
        let mut gone = Vec::new();
        for (kernel, (device, serves_on)) in self.kernels.iter().zip(on) {
            match kernel.core().device.fault() {
                Some(fault @ DeviceFault::Device { .. }) if *serves_on => {
                    return Err(RecoverGraphError::Device(fault));
                }
                Some(DeviceFault::Device { .. }) => gone.push(*device),
                _ => {} // another kernel of the device may know more
            }
        }
        let left = self.each(|index, kernel| match gone.contains(&on[index].0) {
            true => Ok(kernel.summary()),
            false => kernel.leave(deadline),
        });
        for kernel in &self.kernels {
            // One may have been lost while others left: their ends are to name it.
            let _ = kernel.core().check_peers();
        }
        left.map_err(RecoverGraphError::Staying)
    }
}
