//! Budgets: how long a launch may run, how often it may look, how long it may be idle. Each channel
//! keeps the time by itself. Channel 0 counts iterations and decides on idleness, and calls the other
//! channels to leave with it; they look for the call where they look for the host's command. Without
//! any idle time each channel leaves when it has nothing to do. No channel leaves a launch, for a budget,
//! before it has acted on what its first look showed.

use super::{Channel, verdict};
use crate::kernel::Kernel;
use crate::team::{Team, boot, flag};
use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::{Exit, HostLine, StatusLine, UNLIMITED};

/// Nanoseconds that another channel's clock may be ahead of what this one has just read: by more, it was
/// set back since.
const SKEW: u64 = 1_000_000_000;

/// The number of this launch, from 1.
#[inline(always)]
pub(super) fn launch(team: Team<'_>) -> u64 {
    team.memory().boot.word(boot::STATUS, offset_of!(StatusLine, left)).wrapping_add(1)
}

impl<K: Kernel> Channel<'_, K> {
    /// Whether one of the launch's budgets is limited.
    #[inline(always)]
    pub(super) fn is_limited(&self) -> bool {
        self.shared().flags.load(Relaxed) & flag::LIMITED != 0
    }

    /// Whether commands are looked at after every iteration.
    #[inline(always)]
    pub(super) fn is_eager(&self) -> bool {
        self.shared().flags.load(Relaxed) & flag::EAGER != 0
    }

    /// Thread 0, after a look of its warp or a window, `now`: `GO_ON`, or why the launch is to end.
    #[inline(always)]
    pub(super) fn spent(&self, now: u64, fruitless: bool, called: bool) -> u64 {
        let s = self.shared();
        let left = s.iterations.load(Relaxed).saturating_sub(1);
        s.iterations.store(left, Relaxed);
        if self.time_is_over(now) {
            Exit::TimeSpent as u64
        } else if left == 0 {
            Exit::IterationsSpent as u64
        } else if called || (fruitless && self.is_idle(now)) {
            Exit::Idle as u64
        } else {
            verdict::GO_ON
        }
    }

    /// Thread 0: whether the launch has run for its time; yes, if the clock was set back to before it
    /// began, since nobody knows then how long it has run.
    #[inline(always)]
    fn time_is_over(&self, now: u64) -> bool {
        let (began, time) = (self.shared().began.load(Relaxed), self.shared().time.load(Relaxed));
        time != UNLIMITED && now.wrapping_sub(began) >= time
    }

    /// Thread 0: whether the idle budget is spent.
    #[inline(always)]
    fn is_idle(&self, now: u64) -> bool {
        let s = self.shared();
        let idle = s.idle.load(Relaxed);
        if idle == 0 {
            return true; // each channel by itself
        }
        if self.team.channel() > 0 {
            return false;
        }
        if s.quiet.load(Relaxed) > now {
            // The other polling warp noted it meanwhile, or the clock was set back.
            s.quiet.store(now, Relaxed);
        }
        let spent = || now - s.quiet.load(Relaxed).min(now) >= s.allowed.load(Relaxed);
        if !spent() {
            return false;
        }
        let busy = self.others_busy();
        // A time that is far ahead is from before the clock was set back.
        if busy >= s.began.load(Relaxed) && (busy == u64::MAX || busy < now.saturating_add(SKEW)) {
            s.quiet.store(busy.min(now).max(s.quiet.load(Relaxed)), Relaxed);
            s.allowed.store(idle, Relaxed);
        }
        spent()
    }

    /// When one of the other channels last had a message; `u64::MAX` if one has now.
    #[inline(always)]
    fn others_busy(&self) -> u64 {
        let channels = self.team.memory().boot.half(boot::HOST, offset_of!(HostLine, channels));
        let busy = |channel: u32| {
            let channel = channel.min(channels - 1) as usize;
            // SAFETY: `channel` is one of those whose blocks `run`'s caller promised.
            unsafe { &*self.blocks().wrapping_add(channel) }.status.busy.load(Relaxed)
        };
        let (mut channel, mut latest) = (1, 0);
        while channel < channels {
            // Four reads of the bus at a time.
            let [a, b, c, d] =
                [busy(channel), busy(channel + 1), busy(channel + 2), busy(channel + 3)];
            latest = latest.max(a.max(b)).max(c.max(d));
            channel += 4;
        }
        latest
    }

    /// Whether channel 0 is told by this channel when it has messages.
    #[inline(always)]
    fn tells(&self) -> bool {
        self.team.channel() > 0 && !matches!(self.shared().idle.load(Relaxed), 0 | UNLIMITED)
    }

    /// One thread, before a message is handled.
    #[inline(always)]
    pub(super) fn note_work(&self) {
        if self.tells() {
            self.block().status.busy.store(u64::MAX, Relaxed);
        }
    }

    /// One thread, after a message was handled, `now`.
    #[inline(always)]
    pub(super) fn note_rest(&self, now: u64) {
        if self.is_limited() {
            let s = self.shared();
            s.quiet.store(now, Relaxed);
            s.allowed.store(s.idle.load(Relaxed), Relaxed);
            if self.tells() {
                self.block().status.busy.store(now, Relaxed);
            }
        }
    }

    /// Channel 0's status line, if this channel is to look there for channel 0's call.
    #[inline(always)]
    pub(super) fn caller(&self) -> Option<&StatusLine> {
        // SAFETY: channel 0's block, which `run`'s caller promised.
        let first = unsafe { &(*self.blocks()).status };
        (self.is_limited() && self.team.channel() > 0).then_some(first)
    }

    /// Whether channel 0 has called the others to leave this launch.
    #[inline(always)]
    pub(super) fn called(&self) -> bool {
        let number = self.caller().map(|first| first.leave.load(Relaxed));
        number.is_some_and(|number| number == launch(self.team))
    }

    /// Thread 0, when it leaves: calls the other channels, if it is channel 0 and they would not know.
    #[inline(always)]
    pub(super) fn call_others(&self, why: Exit) {
        let alone = why == Exit::Idle && self.shared().idle.load(Relaxed) == 0;
        if self.team.channel() == 0 && why != Exit::Asked && !alone {
            self.block().status.leave.store(launch(self.team), Relaxed);
        }
    }
}
