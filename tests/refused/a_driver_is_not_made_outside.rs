//! A driver of one's own: what drivers promise of memory, others rely on.

use ring_host::device::{CopyLane, Driver, Function, Mapped, Program, Occupancy};
use ring_host::error::DriverError;
use ring_host::image::ImageError;
use ring_host::probe::Probed;
use ring_host::{DeviceInfo, RuntimeConfig, Runtime};
use std::sync::Arc;

#[derive(Debug)]
struct Mine;

impl Driver for Mine {
    fn info(&self) -> &DeviceInfo {
        unimplemented!()
    }
    fn occupancy(&self) -> &Occupancy {
        unimplemented!()
    }
    fn probed(&self) -> &Probed {
        unimplemented!()
    }
    fn alloc_pinned(&self, _: usize) -> Result<Mapped, DriverError> {
        unimplemented!()
    }
    unsafe fn free_pinned(&self, _: Mapped) {}
    fn alloc_device(&self, _: usize) -> Result<u64, DriverError> {
        Ok(8)
    }
    unsafe fn free_device(&self, _: u64, _: usize) {}
    fn copy_lane(&self) -> Result<Arc<dyn CopyLane>, DriverError> {
        unimplemented!()
    }
    fn load(&self, _: Program<'_>) -> Result<Arc<dyn Function>, ImageError> {
        unimplemented!()
    }
}

fn main() {
    let mine: Arc<dyn Driver> = Arc::new(Mine);
    let _ = Runtime::over(mine, RuntimeConfig::default());
}
