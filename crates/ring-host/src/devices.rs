//! Several open devices, for graphs whose kernels are on more than one.

use crate::buffers::buffer::Buffer;
use crate::device::{Device, DeviceKind, NoPeer};
use crate::error::{BufferError, DevicesError, OpenError};
use crate::runtime::{Runtime, RuntimeConfig};
use ring_shared::Element;
use std::ops::Index;
use std::sync::Arc;

/// Several open devices of one process, numbered from 0: GPUs, and CPU threads, which may be named several times. Kernels of a
/// [graph](crate::GraphBuilder::place) may be on any of them, and send messages from one to another without the host.
///
/// Each is a [`Runtime`] of its own, by which kernels that stand alone are launched. When the devices are opened each is let to reach
/// the memory of the others, if the driver says that it can; what one cannot reach, and why, is in [`reach`](Self::reach).
///
/// ```
/// use ring_device::ring_kernel;
/// use ring_host::{Device, Devices, GraphBuilder, LaunchConfig, Route};
/// use std::time::Duration;
///
/// ring_kernel! {
///     /// Adds one.
///     pub struct Next {
///         ports: { NEXT: [u64; 1] },
///     }
///
///     fn handle(request: &u64, out: &mut Ports) {
///         out.emit(Next::NEXT, request.wrapping_add(1));
///     }
/// }
///
/// # fn main() -> Result<(), ring_host::Error> {
/// let second = Duration::from_secs(1);
/// let devices = Devices::open(&[Device::Cpu, Device::Cpu])?; // or cuda:0 and cuda:1
/// let mut graph = GraphBuilder::new();
/// let [first, last] = [0, 1].map(|device| {
///     let kernel = graph.kernel::<Next>(LaunchConfig::default());
///     graph.place(kernel, device);
///     kernel
/// });
/// graph.feed(first).link(first, Next::NEXT, last, Route::Pairwise);
/// let numbers = graph.read(last, Next::NEXT);
///
/// let mut graph = devices.launch_graph(&graph)?;
/// graph.activate(second)?;
/// let (mut sender, mut receiver) = (graph.sender(first, 0)?, graph.receiver(numbers, 0)?);
/// sender.send(40, second)?;
/// assert_eq!(receiver.recv(second)?, 42);
/// graph.terminate(second)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Devices {
    pub(crate) hosts: Box<[Runtime]>,
    /// For each device, for each device, why it does not reach the memory of that.
    lacks: Box<[Option<NoPeer>]>,
}

impl Devices {
    /// Opens devices with the default [`RuntimeConfig`].
    pub fn open(devices: &[Device]) -> Result<Devices, DevicesError> {
        Devices::open_with(devices, RuntimeConfig::default())
    }

    /// Opens devices, each with those options: memory is taken on each.
    pub fn open_with(devices: &[Device], options: RuntimeConfig) -> Result<Devices, DevicesError> {
        let open = |(number, device): (usize, &Device)| {
            let of = |source| DevicesError::Open { number, device: *device, source };
            Runtime::open_with(*device, options).map_err(of)
        };
        Devices::of(devices.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?)
    }

    /// Opens all GPUs, in the order of their indices, or CPU threads as one device if there is no GPU.
    pub fn open_all(options: RuntimeConfig) -> Result<Devices, DevicesError> {
        let first = Runtime::open_with(Device::Auto, options);
        let of = |number, device| move |source| DevicesError::Open { number, device, source };
        let mut hosts = vec![first.map_err(of(0, Device::Auto))?];
        while hosts[0].device().kind == DeviceKind::Cuda {
            let device = Device::Cuda(hosts.len());
            match Runtime::open_with(device, options) {
                Ok(host) => hosts.push(host),
                Err(OpenError::OutOfRange { .. }) => break,
                Err(source) => return Err(of(hosts.len(), device)(source)),
            }
        }
        Devices::of(hosts)
    }

    /// Takes devices that are open. Each is one of its own: a GPU comes once.
    pub fn of(hosts: impl IntoIterator<Item = Runtime>) -> Result<Devices, DevicesError> {
        let hosts: Box<[Runtime]> = hosts.into_iter().collect();
        if hosts.is_empty() {
            return Err(DevicesError::None);
        }
        for (second, host) in hosts.iter().enumerate() {
            let is_same = |other: &Runtime| {
                let (one, other) = (&host.core.driver, &other.core.driver);
                Arc::ptr_eq(one, other) || (one.index().is_some() && one.index() == other.index())
            };
            if let Some(first) = hosts[..second].iter().position(is_same) {
                let name = host.device().name.clone();
                return Err(DevicesError::Twice { first, second, name });
            }
        }
        let lacks = lacks(&hosts);
        Ok(Devices { hosts, lacks })
    }

