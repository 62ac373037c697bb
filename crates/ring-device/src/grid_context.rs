//! What a handler sees that all blocks of a grid run.

use crate::block::{Cooperate, Threads};
use crate::buffers::{self, ReadView, View};
use crate::context::Payload;
use crate::dispatch::fell_out;
use crate::memory::devices::{DevicesMemory, MeetingOfDevices};
use crate::memory::grid::{GridMemory, Meeting};
use crate::memory::meeting::{Progress, Trouble};
use crate::memory::scratch::Room;
use crate::memory::signals::Life;
use crate::number::Number;
use crate::reduce;
use crate::shared::{self, Shared, SharedSlice};
use crate::thread_block::ThreadBlock;
use core::cell::Cell;
use core::fmt;
use core::ops::Range;
use core::ptr::with_exposed_provenance;
use ring_shared::atomics::Ordering::Relaxed;
use ring_shared::layout::ControlBlock;
use ring_shared::{BufferRef, Element, Element32};

/// Seen by a [`GridHandler`](crate::GridHandler): the calling thread's place in the grid, and where the grid meets.
pub struct GridContext<'a> {
    block: ThreadBlock<'a>,
    payload: Payload<'a>,
    shared: Room,
    grid: GridMemory<'a>,
    /// How far the handler has come; in all threads of the grid the same.
    progress: Cell<Progress>,
    /// Whether blocks read what others write: the kernel declares that it uses a payload.
    shares_memory: bool,
}

impl fmt::Debug for GridContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GridContext").field("block", &self.block).finish_non_exhaustive()
    }
}

impl<'a> GridContext<'a> {
    #[inline(always)]
    pub(crate) fn new(
        block: ThreadBlock<'a>,
        (payload, shared): (Payload<'a>, Room),
        (grid, shares_memory): (GridMemory<'a>, bool),
        progress: Progress,
    ) -> Self {
        let progress = Cell::new(progress);
        GridContext { block, payload, shared, grid, progress, shares_memory }
    }

    /// How far the handler has come.
    #[inline(always)]
    pub(crate) fn progress(&self) -> Progress {
        self.progress.get()
    }

    /// Index of the calling thread's block in the grid, from 0.
    #[inline(always)]
    pub fn block(&self) -> usize {
        self.block.block_index() as usize
    }

    /// Blocks in the grid.
    #[inline(always)]
    pub fn blocks(&self) -> usize {
        self.block.blocks() as usize
    }

    /// Index of the calling thread in its block, from 0.
    #[inline(always)]
    pub fn thread(&self) -> usize {
        self.block.thread() as usize
    }

    /// Threads in each block; 1 on the CPU device.
    #[inline(always)]
    pub fn threads(&self) -> usize {
        self.block.threads() as usize
    }

    /// Index of the calling thread in its warp, from 0: its lane.
    #[inline(always)]
    pub fn lane(&self) -> usize {
        self.block.lane() as usize
    }

    /// Threads in a warp: 32; 1 on the CPU device.
    #[inline(always)]
    pub fn lanes(&self) -> usize {
        Threads::WARP as usize
    }

    /// Index of the calling thread's warp in its block, from 0.
    #[inline(always)]
    pub fn warp(&self) -> usize {
        self.thread() / self.lanes()
    }

    /// Warps in each block; 1 on the CPU device. The last one may have fewer threads than [`lanes`](Self::lanes).
    #[inline(always)]
    pub fn warps(&self) -> usize {
        self.threads().div_ceil(self.lanes())
    }

    /// Index of the calling thread in the grid, from 0: threads of a block are side by side.
    #[inline(always)]
    pub fn index(&self) -> usize {
        self.block() * self.threads() + self.thread()
    }

    /// Threads in the grid.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.blocks() * self.threads()
    }

    /// The calling thread's indices of `0..n`: its own in the grid, and then in steps of the grid's size. Threads side by side so
    /// have indices side by side, which is best for memory that each index names.
    #[inline(always)]
    pub fn each(&self, n: usize) -> impl Iterator<Item = usize> + use<> {
        (self.index()..n).step_by(self.size())
    }

    /// The indices of `0..n` of the calling thread's block: a run of them, as long as that of any other block, or by one longer.
    #[inline(always)]
    pub fn share(&self, n: usize) -> Range<usize> {
        let (blocks, block) = (self.blocks(), self.block());
        share_of(blocks, block, n)
    }

    /// The indices of `0..n` of any block: its [`share`](Self::share).
    #[inline(always)]
    pub fn share_of(&self, block: usize, n: usize) -> Range<usize> {
        share_of(self.blocks(), block, n)
    }

    /// Counts this message as refused in the channel's telemetry. Call it once a message: by one of the threads of block 0. In other
    /// blocks it does nothing.
    #[inline(always)]
    pub fn refuse(&self) {
        if self.block() == 0 {
            self.block.add(&self.block.memory().telemetry.refused, 1);
        }
    }

    /// The elements of the calling thread's block-shared memory that the kernel declares under that name. By a name of another kernel's there is what lies at
    /// that place of this one's, or nothing.
    #[inline(always)]
    pub fn shared<K, T: Element>(&self, name: Shared<K, T>) -> SharedSlice<'a, T> {
        shared::slice(self.shared, name)
    }

