//! How many messages have gone through each end of a ring, and how often one had no room, as the host is told.

use crate::block::{Cooperate, Threads};
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use core::ptr::with_exposed_provenance;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::Link;

impl<K: Kernel> Channel<'_, K> {
    /// The first warp: tells the host how many messages it has taken from each input and sent to each output, and how often it waited for
    /// room there.
    #[inline(always)]
    pub fn report_links(&self) {
        if cfg!(loom) {
            return; // it orders nothing, nobody on the device reads it, and a model would have many more executions
        }
        self.warp_sync(); // each lane has done with the ends that belong to it
        let (inputs, outputs) = (self.layout().inputs, self.layout().outputs);
        let table = self.flow().links.get() as usize;
        let mut k = self.lane();
        while k < inputs + outputs {
            // SAFETY: `open_links` has found the table there, with so many behind its head; cells only.
            let link: &Link =
                unsafe { &*with_exposed_provenance(table + Link::offset(k as usize)) };
            let next = if k < inputs {
                // SAFETY: an input; only this warp touches its end, and none of its lanes does now.
                unsafe { (*self.input(k)).source.next() }
            } else {
                // SAFETY: an output, likewise.
                let (sink, stalls) = unsafe {
                    (&(*self.output(k - inputs)).sink, (*self.output(k - inputs)).stalls)
                };
                link.stalls.store(stalls.count, Relaxed);
                sink.next()
            };
            link.next.store(next, Relaxed);
            k += Threads::WARP;
        }
        self.warp_sync();
    }
}
