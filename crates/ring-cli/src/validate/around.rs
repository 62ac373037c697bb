//! A soak of a ring through several devices: messages from the host go through a kernel on each, and come back by the first.

use super::report;
use super::soak::{Port, soak};
use crate::args::{DeviceList, Emulate, Emulation, Validate};
use crate::bench::shipped;
use crate::failure::Failure;
use crate::host;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::text::wrapped;
use ring_bench::kernels::Pass64;
use ring_host::error::DevicesError;
use ring_host::kernels::EchoMessage;
use ring_host::{
    Device, DeviceKind, Devices, Error, Graph, GraphBuilder, Kernels, LaunchConfig, PortReceiver,
    Route, RuntimeConfig, Sender,
};
use std::io::Write;

/// Opens the devices, and lets messages go around. An error if one was lost, doubled, reordered or changed.
pub fn run(
    list: &DeviceList,
    options: &Validate,
    interrupt: Interrupt,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let failure = |error: Error| Failure::Devices(Box::new(error));
    let emulation = options.emulate.as_ref().and_then(Emulate::names);
    let devices = opened(list, emulation).map_err(|error| failure(error.into()))?;
    if let Some(emulation) = emulation {
        writeln!(out, "emulating {emulation} on each")?;
    }
    for (number, device) in devices.iter().enumerate() {
        let (kind, name) = (host::kind(device.device()), &device.device().name);
        writeln!(out, "{}", wrapped(&format!("device {number}  "), &format!("{kind}: {name}")))?;
    }
    let (mut graph, ends) = launched(&devices).map_err(failure)?;
    for link in graph.links() {
        writeln!(out, "{}", wrapped("link      ", &link.to_string()))?;
    }
    let (messages, timeout) = (options.messages, options.timeout);
    graph.activate(timeout)?;
    if messages == 0 {
        graph.drain(timeout)?;
        graph.terminate(timeout)?;
        writeln!(out, "{}", report::NO_SOAK)?;
        return Ok(writeln!(
            out,
            "passed  kernels on {} devices, launched and ended",
            devices.len()
        )?);
    }
    let progress = &mut Progress::new(messages);
    let (soaked, went) = soak(vec![ends], messages, timeout, interrupt, progress);
    let counted = graph.drain(timeout).and_then(|()| graph.terminate(timeout));
    let passed = match (went, counted) {
        (Err(error), _) => Err(error.to_string()),
        _ if !soaked.sound => Err(report::unsound(&soaked, messages, timeout)),
        (Ok(()), Err(error)) => Err(format!("at the end: {error}")),
        (Ok(()), Ok(counted)) => {
            match counted
                .iter()
                .find(|kernel| (kernel.processed, kernel.unhandled) != (soaked.sent, 0))
            {
                None => Ok(()),
                Some(kernel) => Err(format!(
                    "{} messages came back, but a kernel counted {} handled and {} not handled",
                    soaked.sent, kernel.processed, kernel.unhandled
                )),
            }
        }
    };
    write!(out, "{}", report::soak(&soaked, messages, 1, &passed))?;
    match passed {
        Ok(()) if soaked.interrupted => Err(Failure::Interrupted),
        Ok(()) => Ok(writeln!(out, "passed  a ring through {} devices", devices.len())?),
        Err(_) => Err(Failure::Checks { failed: 1, of: 1 }), // why has been printed
    }
}

/// Opens the devices, each with things taken away if so asked.
fn opened(list: &DeviceList, emulation: Option<&Emulation>) -> Result<Devices, DevicesError> {
    let config = RuntimeConfig::default();
    let all = match list {
        DeviceList::All => Devices::open_all(config)?,
        DeviceList::These(devices) if emulation.is_none() => {
            return Devices::open_with(devices, config);
        }
        DeviceList::These(devices) => return emulated(devices, emulation),
    };
    match (emulation, all[0].device().kind) {
        (None, _) => Ok(all),
        (_, DeviceKind::Cuda) => {
            emulated(&(0..all.len()).map(Device::Cuda).collect::<Vec<_>>(), emulation)
        }
        _ => emulated(&[Device::Cpu], emulation),
    }
}

fn emulated(devices: &[Device], emulation: Option<&Emulation>) -> Result<Devices, DevicesError> {
    let open = |(number, device): (usize, &Device)| {
        let host = host::open(*device, emulation, Kernels::BUILT_IN);
        let of = |source| DevicesError::Open { number, device: *device, source };
        host.and_then(|host| host.runtime).map_err(of)
    };
    Devices::of(devices.iter().enumerate().map(open).collect::<Result<Vec<_>, _>>()?)
}

/// The ends of the ring on the host.
struct Around {
    sender: Sender<Pass64>,
    receiver: PortReceiver<[u64; 8]>,
    /// What kernels but the first have added to each word.
    more: u64,
}

impl Port for Around {
    type Error = Error;

    fn send(&mut self, messages: &[EchoMessage]) -> Result<usize, Error> {
        let (sender, most) = (&mut self.sender, messages.len());
        Ok(sender.try_send_each(most, |k| messages[k].words)?)
    }

    fn receive(&mut self, answers: &mut [EchoMessage]) -> Result<usize, Error> {
        let (mut received, most) = (0, answers.len());
        self.receiver.try_recv_each(most, |words| {
            answers[received].words = words.map(|word| word.wrapping_sub(self.more));
            received += 1;
        })?;
        Ok(received)
    }
}

/// A kernel on each device, and one more on the first if there are several, one behind the other.
fn launched(devices: &Devices) -> Result<(Graph, Around), Error> {
    let mut graph = GraphBuilder::new();
    let back = (devices.len() > 1).then_some(0);
    let placed = (0..devices.len()).chain(back).map(|device| {
        let kernel = graph.kernel::<Pass64>(shipped(LaunchConfig::default()));
        graph.place(kernel, device);
        kernel
    });
    let kernels: Vec<_> = placed.collect();
    graph.feed(kernels[0]);
    for pair in kernels.windows(2) {
        graph.link(pair[0], Pass64::ON, pair[1], Route::Pairwise);
    }
    let last = graph.read(kernels[kernels.len() - 1], Pass64::ON);
    let mut graph = devices.launch_graph(&graph)?;
    let sender = graph.sender(kernels[0], 0)?;
    let receiver = graph.receiver(last, 0)?;
    Ok((graph, Around { sender, receiver, more: kernels.len() as u64 - 1 }))
}
