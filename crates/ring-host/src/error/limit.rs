//! What is asked of a device or of a launch, and what sets the limit.

/// What a device needs for ring kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// A driver that knows accesses of 16 bytes.
    Driver,
    /// Compute capability 7.0.
    ComputeCapability,
}

/// A kind of memory that a runtime has an arena of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArenaKind {
    /// Pinned memory of the host.
    Pinned,
    /// Pageable memory of the host.
    Host,
    /// Memory of the device.
    Device,
}

/// What limits the channels of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChannelLimit {
    /// The device's largest grid.
    Grid,
    /// What can be resident at once.
    Residency,
}

/// What limits the blocks of a kernel of scope [`Grid`](ring_device::Grid).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockLimit {
    /// The memory where the blocks meet.
    Grid,
    /// The device.
    Device,
    /// What can be resident at once.
    Residency,
}

/// What limits the threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadLimit {
    /// The device.
    Device,
    /// The kernel, on this device.
    Kernel,
}

/// What limits the doorbell lines of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WindowLimit {
    /// The most lines that a ring may have.
    Ring,
    /// The ring's capacity.
    Capacity,
}

/// What a thread block takes of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resource {
    /// Registers.
    Registers,
    /// Shared memory, in bytes.
    SharedMemory,
    /// Warps.
    Warps,
    /// Blocks.
    Blocks,
}

/// A budget of a launch: a field of [`Budgets`](crate::Budgets).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Budget {
    /// How long it may run.
    Time,
    /// How many looks and batches it may make.
    Iterations,
    /// How long it waits without a message.
    Idle,
}

/// Says each variant of a type in words.
macro_rules! words {
    ($($t:ident: $($variant:ident $words:expr),+;)+) => {$(
        impl std::fmt::Display for $t {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(match self { $($t::$variant => $words),+ })
            }
        }
    )+};
}
pub(crate) use words;

words! {
    Requirement:
        Driver "it needs driver 550 (CUDA 12.4) or newer",
        ComputeCapability "it needs compute capability 7.0 or newer";
    ArenaKind: Pinned "pinned", Host "host", Device "device";
    ChannelLimit: Grid "the device's largest grid", Residency "what can be resident at once";
    BlockLimit:
        Grid "the most that a grid may have", Device "the device's limit",
        Residency "what can be resident at once; fewer threads a block may let more blocks be";
    ThreadLimit: Device "the device's limit", Kernel "the kernel's limit on this device";
    WindowLimit:
        Ring "the most that a ring may have",
        Capacity "the ring's capacity; choose a larger one for a longer window";
    Resource:
        Registers "registers", SharedMemory "bytes of shared memory", Warps "warps",
        Blocks "blocks";
    Budget: Time "time", Iterations "iterations", Idle "idle";
}
