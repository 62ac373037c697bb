//! How a request, and what a handler emits for it, lie in a block's memory.

use ring_shared::Message;

/// What a port is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortShape {
    /// Its name.
    pub name: &'static str,
    /// Most messages that a handler emits to it in one step, 1 to 255.
    pub most: u32,
    /// Bytes of a message.
    pub bytes: usize,
    /// Whether its messages have a key.
    pub has_key: bool,
    /// Atoms of a slot for its messages.
    pub(crate) atoms: usize,
    /// Atoms of a doorbell line for one; 0 if it does not fit one line.
    pub(crate) inline_atoms: usize,
}

impl PortShape {
    /// That of a port for messages `M`. Panics at compile time if `most` is not in 1..=255.
    #[doc(hidden)]
    #[track_caller]
    pub const fn of<M: Message>(name: &'static str, most: u32, has_key: bool) -> PortShape {
        assert!(most >= 1 && most <= 255, "a port takes 1 to 255 messages a step");
        let (atoms, inline_atoms) = (M::SLOT_ATOMS, line_atoms::<M>());
        PortShape { name, most, bytes: size_of::<M>(), has_key, atoms, inline_atoms }
    }

    /// Bytes of a slot for a message.
    pub const fn slot_bytes(&self) -> usize {
        16 * self.atoms
    }
}

/// Atoms of the one doorbell line of a link for a message `M`; 0 if it does not fit one line.
pub(crate) const fn line_atoms<M: Message>() -> usize {
    if M::FITS_INLINE && M::SPAN == 1 { M::INLINE_ATOMS } else { 0 }
}

/// Atom of a stage at which the messages of port `port` begin, or behind the last port end: behind the request.
const fn emissions_at(request: usize, ports: &[PortShape], port: usize) -> usize {
    let (mut at, mut p) = (request, 0);
    while p < port && p < ports.len() {
        at += ports[p].most as usize * ports[p].atoms;
        p += 1;
    }
    at
}

/// Atoms of a request and of what may be emitted for it.
pub(crate) const fn stage_atoms(request: usize, ports: &[PortShape]) -> usize {
    emissions_at(request, ports, ports.len())
}

/// Most messages that one request emits to a port.
pub(crate) const fn most_of_ports(ports: &[PortShape]) -> u32 {
    let (mut most, mut p) = (0, 0);
    while p < ports.len() {
        most = if ports[p].most > most { ports[p].most } else { most };
        p += 1;
    }
    most
}

/// How a request and what is emitted for it lie in a block's memory: the request; behind it room for as many messages of
/// each port as are declared; and how many of each there are.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    at: *mut u8,
}

impl Stages {
    pub(crate) const fn new(at: *mut u8) -> Stages {
        Stages { at }
    }

    /// Bytes from one stage to the next: an odd number of atoms, so that threads which read the same word of stages side by
    /// side use different banks of block-shared memory.
    pub(crate) const fn stride(request_atoms: usize, ports: &[PortShape]) -> usize {
        16 * ((stage_atoms(request_atoms, ports) + 1) | 1)
    }

    /// The same. Told that they begin at a multiple of 16, the compiler moves 16 bytes by one access of block-shared memory.
    #[inline(always)]
    pub(crate) fn aligned(self) -> Self {
        // SAFETY: stages are laid out so.
        unsafe { core::hint::assert_unchecked(self.at.addr().is_multiple_of(16)) };
        self
    }

    /// The `m`th stage.
    #[inline(always)]
    pub(crate) fn stage(self, stride: usize, m: u32) -> *mut u8 {
        self.at.wrapping_add(m as usize * stride)
    }

    /// Offset of message `k` of port `port` in a stage.
    #[inline(always)]
    pub(crate) const fn message(
        request_atoms: usize,
        ports: &[PortShape],
        port: usize,
        k: u32,
    ) -> usize {
        16 * (emissions_at(request_atoms, ports, port) + k as usize * ports[port].atoms)
    }

    /// Offset of the counts in a stage: a byte for each port.
    #[inline(always)]
    pub(crate) const fn counts(request_atoms: usize, ports: &[PortShape]) -> usize {
        16 * stage_atoms(request_atoms, ports)
    }
}
