//! What the first warp does while there is no stream: it looks for messages and obeys the host; messages that come inline it
//! handles by itself.

use super::look::{CORRUPT, INLINE, Watch};
use crate::block::Cooperate;
use crate::dispatch::channel::Channel;
use crate::kernel::Kernel;
use crate::memory::signals::Decision;

impl<K: Kernel> Channel<'_, K> {
    /// The first warp: finds what the block is to do next.
    #[inline(always)]
    pub(super) fn choose(&self, watch: &mut Watch<'_>) {
        let mut looks = 0u32;
        let active = self.agreed(self.memory().life.active.get());
        let decision = loop {
            let this = self.optimization_barrier();
            let (m, flow) = (this.memory(), this.flow());
            // That the inputs are empty is found by a look that begins behind the command.
            let drains = this.agreed(flow.drains.get());
            let look = this.begin_look(watch);
            if this.is_host_due(watch, active) {
                let decision = this.look_at_host();
                if decision != Decision::Continue {
                    break decision;
                }
            }
            if active {
                let unseen = m.telemetry.seen.get();
                let found = this.end_look(watch, look);
                if this.is_lane_0() {
                    m.telemetry.unseen.set(unseen);
                    m.telemetry.seen.set(this.ticks());
                }
                let decision = match found {
                    0 if drains => Decision::Obey,
                    0 => Decision::Wait,
                    CORRUPT => Decision::CorruptRing,
                    INLINE if Self::TOGETHER => this.take_together(watch, look),
                    INLINE => {
                        let (decision, was_taken) = this.take_alone(watch, look);
                        if was_taken && decision == Decision::Wait {
                            looks = 0;
                            continue;
                        }
                        decision
                    }
                    n => match this.room_for(watch, n) {
                        None => Decision::CorruptRing,
                        Some(0) => Decision::Wait,
                        Some(n) => {
                            if watch.is_narrow {
                                // Before slots are read that the look vouches for, or written.
                                this.fence_links(watch);
                            }
                            this.begin_steps(watch);
                            this.begin_step(watch, n);
                            Decision::Continue
                        }
                    },
                };
                if decision != Decision::Wait {
                    break decision;
                }
            }
            looks = looks.saturating_add(1);
            this.pause(looks, active);
        };
        if self.is_lane_0() {
            let flow = self.flow();
            if decision == Decision::Obey {
                flow.drains.set(false);
            }
            flow.decision.set(decision);
        }
        self.warp_sync();
    }
}