    /// The payload arena.
    #[inline(always)]
    pub fn payload(&self) -> Payload<'a> {
        self.payload
    }

    /// Nanoseconds of the device's clock, which all of its kernels share and which begins anywhere: two of its times are as far apart as
    /// they say. Its steps are those of the device, 32 ns on an H200, and on others up to a microsecond.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        self.block.now()
    }

    /// The elements of a buffer that a reference names, as all threads of the grid share them. `None` if the buffer was given back, is
    /// not of this kernel's runtime or shorter than the reference says, if its memory is not aligned for `T`, or if the kernel is not
    /// declared with `uses_payload: true` ([`Kernel::USES_PAYLOAD`](crate::Kernel::USES_PAYLOAD)). Of a buffer that was given back before
    /// the message was sent some threads may still find the elements, and others none: a handler that goes on to a barrier lets all
    /// agree first, by [`max`](Self::max) of whether a view is missing.
    #[inline(always)]
    pub fn view<T: Element>(&self, reference: &BufferRef<T>) -> Option<View<'a, T>> {
        buffers::view(self.block, self.shares_memory, reference)
    }

    /// The same, to read only: the answer does not wait until what the handler has written can be seen, if it has written nothing else.
    #[inline(always)]
    pub fn read_view<T: Element>(&self, reference: &BufferRef<T>) -> Option<ReadView<'a, T>> {
        buffers::read_view(self.block, self.shares_memory, reference)
    }

    /// The elements of a frozen buffer that a reference names: a slice as any other, since nobody changes them any more. `None` where a
    /// [`view`](Self::view) would be, and if the buffer is not frozen. Of a frozen one there is no view.
    #[inline(always)]
    pub fn frozen<T: Element>(&self, reference: &BufferRef<T>) -> Option<&'a [T]> {
        buffers::frozen(self.block, self.shares_memory, reference)
    }

    /// Waits until all threads of the warp are here; what they wrote before is seen after by the warp.
    #[inline(always)]
    pub fn sync_warp(&self) {
        self.block.warp_sync();
    }

    /// Waits until all threads of the block are here; what they wrote before is seen after by the block.
    #[inline(always)]
    pub fn sync_block(&self) {
        self.block.sync();
    }

    /// Waits until all threads of all blocks are here; what they wrote before is seen after by all, if the kernel declares
    /// [`uses_payload`](crate::Kernel::USES_PAYLOAD): without that there is no memory that blocks share.
    #[inline(always)]
    pub fn sync(&self) {
        self.block.sync();
        self.meet(0, |_| {});
        self.block.sync();
    }

    /// How many devices the kernel has a grid on, 1 if it is on one: [`sync_devices`](Self::sync_devices),
    /// [`sum_devices`](Self::sum_devices) and [`max_devices`](Self::max_devices) are of all of them, all else is of one grid.
    #[inline(always)]
    pub fn devices(&self) -> usize {
        self.of_devices().map_or(1, |all| all.count() as usize)
    }

    /// The number of the device that the calling thread runs on, below [`devices`](Self::devices).
    #[inline(always)]
    pub fn device(&self) -> usize {
        self.of_devices().map_or(0, |all| all.own() as usize)
    }

    #[inline(always)]
    fn of_devices(&self) -> Option<DevicesMemory<'a>> {
        self.block.memory().grid.devices.all()
    }

    /// As [`sync`](Self::sync), of the threads of all [`devices`](Self::devices): what they wrote before, to the memory of any of these
    /// devices, is seen after by all.
    #[inline(always)]
    pub fn sync_devices(&self) {
        self.block.sync();
        let met = self.meet_devices(0, |_| {});
        self.block.sync();
        self.have_met(met);
    }

    /// The value that another thread of the calling warp brings: the one of that lane, counted on around the warp, so that
    /// `lane().wrapping_sub(1)` and `lane() + 1` name the neighbours. All of its threads must call it together. On the CPU device a
    /// warp has one thread, which gets its own value.
    #[inline(always)]
    pub fn shuffle<T: Element32>(&self, value: T, lane: usize) -> T {
        let lane = lane as u32 & (Threads::WARP - 1);
        bytemuck::cast(self.block.shuffle32(bytemuck::cast(value), lane))
    }

    /// The sum of what each thread of the calling warp brings, for all of them; integers wrap. All of its threads must call it together.
    #[inline(always)]
    pub fn sum_warp<T: Number>(&self, value: T) -> T {
        reduce::warp(*self.block, value, &T::plus)
    }

    /// The sum of what each of `count` threads side by side brings, for all of them; integers wrap. `count` is a power of two, of which
    /// [`lanes`](Self::lanes) is a multiple, the first of the threads is a multiple of it, and all threads of the warp must call it
    /// together. Where a warp has fewer threads than `count`, as on the CPU device, a thread's sum is what it brings.
    #[inline(always)]
    pub fn sum_of<T: Number>(&self, value: T, count: usize) -> T {
        reduce::lanes(*self.block, value, (count as u32).min(Threads::WARP), &T::plus)
    }

    /// The sum of what each thread of the calling block brings, for all of them; integers wrap. All of its threads must call it together.
    #[inline(always)]
    pub fn sum_block<T: Number>(&self, value: T) -> T {
        reduce::block(self.block, value, T::ZERO, &T::plus)
    }

    /// The sum of what each thread of the grid brings, for all of them; integers wrap. Of floating-point numbers the order in which
    /// they are added is fixed by the numbers of blocks and of threads, so a launch of the same size gives the same. A
    /// barrier, as [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn sum<T: Number>(&self, value: T) -> T {
        self.reduce::<T, false>(value, T::ZERO, T::plus)
    }

    /// As [`sum`](Self::sum), of the threads of all [`devices`](Self::devices): each gets the same.
    #[inline(always)]
    pub fn sum_devices<T: Number>(&self, value: T) -> T {
        self.reduce::<T, true>(value, T::ZERO, T::plus)
    }

    /// The greatest of what the threads of the grid bring, for all of them; a NaN counts only where all bring it. A
    /// barrier, as [`sync`](Self::sync) is.
    #[inline(always)]
    pub fn max<T: Number>(&self, value: T) -> T {
        self.reduce::<T, false>(value, T::LEAST, T::greater)
    }

    /// The least of what the threads of the grid bring, likewise.
    #[inline(always)]
    pub fn min<T: Number>(&self, value: T) -> T {
        self.reduce::<T, false>(value, T::GREATEST, T::lesser)
    }

    /// As [`max`](Self::max), of the threads of all [`devices`](Self::devices).
    #[inline(always)]
    pub fn max_devices<T: Number>(&self, value: T) -> T {
        self.reduce::<T, true>(value, T::LEAST, T::greater)
    }

    /// A barrier to which each block brings a value, that of its thread 0, and behind which `each` has been called for each of the blocks, with its
    /// index and what it has brought, by one thread of the calling block each. For words that all blocks need at once, this takes
    /// about half of what it takes to write them to a buffer, to [`sync`](Self::sync) and to read them: it orders nothing of what was
    /// written to other memory, but for the calling block's own.
    #[inline(always)]
    pub fn gather<T: Number>(&self, value: T, mut each: impl FnMut(usize, T)) {
        let at = self.progress.get().meeting();
        self.progress.set(at);
        let (threads, grid) = (*self.block, self.grid);
        if threads.blocks() == 1 {
            if threads.thread() == 0 {
                each(0, value);
            }
            return self.block.sync();
        }
        if self.block.is_first_warp() {
            let value = threads.broadcast(value.to_word());
            grid.come(threads, at, (Meeting::Barrier, value), false);
        }
        // A thread waits for the block of its own index, then for the one that is as many further on as there are threads.
        let mut of = threads.thread();
        let all = grid.meet(threads, (Meeting::Barrier, at), false, |_, word| {
            each(of as usize, T::from_word(word));
            of += threads.threads();
        });
        if let Err(why) = all {
            give_up(self.block, why);
        }
        self.block.sync();
    }

    /// A barrier, of the grid or `OF_DEVICES`, to which each block brings what its threads bring, taken together two by two; `nothing`
    /// changes nothing. What all blocks have brought, taken together: each block does so for itself, in the same order.
    #[inline(always)]
    fn reduce<T: Number, const OF_DEVICES: bool>(
        &self,
        value: T,
        nothing: T,
        both: impl Fn(T, T) -> T,
    ) -> T {
        let (block, [of_block, of_grid]) = (self.block, &self.block.memory().grid.sums);
        let keep = |kept, value| reduce::keep(*block, kept, value, block.is_lane_0());
        keep(of_block, reduce::warp(*block, value, &both));
        block.sync();
        let mut brings = nothing;
        if block.is_first_warp() {
            brings = reduce::warps(*block, of_block, block.warps(), nothing, &both);
        }
        let mut own = nothing;
        let each = |word| own = both(own, T::from_word(word));
        let (mut blocks, mut met) = (block.blocks(), None);
        if OF_DEVICES {
            blocks = self.of_devices().map_or(blocks, |all| all.blocks());
            met = self.meet_devices(brings.to_word(), each);
        } else {
            self.meet(brings.to_word(), each);
        }
        keep(of_grid, reduce::warp(*block, own, &both));
        block.sync();
        self.have_met(met);
        let have_met = blocks.div_ceil(Threads::WARP).min(block.warps());
        reduce::warps(*block, of_grid, have_met, nothing, &both)
    }

    /// All threads, behind a barrier of the block: the next barrier of the grid, where the block brings the value that its first warp has.
    /// Each thread waits for some of the blocks, and calls `each` with what each of those brings; a barrier of the block must follow.
    #[inline(always)]
    fn meet(&self, value: u64, mut each: impl FnMut(u64)) {
        let at = self.progress.get().meeting();
        self.progress.set(at);
        let (threads, grid) = (*self.block, self.grid);
        if threads.blocks() == 1 {
            if threads.thread() == 0 {
                each(value);
            }
            return;
        }
        if self.block.is_first_warp() {
            // No handler writes other memory than what it has asked for.
            let releases = self.shares_memory && self.block.memory().signals.uses_payload.get();
            grid.come(threads, at, (Meeting::Barrier, value), releases);
        }
        let all =
            grid.meet(threads, (Meeting::Barrier, at), self.shares_memory, |_, value| each(value));
        if let Err(why) = all {
            give_up(self.block, why);
        }
    }

    /// The same of the next barrier of all devices, at which the grid of a kernel on one device meets as it does elsewhere. Behind the
    /// barrier of the block that must follow, [`have_met`](Self::have_met) is told of the meeting.
    #[inline(always)]
    fn meet_devices(&self, value: u64, each: impl FnMut(u64)) -> Option<MeetingOfDevices> {
        let Some(all) = self.of_devices() else {
            self.meet(value, each);
            return None;
        };
        let (threads, grid, memory) = (*self.block, self.grid, self.block.memory());
        let at = self.progress.get();
        let meeting = all.next(at);
        if self.block.is_first_warp() {
            // No handler writes other memory than what it has asked for.
            let releases = self.shares_memory && memory.signals.uses_payload.get();
            all.come(threads, meeting, value, releases);
        }
        let is_ahead = |block| grid.has_come(threads, block, at);
        let lacks_device = || lacks_device(&memory.life);
        let met = all.meet(threads, meeting, self.shares_memory, (is_ahead, lacks_device), each);
        if let Err(why) = met {
            give_up(self.block, why);
        }
        Some(meeting)
    }

    /// All threads, behind the barrier of the block at which a meeting ends.
    #[inline(always)]
    fn have_met(&self, met: Option<MeetingOfDevices>) {
        if let (Some(met), Some(all), 0) = (met, self.of_devices(), self.block.thread()) {
            all.have_met(met);
        }
    }
}

