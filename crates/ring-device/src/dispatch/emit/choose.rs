//! What the first warp does while there is no stream: it looks for messages and obeys the host; messages that come inline it
//! handles by itself.

use super::alone::Taken;
use super::judge::Shown;
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
        // That the inputs are empty is found by a look that begins behind the command.
        let mut drains = self.agreed(self.flow().drains.get());
        watch.known = self.known(watch.is_narrow);
        let decision = loop {
            let this = self.optimization_barrier();
            if this.is_host_due(watch, active) {
                let decision = this.look_at_host();
                if decision != Decision::Continue {
                    break decision;
                }
                drains = this.agreed(this.flow().drains.get());
            }
            let look;
            if active && watch.is_narrow && !Self::TOGETHER {
                let seen = match this.look_until_shown(watch, drains) {
                    Ok(seen) => seen,
                    Err(Decision::Wait) => {
                        looks = 0;
                        continue;
                    }
                    Err(decision) => break decision,
                };
                look = seen.look;
                match this.judge(watch, seen) {
                    Shown::Nothing if !drains => continue,
                    Shown::Message => match this.take_alone(watch, look, Taken::ByLook) {
                        (Decision::Wait, _) => {
                            looks = 0;
                            continue;
                        }
                        (decision, _) => break decision,
                    },
                    Shown::Nothing | Shown::Other => {}
                }
            } else {
                look = this.begin_look(watch);
                this.note_look(watch);
            }
            if active {
                if this.is_lane_0() {
                    this.memory().telemetry.unseen.set(watch.unseen);
                }
                let found = this.end_look(watch, look);
                watch.known = this.known(watch.is_narrow);
                let decision = match found {
                    0 if drains => Decision::Obey,
                    0 => Decision::Wait,
                    CORRUPT => Decision::CorruptRing,
                    INLINE if Self::TOGETHER => this.take_together(watch, look),
                    INLINE => {
                        let (decision, was_taken) = this.take_alone(watch, look, Taken::ByEnds);
                        if was_taken && decision == Decision::Wait {
                            looks = 0;
                            continue;
                        }
                        decision
                    }
                    n => match this.room_for(watch, n, 0) {
                        None => Decision::CorruptRing,
                        Some(0) => Decision::Wait,
                        Some(n) => {
                            if watch.is_narrow {
                                // Before slots are read that the look vouches for, or written.
                                this.fence_links(watch);
                            }
                            this.begin_steps(watch, n);
                            Decision::Continue
                        }
                    },
                };
                if decision != Decision::Wait {
                    break decision;
                }
                if found != 0 {
                    this.note_stalls(watch); // or the message is on its way
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