    /// How many there are, one at least.
    #[expect(clippy::len_without_is_empty, reason = "there is one at least")]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// The device of that number.
    pub fn get(&self, number: usize) -> Option<&Runtime> {
        self.hosts.get(number)
    }

    /// All of them, in the order of their numbers. [`Runtime::device`] says what each is, and [`Runtime::health`] whether it serves.
    pub fn iter(&self) -> std::slice::Iter<'_, Runtime> {
        self.hosts.iter()
    }

    /// Whether kernels of device `from` reach the memory of device `to`, and if not, why. Each device reaches its own.
    ///
    /// # Panics
    /// If there is no device of one of these numbers.
    pub fn reach(&self, from: usize, to: usize) -> Result<(), &NoPeer> {
        assert!(from < self.len() && to < self.len(), "devices {from} and {to} of {}", self.len());
        self.lacks[from * self.len() + to].as_ref().map_or(Ok(()), Err)
    }

    /// Whether each of two devices reaches the memory of the other, so that links between them lie there; if not, why.
    ///
    /// # Panics
    /// If there is no device of one of these numbers.
    pub fn are_peers(&self, one: usize, other: usize) -> Result<(), &NoPeer> {
        self.reach(one, other).and_then(|()| self.reach(other, one))
    }

    /// Lends a buffer to another device: the same memory as a buffer of that one's, which its kernels view by a reference of its own.
    /// The memory stays until both buffers are [given back](Buffer#giving-it-back) and reclaimed.
    ///
    /// What kernels of one device write there, kernels of another see behind [`sync_devices`](crate::GridContext::sync_devices), or if
    /// they were told by a message behind the answer of the first. It is [added](crate::View::add) to by kernels of one device at a
    /// time. Reads of another device's memory take several times as long as writes: write there what is to be read here.
    ///
    /// # Panics
    /// If there is no device of that number.
    pub fn lend<T: Element>(
        &self,
        buffer: &Buffer<T>,
        to: usize,
    ) -> Result<Buffer<T>, BufferError> {
        let is_owner =
            |host: &Runtime| host.core.buffers_if_any().is_some_and(|all| buffer.is_of(&all));
        let from = self.iter().position(is_owner).ok_or(BufferError::Elsewhere)?;
        let lacks = |why: &NoPeer| BufferError::NoPeer { from, to, why: why.clone() };
        self.reach(to, from).map_err(lacks)?;
        buffer.lent(&self[to])
    }

    /// Makes sure of each device that kernels can be launched on it again, as [`Runtime::recover`] does, also behind one of which that is
    /// an error: the first one is returned. A device that was reset is opened anew, and the others are let to reach it.
    pub fn recover(
        &mut self,
        deadline: impl Into<crate::Deadline>,
    ) -> Result<Vec<crate::Recovery>, crate::RecoverError> {
        let deadline = deadline.into();
        let found: Vec<_> = self.hosts.iter_mut().map(|host| host.recover(deadline)).collect();
        self.lacks = lacks(&self.hosts);
        found.into_iter().collect()
    }
}

impl Index<usize> for Devices {
    type Output = Runtime;

    fn index(&self, number: usize) -> &Runtime {
        &self.hosts[number]
    }
}

impl<'a> IntoIterator for &'a Devices {
    type Item = &'a Runtime;
    type IntoIter = std::slice::Iter<'a, Runtime>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl From<Runtime> for Devices {
    /// One device.
    fn from(host: Runtime) -> Devices {
        Devices { hosts: [host].into(), lacks: [None].into() }
    }
}

/// Lets each device reach each other one; why it cannot.
fn lacks(hosts: &[Runtime]) -> Box<[Option<NoPeer>]> {
    let n = hosts.len();
    let pairs = (0..n).flat_map(|from| (0..n).map(move |to| (from, to)));
    let lack = |(from, to): (usize, usize)| {
        let why = match from == to {
            true => None,
            false => hosts[from].core.driver.reach(&*hosts[to].core.driver).err(),
        };
        match &why {
            Some(error) => {
                tracing::info!(from, to, %error, "a device does not reach another's memory")
            }
            None => tracing::debug!(from, to, "a device reaches another's memory"),
        }
        why
    };
    pairs.map(lack).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn devices_that_lent_to_each_other_leave_nothing_behind() {
        let devices = Devices::open(&[Device::Cpu, Device::Cpu]).unwrap();
        let own = [0, 1].map(|device| devices[device].buffer::<u32>(10).unwrap());
        let of = |device: usize| devices[device].core.buffers_if_any().unwrap();
        let left = [0, 1].map(|device| Arc::downgrade(&of(device)));
        let lent = [devices.lend(&own[0], 1).unwrap(), devices.lend(&own[1], 0).unwrap()];
        let itself = devices.lend(&own[0], 0).unwrap();
        drop((itself, lent, own));
        drop(devices);
        assert!(left.iter().all(|buffers| buffers.upgrade().is_none()));
    }
}