/// The indices of `0..n` of one of so many blocks.
#[inline(always)]
fn share_of(blocks: usize, block: usize, n: usize) -> Range<usize> {
    let (each, more) = (n / blocks, n % blocks);
    let first = block * each + block.min(more);
    first..first + each + usize::from(block < more)
}

/// Whether the host says that a device is lost that has another grid of the kernel.
#[cold]
fn lacks_device(life: &Life) -> bool {
    let control = with_exposed_provenance::<ControlBlock>(life.control.get() as usize);
    // SAFETY: `run` stored the address of the control block, all atomics and padding, that its caller promised, before it called a
    // handler.
    unsafe { &(*control).host.lacks_device }.load(Relaxed) != 0
}

/// A warp of a block whose grid has not met: all threads of the block end at the next barrier. Block 0 tells the host.
#[cold]
pub(crate) fn give_up(block: ThreadBlock<'_>, why: Trouble) {
    let memory = block.memory();
    if Threads::WARP > 1 {
        if block.is_lane_0() && memory.grid.note_trouble(*block, why) {
            memory.life.panicked.set(true);
            // SAFETY: the thread is one of a block that runs a handler.
            unsafe { fell_out(block) };
            block.fence_block(); // `panicked` before what may send the others to a barrier
        }
        block.warp_sync();
    } else {
        memory.grid.note_trouble(*block, why);
        memory.grid.fall_out(*block); // a handler that catches what unwinds is not met any more
        block.unwind();
    }
}
