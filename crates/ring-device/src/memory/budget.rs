//! Budgets: how long a launch may run, how often it may look, how long it may be idle. Each channel
//! keeps the time by itself. Channel 0 counts iterations and decides on idleness, and calls the other
//! channels to leave with it; they look for the call where they look for the host's command. Without
//! any idle time each channel leaves when it has nothing to do. No channel leaves a launch, for a budget,
//! before it has acted on what its first look showed.

use super::signals::Decision;
use crate::block::cell::Cell;
use core::sync::atomic::Ordering::Relaxed;
use ring_shared::layout::{ChannelBlock, Exit, StatusLine, UNLIMITED};

/// Nanoseconds that another channel's clock may be ahead of what this one has just read: by more, it was
/// set back since.
const SKEW: u64 = 1_000_000_000;

/// Nanoseconds that a launch without any message yet may be idle, if the idle budget is longer: a
/// launch that was queued behind another one usually finds that nothing is left to do.
const GRACE: u64 = 20_000;

/// What a channel that handles a message says in place of the time of its last one: no clock shows it.
pub(crate) const BUSY: u64 = u64::MAX;

/// What this launch may spend, and has. Set by thread 0; `idle_since`, `idle_limit` and `batch_limit` also by a
/// polling warp that answers by itself.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Budget {
    /// One of the budgets is limited.
    limited: Cell<bool>,
    /// Commands are looked at after every iteration.
    eager: Cell<bool>,
    /// When this launch began, in nanoseconds.
    began: Cell<u64>,
    /// How long it may run.
    time: Cell<u64>,
    /// Looks and windows that it may still make.
    iterations: Cell<u64>,
    /// The idle budget.
    idle: Cell<u64>,
    /// Since when there was no message, as far as this channel knows.
    pub(super) idle_since: Cell<u64>,
    /// How long that may be: less than `idle` before the first message.
    idle_limit: Cell<u64>,
    /// Most messages of the next window.
    pub batch_limit: Cell<u64>,
    /// The least and the most that `batch_limit` can be.
    floor: Cell<u64>,
    ceiling: Cell<u64>,
}

/// What the configuration says of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Nanoseconds that it may run.
    pub time: u64,
    /// Looks and batches.
    pub iterations: u64,
    /// Nanoseconds without a message.
    pub idle: u64,
    /// Whether commands are looked at after every iteration.
    pub eager: bool,
    /// The fewest and the most messages of an iteration.
    pub messages: (u64, u64),
}

/// The channels of a kernel, as one of them sees the others.
#[derive(Clone, Copy)]
pub(crate) struct Channels<'a> {
    /// All of them, side by side.
    pub blocks: &'a [ChannelBlock],
    /// This one.
    pub own: u32,
}

impl Budget {
    /// Begins a launch of channel `channel`.
    #[inline(always)]
    pub fn begin(&self, began: u64, channel: u32, limits: Limits) {
        let Limits { time, iterations, idle, .. } = limits;
        self.limited.set(time & iterations & idle != UNLIMITED);
        self.eager.set(limits.eager);
        self.began.set(began);
        self.time.set(time);
        // Channel 0 counts for all.
        self.iterations.set(if channel == 0 { iterations } else { UNLIMITED });
        self.idle.set(idle);
        self.idle_since.set(began);
        // Without a time budget nobody queues launches: this one is to stay.
        let stays = idle == UNLIMITED || time == UNLIMITED;
        self.idle_limit.set(if stays { idle } else { idle.min(GRACE) });
        let (floor, ceiling) = limits.messages;
        self.batch_limit.set(floor);
        self.floor.set(floor);
        self.ceiling.set(ceiling);
    }

    /// Whether one of the launch's budgets is limited.
    #[inline(always)]
    pub fn is_limited(&self) -> bool {
        self.limited.get()
    }

    /// Whether commands are looked at after every iteration.
    #[inline(always)]
    pub fn is_eager(&self) -> bool {
        self.eager.get()
    }

