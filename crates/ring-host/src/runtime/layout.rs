//! The layouts of shared structs as the device's compiler sees them.

use super::Runtime;
use crate::deadline::{Deadline, Patience, wait};
use crate::device::layout_probe::layout_probe;
use crate::device::retry::launch_within;
use crate::device::{Cells, CopyKind, Demand, Grid, MemoryCopy, RunState};
use crate::drive::orphans::{Used, set_aside};
use crate::error::{DriverError, DriverReason, LaunchError};
use crate::memory::arena::Arena;
use ring_shared::layout::TABLE_LEN;
use std::ptr::NonNull;
use std::time::Duration;

/// Bytes of the table.
const TABLE_BYTES: usize = TABLE_LEN * 8;

/// How long the device has for it.
const PATIENCE: Duration = Duration::from_secs(5);

impl Runtime {
    /// The table of [`ring_shared::layout::table`] as the device's compiler sees it.
    #[doc(hidden)]
    pub fn layout_on_device(&self) -> Result<[u64; TABLE_LEN], LaunchError> {
        let (kernel, driver) = ("layout_probe", &self.core.driver);
        let deadline = Deadline::from(PATIENCE);
        let arena = Arena::device(driver, TABLE_BYTES * 2)?; // the caller's may be full
        let table = arena.alloc(TABLE_BYTES).map_err(|exhausted| exhausted.of_kernel(kernel))?;
        let function = driver.load(layout_probe(&self.core.kernels));
        let function = function.map_err(|source| LaunchError::Image { kernel, source })?;
        let grid = Grid { blocks: 1, threads: 1, cooperative: false };
        let block = function.limits(grid.threads)?.block;
        let demand = Demand { kernel, blocks: 1, block, relaunched: false };
        let reservation = driver.occupancy().reserve(demand)?;
        let launch_slot = function.launch_slot(grid, table.device(), false)?;
        let mut found = Box::new([0u64; TABLE_LEN]);
        let over = |state: RunState| Ok(state.ended()?.then_some(()));
        let ended = || -> Result<Option<()>, DriverError> {
            // SAFETY: there is room for the table, which is set aside below unless all is over.
            if !unsafe { launch_within(deadline, &*launch_slot) }? {
                return Ok(None);
            }
            let ran = wait(deadline, Patience::Yield, || over(launch_slot.state()), || Ok(()))?;
            if ran.is_none() {
                return Ok(None);
            }
            let copy = MemoryCopy {
                kind: CopyKind::DeviceToHost,
                host: NonNull::from(&mut *found).cast(),
                device: table.device(),
                bytes: TABLE_BYTES,
                cells: Cells::Words,
            };
            // SAFETY: both have room for the table; the kernel has ended; `found` is set aside below
            // unless the copy is over.
            unsafe { launch_slot.copy(copy) }?;
            wait(deadline, Patience::Yield, || over(launch_slot.copies()), || Ok(()))
        }();
        if !launch_slot.is_over() {
            let occupancy = driver.occupancy().clone();
            let used = Used::Probe { _table: table, _found: found, _reservation: reservation };
            set_aside((kernel, &driver.label()), occupancy, launch_slot, used);
            let reason = DriverReason::Silent { waited: PATIENCE };
            let silent = DriverError { call: "layout_probe", code: 0, reason };
            return Err(ended.err().unwrap_or(silent).into());
        }
        ended?;
        Ok(*found)
    }
}
