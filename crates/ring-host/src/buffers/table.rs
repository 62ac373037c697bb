//! The table of buffers of a runtime, the memory of the buffers, and what becomes of those that were given back.

use super::copier::Copier;
use super::generation;
use super::kernels::{Kernels, Presence, Sent, hold};
use crate::deadline::{Deadline, Patience, wait};
use crate::device::Driver;
use crate::error::BufferError;
use crate::memory::arena::{Arena, Suballocation};
use crate::sync::{lock, unless_locked};
use ring_shared::layout::{BufferEntry, FROZEN, MAX_BUFFERS};
use std::any::Any;
use std::fmt::{self, Debug};
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Bytes of the table.
const TABLE: usize = MAX_BUFFERS * size_of::<BufferEntry>();

/// A table is a part of the runtime's device memory if so many bytes of that are free; else it has memory of its own.
const ROOM_FOR_TABLE: usize = 16 * TABLE;

/// Least bytes that are taken from the device when the runtime's arena has no room.
const MORE: usize = 64 << 20;

/// How long a copy is waited for that is under way when nobody uses the buffers any more.
const LAST_COPY: Duration = Duration::from_secs(1);

/// The memory of a buffer.
pub(super) enum BufferMemory {
    /// A part of an arena.
    Own(Suballocation),
    /// Somebody else's at that address, which this keeps.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    Lent { device: u64, _slice: Box<dyn Any + Send + Sync> },
}

impl BufferMemory {
    /// Where the device sees it.
    pub fn device(&self) -> u64 {
        match self {
            BufferMemory::Own(part) => part.device(),
            BufferMemory::Lent { device, .. } => *device,
        }
    }
}

impl Debug for BufferMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BufferMemory").field(&self.device()).finish()
    }
}

/// A buffer's entry and its memory. Whoever has it gives it back to the [`Buffers`] that it is of.
#[derive(Debug)]
pub(super) struct Taken {
    pub entry: u32,
    pub generation: u32,
    /// Of several buffers if it is lent from one device to another.
    pub memory: Arc<BufferMemory>,
}

/// A buffer that was given back.
#[derive(Debug)]
struct GivenBack {
    taken: Taken,
    /// Views of it are refused: its entry has no generation, and the copy had ended.
    is_refused: bool,
    /// What was sent before it was given back; where it is refused, before it was.
    sent: Vec<Sent>,
}

impl GivenBack {
    fn is_over(&self) -> bool {
        self.sent.iter().all(Sent::is_over)
    }
}

/// Entries that no buffer has.
#[derive(Debug, Default)]
struct Entries {
    free: Vec<u32>,
    /// From here on none was ever used.
    unused: u32,
}

impl Entries {
    fn take(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let entry = self.unused;
            self.unused += u32::from((entry as usize) < MAX_BUFFERS);
            (self.unused > entry).then_some(entry)
        })
    }
}

/// What the buffers of a runtime have in common. The runtime has it, each of its buffers, and the memory of each kernel that
/// may view them: none of their memory is freed before all of these are gone.
#[derive(Debug)]
pub(crate) struct Buffers(ManuallyDrop<Parts>);

#[derive(Debug)]
struct Parts {
    driver: Arc<dyn Driver>,
    /// The runtime's device memory.
    arena: Arc<Arena>,
    /// What was taken when that had no room.
    more: Mutex<Vec<Arc<Arena>>>,
    table: Suballocation,
    entries: Mutex<Entries>,
    kernels: Arc<Kernels>,
    given_back: Mutex<Vec<GivenBack>>,
    copier: Mutex<Copier>,
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let copier = lock(&self.0.copier);
        let look = || Ok::<_, ()>((!copier.is_running()).then_some(()));
        let is_over = wait(LAST_COPY.into(), Patience::Yield, look, || Ok(())) == Ok(Some(()));
        drop(copier);
        if is_over {
            // SAFETY: taken once, and nothing uses it after this: buffers and kernels are gone, and no copy is under way.
            drop(unsafe { ManuallyDrop::take(&mut self.0) });
        } else {
            let device = self.0.driver.label();
            tracing::warn!(
                device,
                "a copy of a buffer does not end; the memory of the runtime's buffers is leaked"
            );
        }
    }
}

