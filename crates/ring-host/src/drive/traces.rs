//! What the host's side of a channel notes of its messages, for a trace. It orders nothing, so it is no business of the model checker's.

use crate::drive::send_counts::Count;
use ring_shared::atomics::Atom;
use ring_shared::trace::{Record, TraceRing, bytes_of};
use std::ptr::NonNull;
use std::time::Instant;

/// What both halves of each channel have noted; nothing where no trace was asked for.
#[derive(Debug)]
pub(crate) struct Traces {
    /// The zero of all the host's times.
    epoch: Instant,
    channels: Box<[ChannelTraces]>,
}

#[derive(Debug)]
struct ChannelTraces {
    sent: HostTrace,
    received: HostTrace,
}

/// The trace ring of one half of a channel, which is its one writer.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct HostTrace {
    ring: TraceRing,
    /// Records so far.
    next: Count,
    /// No `Box`, which would say that nobody else has its address when it is moved.
    _memory: Vec<Atom>,
}

impl Traces {
    /// For so many channels, with so many records for each half; 0 for none.
    pub fn new(channels: u32, records: u32) -> Traces {
        let channels = if records == 0 { 0 } else { channels };
        let each =
            |_| ChannelTraces { sent: HostTrace::new(records), received: HostTrace::new(records) };
        Traces { epoch: Instant::now(), channels: (0..channels).map(each).collect() }
    }

    /// Nanoseconds since the zero of the host's times.
    #[inline]
    pub fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// The zero of the host's times.
    pub fn epoch(&self) -> Instant {
        self.epoch
    }

    /// What the sender of channel `channel` notes, if it notes something.
    #[inline]
    pub fn sent(&self, channel: u32) -> Option<&HostTrace> {
        Some(&self.channels.get(channel as usize)?.sent)
    }

    /// The same of the receiver.
    #[inline]
    pub fn received(&self, channel: u32) -> Option<&HostTrace> {
        Some(&self.channels.get(channel as usize)?.received)
    }

    /// Whether anything is noted.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.channels.is_empty()
    }
}

impl HostTrace {
    /// With room for so many records.
    pub fn new(records: u32) -> HostTrace {
        let memory: Vec<Atom> =
            (0..bytes_of(records) / size_of::<Atom>()).map(|_| Atom::new([0; 2])).collect();
        // SAFETY: it is that long, aligned and zero, is used as this only, and stays as long as the ring.
        let ring = unsafe { TraceRing::from_raw(NonNull::from(&memory[..]).cast(), records) };
        HostTrace { ring, next: Count::default(), _memory: memory }
    }

    /// Its writer: messages `index..index + n` went at `at` nanoseconds.
    #[inline]
    pub fn note(&self, index: u64, n: u64, at: u64) {
        let position = self.next.get() as u32;
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.ring.write(position, Record { index, n, at, ..Record::default() });
        self.next.add(1);
    }

    pub fn ring(&self) -> &TraceRing {
        &self.ring
    }
}
