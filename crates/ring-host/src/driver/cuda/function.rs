use super::call::{Bound, Context, check, is_final};
use super::module::RawFunction;
use super::parking::{Parking, Resident};
use super::stream::{Pair, Streams};
use crate::deadline::{Deadline, Patience, wait};
use crate::driver::{Function, Grid, Limits, Mapped, RunState, Running};
use crate::error::{DriverError, PayloadError};
use cudarc::driver::sys;
use std::mem::ManuallyDrop;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct CudaFunction {
    pub context: Context,
    pub raw: RawFunction,
    pub multiprocessors: u32,
    pub parking: Arc<Parking>,
    pub streams: Arc<Streams>,
}

impl Function for CudaFunction {
    fn limits(&self, threads: u32) -> Result<Limits, DriverError> {
        let _bound = Bound::new(self.context)?;
        let (mut most, mut blocks) = (0, 0);
        let which = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: a loaded function; the pointers are to locals.
        unsafe {
            check("cuFuncGetAttribute", sys::cuFuncGetAttribute(&mut most, which, self.raw.0))?;
            let size = i32::try_from(threads).unwrap_or(i32::MAX);
            if size <= most {
                check(
                    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                    sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                        &mut blocks,
                        self.raw.0,
                        size,
                        0,
                    ),
                )?;
            }
        }
        let number = |n: i32| u32::try_from(n).unwrap_or(0);
        Ok(Limits { threads: number(most), lanes: number(blocks) * self.multiprocessors })
    }

    unsafe fn launch(&self, grid: Grid, parameter: u64) -> Result<Arc<dyn Running>, DriverError> {
        let _bound = Bound::new(self.context)?;
        let resident = self.parking.resident(); // no memory is freed from here on
        let running = CudaRunning {
            context: self.context,
            pair: ManuallyDrop::new(self.streams.take()?),
            streams: Arc::clone(&self.streams),
            resident,
        };
        let mut parameter = parameter;
        let mut parameters = [(&raw mut parameter).cast()];
        let (lanes, threads, stream) = (grid.lanes, grid.threads, running.pair.kernel.0);
        let (f, p) = (self.raw.0, parameters.as_mut_ptr());
        let none = std::ptr::null_mut();
        // SAFETY: a loaded function with one 8-byte parameter, which the driver copies; what it
        // leads to is the caller's promise. The query starts what a driver may have held back.
        unsafe {
            let launched = match grid.cooperative {
                true => sys::cuLaunchCooperativeKernel(f, lanes, 1, 1, threads, 1, 1, 0, stream, p),
                false => sys::cuLaunchKernel(f, lanes, 1, 1, threads, 1, 1, 0, stream, p, none),
            };
            check("cuLaunchKernel", launched)?;
            let _ = sys::cuStreamQuery(stream);
        }
        Ok(Arc::new(running))
    }
}

/// A kernel on its stream, and the stream of its payload copies.
#[derive(Debug)]
struct CudaRunning {
    context: Context,
    pair: ManuallyDrop<Pair>,
    streams: Arc<Streams>,
    resident: Resident,
}

impl Drop for CudaRunning {
    fn drop(&mut self) {
        // SAFETY: taken once, and nothing uses it after this.
        let pair = unsafe { ManuallyDrop::take(&mut self.pair) };
        self.streams.give(pair); // a kernel is dropped when it is over, or was not launched
    }
}

impl CudaRunning {
    fn copied(&self, bytes: usize, end: Deadline) -> Result<(), PayloadError> {
        let look = || match self.pair.copies.state() {
            RunState::Running => Ok(None),
            RunState::Ended => Ok(Some(())),
            RunState::Faulted(error) => Err(PayloadError::Driver(error)),
        };
        let done = wait(end, Patience::Spin, look, || Ok(()))?;
        done.ok_or_else(|| PayloadError::Timeout { bytes, waited: end.waited() })
    }
}

impl Running for CudaRunning {
    fn settle(&self, end: Deadline) -> Result<(), PayloadError> {
        let _bound = Bound::new(self.context)?;
        self.copied(0, end)
    }

    fn state(&self) -> RunState {
        let _bound = match Bound::new(self.context) {
            Ok(bound) => bound,
            Err(error) if is_final(error.code) => return RunState::Faulted(error),
            Err(_) => return RunState::Running,
        };
        let state = match self.pair.kernel.state() {
            RunState::Ended => self.pair.copies.state(),
            state => state,
        };
        if state != RunState::Running {
            self.resident.over();
        }
        state
    }

    unsafe fn copy_in(
        &self,
        to: u64,
        from: Mapped,
        bytes: usize,
        end: Deadline,
    ) -> Result<(), PayloadError> {
        let _bound = Bound::new(self.context)?;
        let from = from.host.as_ptr().cast_const().cast();
        // SAFETY: the caller's ranges, which stay until the copy is over.
        let begun = unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, bytes, self.pair.copies.0) };
        check("cuMemcpyHtoDAsync", begun)?;
        self.copied(bytes, end)
    }

    unsafe fn copy_out(
        &self,
        to: Mapped,
        from: u64,
        bytes: usize,
        end: Deadline,
    ) -> Result<(), PayloadError> {
        let _bound = Bound::new(self.context)?;
        let to = to.host.as_ptr().cast();
        // SAFETY: the caller's ranges, which stay until the copy is over.
        let begun = unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, bytes, self.pair.copies.0) };
        check("cuMemcpyDtoHAsync", begun)?;
        self.copied(bytes, end)
    }
}