    /// Thread 0, after a look of its warp or a window, `now`: whether to continue, or why the launch ends.
    #[inline(always)]
    pub fn spend<'a>(
        &self,
        now: u64,
        fruitless: bool,
        called: bool,
        channels: impl Fn() -> Channels<'a>,
    ) -> Decision {
        let left = self.iterations.get().saturating_sub(1);
        self.iterations.set(left);
        if self.time_is_over(now) {
            Decision::TimeSpent
        } else if left == 0 {
            Decision::IterationsSpent
        } else if called || (fruitless && self.is_idle(now, channels())) {
            Decision::Idle
        } else {
            Decision::Continue
        }
    }

    /// Whether the launch has run for its time; yes, if the clock was set back to before it began, since nobody
    /// knows then how long it has run.
    #[inline(always)]
    fn time_is_over(&self, now: u64) -> bool {
        let (began, time) = (self.began.get(), self.time.get());
        time != UNLIMITED && now.wrapping_sub(began) >= time
    }

    /// Whether the idle budget is spent.
    #[inline(always)]
    fn is_idle(&self, now: u64, channels: Channels<'_>) -> bool {
        let idle = self.idle.get();
        if idle == 0 {
            return true; // each channel by itself
        }
        if channels.own > 0 {
            return false;
        }
        if self.idle_since.get() > now {
            // The other polling warp noted it meanwhile, or the clock was set back.
            self.idle_since.set(now);
        }
        let spent = || now - self.idle_since.get().min(now) >= self.idle_limit.get();
        if !spent() {
            return false;
        }
        let busy = channels.busy();
        // A time that is far ahead is from before the clock was set back.
        if busy >= self.began.get() && (busy == BUSY || busy < now.saturating_add(SKEW)) {
            self.idle_since.set(busy.min(now).max(self.idle_since.get()));
            self.idle_limit.set(idle);
        }
        spent()
    }

    /// There is something to do, although nothing can be done now: the whole idle budget counts.
    #[inline(always)]
    pub fn expect_work(&self) {
        self.idle_limit.set(self.idle.get());
    }

    /// Whether channel 0 is to be told when channel `channel` has messages.
    #[inline(always)]
    pub fn is_told_of(&self, channel: u32) -> bool {
        channel > 0 && !matches!(self.idle.get(), 0 | UNLIMITED)
    }

    /// One thread, after a message was handled, `now`; whether a budget is limited.
    #[inline(always)]
    pub fn note_handled(&self, now: u64) -> bool {
        let limited = self.is_limited();
        if limited {
            self.idle_since.set(now);
            self.expect_work();
        }
        limited
    }

    /// One thread: the most messages of the next window, after one that left messages behind or did not.
    #[inline(always)]
    pub fn next_batch_limit(&self, left: bool) {
        let limit = self.batch_limit.get();
        let next = if left {
            (2 * limit).min(self.ceiling.get())
        } else {
            (limit / 2).max(self.floor.get())
        };
        self.batch_limit.set(next);
    }

    /// Thread 0, when it leaves: calls the other channels, if this is channel 0 and they would not know.
    #[inline(always)]
    pub fn call_others(&self, why: Exit, channel: u32, launch: u64, status: &StatusLine) {
        let alone = why == Exit::Idle && self.idle.get() == 0;
        if channel == 0 && why != Exit::Asked && !alone {
            status.call.store(launch, Relaxed);
        }
    }
}

impl Channels<'_> {
    /// When one of the channels but the first last had a message; `u64::MAX` if one has now.
    #[inline(always)]
    fn busy(&self) -> u64 {
        let n = self.blocks.len() as u32; // 32 bits: eight registers less for four addresses
        let last = n.wrapping_sub(1);
        let busy = |channel: u32| match self.blocks.get(channel.min(last) as usize) {
            Some(block) => block.status.busy.load(Relaxed),
            None => 0,
        };
        let (mut channel, mut latest) = (1, 0);
        while channel < n {
            // Four reads of the bus at a time.
            let [a, b, c, d] =
                [busy(channel), busy(channel + 1), busy(channel + 2), busy(channel + 3)];
            latest = latest.max(a.max(b)).max(c.max(d));
            channel += 4;
        }
        latest
    }
}
