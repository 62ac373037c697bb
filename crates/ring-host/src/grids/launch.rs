//! The checks and the launch of grids on several devices, and the memory where they meet.

use super::handle::Grids;
use crate::buffers::buffer::Buffer;
use crate::devices::Devices;
use crate::error::GridsError;
use crate::kernel::core::KernelCore;
use crate::kernel::handle::KernelHandle;
use crate::kernel::launch::LaunchConfig;
use crate::memory::links::{GridsMemory, Partners};
use crate::mode::{Memory, Mode};
use crate::runtime::Runtime;
use ring_device::{GridHandler, MAX_BLOCKS_OF_DEVICES, MEETING_BYTES};
use ring_shared::layout::{DevicesSetup, MAX_DEVICES};
use std::fmt::Debug;
use std::sync::Arc;

impl Devices {
    /// Launches a kernel of scope [`Grid`](crate::Grid) on each device, as grids that handle each message together: their handlers meet at
    /// [`sync_devices`](crate::GridContext::sync_devices), [`sum_devices`](crate::GridContext::sum_devices) and
    /// [`max_devices`](crate::GridContext::max_devices). They then wait to be [activated](Grids::activate). If one cannot be launched,
    /// none stays.
    ///
    /// Each device has to [reach](Self::reach) the memory of each other one: there each block tells that it has come to a meeting. The
    /// kernels run persistent in mapped memory. Code is loaded on all devices before the first launch, as
    /// [`launch_graph`](Self::launch_graph) does.
    pub fn launch_grids<K: GridHandler>(
        &self,
        launch: LaunchConfig,
    ) -> Result<Grids<K>, GridsError> {
        let (kernel, devices) = (K::NAME, self.len());
        if devices > MAX_DEVICES {
            return Err(GridsError::TooManyDevices { kernel, devices });
        }
        if !launch.may_be_resident() {
            let (mode, memory) = launch.asked();
            return Err(GridsError::NotResident { kernel, mode, memory });
        }
        for (from, to) in (0..devices).flat_map(|from| (0..devices).map(move |to| (from, to))) {
            let lacks = |why: &_| GridsError::NoPeer { kernel, from, to, why: Clone::clone(why) };
            self.reach(from, to).map_err(lacks)?;
        }
        let launch = launch.mode(Mode::Persistent).memory(Memory::Mapped);
        for (number, host) in self.iter().enumerate() {
            let prepared = host.prepare::<K>(&launch);
            prepared.map_err(|error| on(self, number, error.into()))?;
        }
        let blocks: Vec<u32> =
            self.iter().map(|host| launch.blocks_of::<K>(host.device())).collect();
        let all: u32 = blocks.iter().sum();
        if all > MAX_BLOCKS_OF_DEVICES {
            return Err(GridsError::Blocks { kernel, blocks: all, devices });
        }
        let memory = self.iter().enumerate().map(|(number, host)| {
            let places = host.buffer::<u32>(MEETING_BYTES / 4);
            places.map_err(|error| on(self, number, error.into()))
        });
        let memory: Vec<Buffer<u32>> = memory.collect::<Result<_, _>>()?;
        let places: Vec<u64> = memory.iter().map(Buffer::device).collect();
        let memory: Arc<dyn Debug + Send + Sync> = Arc::new(memory);
        let mut kernels: Vec<KernelHandle<K>> = Vec::with_capacity(devices);
        for (own, host) in self.iter().enumerate() {
            let setup = DevicesSetup { own, places: &places, blocks: &blocks };
            let grids = GridsMemory { line: setup.to_words(), memory: Arc::clone(&memory) };
            // If it fails, those before it leave as they are dropped.
            let launched = host.launch_with::<K>(&launch, Partners::Grids(&grids));
            kernels.push(launched.map_err(|error| on(self, own, error.into()))?);
        }
        let cores = kernels.iter().map(KernelHandle::core).zip(0..);
        KernelCore::introduce(&cores.collect::<Vec<_>>());
        Ok(Grids::new(kernels))
    }
}

/// An error of a device, which is named.
fn on(devices: &Devices, number: usize, error: GridsError) -> GridsError {
    let name = Runtime::device(&devices[number]).name.clone();
    GridsError::OnDevice { number, name, source: Box::new(error) }
}