impl Buffers {
    /// Makes a table without buffers, of a runtime with those arenas and kernels.
    pub fn new(
        driver: &Arc<dyn Driver>,
        (pinned, arena): (Option<&Arc<Arena>>, &Arc<Arena>),
        kernels: &Arc<Kernels>,
        patience: Patience,
        deadline: Deadline,
    ) -> Result<Arc<Buffers>, BufferError> {
        let lane = driver.copy_lane()?;
        let part = if arena.free() >= ROOM_FOR_TABLE { arena.alloc(TABLE).ok() } else { None };
        let table = match part {
            Some(table) => table,
            None => part_of_new(driver, TABLE, TABLE)?.1,
        };
        let address = table.device();
        let buffers = Arc::new(Buffers(ManuallyDrop::new(Parts {
            driver: Arc::clone(driver),
            arena: Arc::clone(arena),
            more: Mutex::default(),
            table,
            entries: Mutex::default(),
            kernels: Arc::clone(kernels),
            given_back: Mutex::default(),
            copier: Mutex::new(Copier::new(lane, pinned.cloned(), patience)),
        })));
        let mut copier = buffers.copier(deadline)?;
        let live = buffers.0.kernels.live_cores();
        let _holds = hold(&live, deadline)?;
        // SAFETY: all of the table, which no kernel knows yet, and which `Drop` frees when no copy is under way.
        unsafe { copier.zero(address, TABLE, deadline) }?;
        copier.give_up_staging(); // there may never be a buffer
        drop(copier);
        Ok(buffers)
    }

    /// Where the device sees the table.
    pub fn device(&self) -> u64 {
        self.0.table.device()
    }

    /// What a kernel's memory is to keep that may view buffers.
    pub fn presence(self: &Arc<Buffers>) -> Arc<dyn Debug + Send + Sync> {
        Arc::new(Presence { _used: Arc::clone(self) })
    }

    /// The copier, when nobody else has it.
    fn copier(&self, deadline: Deadline) -> Result<MutexGuard<'_, Copier>, BufferError> {
        let look = || Ok::<_, BufferError>(unless_locked(self.0.copier.try_lock()));
        let copier = wait(deadline, Patience::Yield, look, || Ok(()))?;
        copier.ok_or_else(|| BufferError::Timeout { bytes: 0, waited: deadline.waited() })
    }

    /// Where the device sees an entry.
    fn entry(&self, entry: u32) -> u64 {
        self.device() + u64::from(entry) * size_of::<BufferEntry>() as u64
    }

    /// Makes a buffer of `bytes` bytes, zeroed.
    pub(super) fn make(&self, bytes: usize, deadline: Deadline) -> Result<Taken, BufferError> {
        let zeroed = |copier: &mut Copier, at| {
            // SAFETY: the memory of the buffer that is made, whole words; it goes back to an arena only behind copies that
            // were begun before.
            unsafe { copier.zero(at, bytes, deadline) }
        };
        self.enter((bytes, 0), deadline, || self.own(bytes), zeroed)
    }

    /// Makes a buffer of those bytes, whole words, of which handlers get slices: nobody writes it any more.
    pub(super) fn make_frozen(
        &self,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Result<Taken, BufferError> {
        let written = |copier: &mut Copier, at| {
            // SAFETY: as in `make`.
            unsafe { copier.copy_in(at, bytes, deadline) }
        };
        self.enter((bytes.len(), FROZEN), deadline, || self.own(bytes.len()), written)
    }

    /// Memory for a buffer of `bytes` bytes.
    fn own(&self, bytes: usize) -> Result<Arc<BufferMemory>, BufferError> {
        Ok(Arc::new(BufferMemory::Own(self.alloc(bytes)?)))
    }

    /// Makes a buffer of memory that somebody lends, as it is.
    pub(super) fn lend(
        &self,
        memory: Arc<BufferMemory>,
        bytes: usize,
        deadline: Deadline,
    ) -> Result<Taken, BufferError> {
        self.enter((bytes, 0), deadline, || Ok(memory), |_, _| Ok(()))
    }

    /// Enters a buffer of so many bytes in the table, after it was made ready. `mark`: what stands beside its generation.
    fn enter(
        &self,
        (bytes, mark): (usize, u64),
        deadline: Deadline,
        memory: impl FnOnce() -> Result<Arc<BufferMemory>, BufferError>,
        ready: impl FnOnce(&mut Copier, u64) -> Result<(), BufferError>,
    ) -> Result<Taken, BufferError> {
        let mut copier = self.copier(deadline)?;
        self.reclaim_by(&mut copier, deadline)?;
        let entry = lock(&self.0.entries).take().ok_or(BufferError::TooMany)?;
        let memory = memory().inspect_err(|_| lock(&self.0.entries).free.push(entry))?;
        let taken = Taken { entry, generation: generation::next(), memory };
        let live = self.0.kernels.live_cores();
        let entered = hold(&live, deadline).and_then(|_holds| {
            let device = taken.memory.device();
            ready(&mut copier, device)?;
            let place = (device, bytes as u64);
            let generation = u64::from(taken.generation) | mark;
            // SAFETY: an entry of the table, which `Drop` frees when no copy is under way.
            unsafe { copier.write_entry(self.entry(entry), place, generation, deadline) }
        });
        match entered {
            Ok(()) => Ok(taken),
            Err(error) => {
                // A copy may still be under way. No message has named it.
                let given_back = GivenBack { taken, is_refused: false, sent: Vec::new() };
                lock(&self.0.given_back).push(given_back);
                Err(error)
            }
        }
    }

    /// Device memory for a buffer.
    fn alloc(&self, bytes: usize) -> Result<Suballocation, BufferError> {
        if let Ok(part) = self.0.arena.alloc(bytes) {
            return Ok(part);
        }
        let mut more = lock(&self.0.more);
        if let Some(part) = more.iter().find_map(|arena| arena.alloc(bytes).ok()) {
            return Ok(part);
        }
        let (arena, part) = part_of_new(&self.0.driver, bytes, MORE)?;
        more.push(arena);
        Ok(part)
    }

    /// Takes a buffer back, without a driver call. Its memory is used again when it is [reclaimed](Self::reclaim).
    pub(super) fn give_back(&self, taken: Taken) {
        let sent = self.0.kernels.sent();
        lock(&self.0.given_back).push(GivenBack { taken, is_refused: false, sent });
    }

    /// Reclaims what no kernel can use any more; how many buffers that were given back are left.
    pub(super) fn reclaim(&self, deadline: Deadline) -> Result<usize, BufferError> {
        self.reclaim_by(&mut *self.copier(deadline)?, deadline)?;
        Ok(lock(&self.0.given_back).len())
    }

    fn reclaim_by(&self, copier: &mut Copier, deadline: Deadline) -> Result<(), BufferError> {
        let mut list = std::mem::take(&mut *lock(&self.0.given_back));
        let refused = self.refuse(copier, &mut list, deadline);
        let is_free = |given: &mut GivenBack| given.is_refused && given.is_over();
        for given in list.extract_if(.., is_free) {
            drop(given.taken.memory);
            lock(&self.0.entries).free.push(given.taken.entry);
        }
        lock(&self.0.given_back).append(&mut list);
        refused
    }

    /// Takes the generations from the entries of buffers of whose requests all are over. A request that was sent since may
    /// have found one, and is waited for once more before the memory is used for something else.
    fn refuse(
        &self,
        copier: &mut Copier,
        list: &mut [GivenBack],
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        let mut named = list.iter_mut().filter(|given| !given.is_refused && given.is_over());
        let Some(first) = named.next() else { return Ok(()) };
        let live = self.0.kernels.live_cores();
        let _holds = hold(&live, deadline)?;
        for given in std::iter::once(first).chain(named) {
            let to = self.entry(given.taken.entry);
            // A handler that looks at the same moment may see the generation from before beside what is written here. So the
            // address stays, and is that of the buffer's memory, which is kept until the handler has answered; no bytes are in it.
            let place = (given.taken.memory.device(), 0);
            // SAFETY: an entry of the table, which `Drop` frees when no copy is under way.
            unsafe { copier.write_entry(to, place, 0, deadline) }?;
            (given.is_refused, given.sent) = (true, self.0.kernels.sent());
        }
        Ok(())
    }

    /// Copies to a buffer of this table.
    ///
    /// # Safety
    /// The buffer has so many bytes from `to` on, whole words. It is given back after this has returned.
    pub(super) unsafe fn upload(
        &self,
        to: u64,
        bytes: &[u8],
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        self.copy(deadline, |copier| {
            // SAFETY: the caller's promise: the memory goes back to an arena only behind this copy, since an entry loses its
            // generation before, by the same copier; handlers and copies write words only.
            unsafe { copier.copy_in(to, bytes, deadline) }
        })
    }

    /// Copies from a buffer of this table.
    ///
    /// # Safety
    /// As for [`upload`](Self::upload).
    pub(super) unsafe fn download(
        &self,
        from: u64,
        bytes: &mut [u8],
        deadline: Deadline,
    ) -> Result<(), BufferError> {
        // SAFETY: as for `upload`.
        self.copy(deadline, |copier| unsafe { copier.copy_out(from, bytes, deadline) })
    }

    /// Copies, after what can be reclaimed was; launches are held back meanwhile where they have to be.
    fn copy(
        &self,
        deadline: Deadline,
        copy: impl FnOnce(&mut Copier) -> Result<(), BufferError>,
    ) -> Result<(), BufferError> {
        let mut copier = self.copier(deadline)?;
        self.reclaim_by(&mut copier, deadline)?;
        let live = self.0.kernels.live_cores();
        let _holds = hold(&live, deadline)?;
        copy(&mut copier)
    }
}

/// A part of an arena that is taken from the device: of so many bytes, or more if the part needs more.
fn part_of_new(
    driver: &Arc<dyn Driver>,
    bytes: usize,
    least: usize,
) -> Result<(Arc<Arena>, Suballocation), BufferError> {
    let arena = Arena::with_room(driver, bytes, least);
    arena.map_err(|source| BufferError::Memory { bytes, source })
}
