//! The device's clock as the host's: what the order of a message's times proves.
//!
//! A message is handled after it was sent, and received after it was handled. Each message so bounds by how much the host's clock is ahead
//! of the device's from both sides. The bounds of all messages are kept, the older they are the looser, since the clocks drift; the offset
//! lies in the middle of them, and half their distance is how far it may be off.

use crate::device::Ticks;
use crate::kernel::core::KernelCore;
use ring_shared::atomics::Ordering::Relaxed;
use ring_shared::trace::Record;

/// Clocks drift apart by less than one part in so many: on an H200 machine it was 7 in a million, and hosts correct their clocks by at most
/// 500 in a million.
const DRIFT: i64 = 1000;

/// The steps of a device's clock, in nanoseconds: an H200's goes by 32.
const STEP: i64 = 32;

/// A device's ticks as nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    rate: f64,
    /// Whether the rate is always the same.
    is_steady: bool,
}

impl Measured {
    /// Where ticks are nanoseconds.
    pub const TIME: Measured = Measured { rate: 1.0, is_steady: true };

    /// By the device's nominal clock, or by the kernel's heartbeats once they lie 100 ms apart from the first, which is kept.
    pub fn of(first: &mut Option<[u64; 2]>, core: &KernelCore) -> Measured {
        const APART: u64 = 100_000_000;
        let ticks = core.device.ticks();
        if ticks == Ticks::Time {
            return Measured::TIME;
        }
        let status = &core.device.region().channel(0).status;
        let beat = [status.heartbeat.load(Relaxed), status.ticks.load(Relaxed)];
        let [time, count] = *first.get_or_insert(beat);
        let (time, count) = (beat[0].wrapping_sub(time), beat[1].wrapping_sub(count));
        let (measured, nominal) = (time as f64 / count as f64, ticks.nanoseconds());
        let is_measured =
            (APART..u64::MAX / 2).contains(&time) && (0.25..4.0).contains(&(measured / nominal));
        Measured { rate: if is_measured { measured } else { nominal }, is_steady: false }
    }

    /// How long so many ticks are.
    pub fn long(&self, ticks: f64) -> i64 {
        (ticks * self.rate) as i64
    }

    /// By how much so long a time may be wrong that was measured in ticks, since their rate changes meanwhile.
    pub fn off(&self, time: i64) -> i64 {
        if self.is_steady { 0 } else { time / 64 }
    }
}

/// The device's clock as the host's.
#[derive(Debug)]
pub(crate) struct DeviceClock {
    /// By how many nanoseconds the host's clock is ahead at the device's time `at`: at least, and at most, or what an `i64` can be.
    bounds: [i64; 2],
    at: i64,
    /// The clocks drift apart by less than one part in so many.
    drift: i64,
    resets: u64,
}

/// Bounds where nothing was proved.
const ANY: [i64; 2] = [i64::MIN, i64::MAX];

/// When messages were handled: times of a device, each in nanoseconds, and by how much it may be early or late beside another of the
/// device's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handled {
    pub unseen: (i64, i64),
    pub began: (i64, i64),
    pub ended: (i64, i64),
}

impl Handled {
    /// What a device's record says.
    pub fn of(record: &Record, ticks: Measured) -> Handled {
        let at = |ago: f64| {
            let ago = ticks.long(ago);
            ((record.at as i64).wrapping_sub(ago), ticks.off(ago))
        };
        let [ended, took, waited] = [record.ago, record.took, record.waited].map(f64::from);
        Handled { unseen: at(ended + took + waited), began: at(ended + took), ended: at(ended) }
    }
}

/// The same by the host's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTimes {
    pub unseen: i64,
    pub began: i64,
    pub ended: i64,
    /// How far the last two may be off, at most.
    pub error: i64,
}

/// Whether an offset can have such bounds.
fn can_be([low, high]: [i64; 2]) -> bool {
    low <= high
}

impl DeviceClock {
    /// That of a device that counts such ticks. Where they are its time, that is the host's clock, from another zero.
    pub fn of(ticks: Ticks) -> DeviceClock {
        let drift = if ticks == Ticks::Time { i64::MAX } else { DRIFT };
        DeviceClock { bounds: ANY, at: 0, drift, resets: 0 }
    }

    /// What a message proves that was accepted, as the host says, before it was handled, and received after that.
    pub fn learn(&mut self, accepted: Option<i64>, handled: Handled, received: i64) {
        let least = accepted.map_or(i64::MIN, |accepted| at_least(accepted, handled.began));
        self.prove([least, at_most(handled.ended, received)], handled.ended.0);
    }

    /// What messages prove that were accepted, as the host says, before they were handled.
    pub fn learn_sent(&mut self, handled: Handled, accepted: i64) {
        self.prove([at_least(accepted, handled.began), i64::MAX], handled.began.0);
    }

    /// What messages prove that were received after they were emitted.
    pub fn learn_received(&mut self, handled: Handled, received: i64) {
        self.prove([i64::MIN, at_most(handled.ended, received)], handled.ended.0);
    }

    /// What messages prove for the clocks of two devices that were emitted at one of them before they were handled at the other.
    pub fn learn_link(
        from: &mut DeviceClock,
        emitted: Handled,
        to: &mut DeviceClock,
        taken: Handled,
    ) {
        let ((ended, late), (began, early)) = (emitted.ended, taken.began);
        // The clock of `to` is ahead of that of `from` by so much at most.
        let ahead = began.wrapping_sub(ended).saturating_add(late + early + STEP);
        let ([least, _], [_, most]) = (from.bounds_at(ended), to.bounds_at(began));
        if most != i64::MAX {
            from.prove([i64::MIN, most.saturating_add(ahead)], ended);
        }
        if least != i64::MIN {
            to.prove([least.saturating_sub(ahead), i64::MAX], began);
        }
    }

    /// At the device's time `time` the host's clock is ahead by so much, at least and at most.
    fn prove(&mut self, own: [i64; 2], time: i64) {
        let narrowed = |[low, high]: [i64; 2], by: [i64; 2]| [low.max(by[0]), high.min(by[1])];
        let proved = narrowed(self.bounds_at(time), own);
        if !can_be(proved) {
            self.resets += 1;
            (self.bounds, self.at) = (if can_be(own) { own } else { ANY }, time);
        } else if self.bounds != ANY && time < self.at {
            // It is older than the newest: what it proves is carried to there.
            self.bounds = narrowed(
                self.bounds,
                loosened(proved, self.at.wrapping_sub(time) / self.drift + 1),
            );
        } else {
            (self.bounds, self.at) = (proved, time);
        }
    }

    /// Time `time` of the device by the host's clock, and how far it may be off; once messages have bounded that from both sides.
    pub fn map(&self, time: i64) -> Option<(i64, i64)> {
        let [low, high] = self.bounds_at(time);
        if low == i64::MIN || high == i64::MAX {
            return None;
        }
        let half = high.wrapping_sub(low) / 2;
        Some((time.wrapping_add(low).wrapping_add(half), half + 1 + STEP))
    }

    /// When messages were handled by the host's clock, likewise.
    pub fn times(&self, handled: &Handled) -> Option<HostTimes> {
        let map = |(at, off)| self.map(at).map(|(time, error)| (time, error + off));
        let (unseen, _) = map(handled.unseen)?;
        let ((began, early), (ended, late)) = (map(handled.began)?, map(handled.ended)?);
        Some(HostTimes { unseen, began, ended, error: early.max(late) })
    }

    /// How often it began anew, since messages contradicted each other.
    pub fn resets(&self) -> u64 {
        self.resets
    }

    fn bounds_at(&self, time: i64) -> [i64; 2] {
        let apart = i64::try_from(time.abs_diff(self.at)).unwrap_or(i64::MAX);
        loosened(self.bounds, apart / self.drift)
    }
}

/// By how much the host's clock is ahead at least, since messages were accepted before their handler began: both times are those of the
/// step that had begun.
fn at_least(accepted: i64, (began, early): (i64, i64)) -> i64 {
    accepted.wrapping_sub(began).saturating_sub(early + STEP)
}

/// By how much it is ahead at most, since messages were received after their handler ended.
fn at_most((ended, late): (i64, i64), received: i64) -> i64 {
    received.wrapping_sub(ended).saturating_add(late)
}

/// Bounds as so much drift leaves them; those that are not there stay so.
fn loosened([low, high]: [i64; 2], drift: i64) -> [i64; 2] {
    [low.saturating_sub(drift), high.saturating_add(drift)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: Ticks = Ticks::Clock { khz: 1_000_000 };

    /// Messages of two clocks that drift, at pseudo-random moments: true times, and those of the device.
    fn run(drift: f64, offset: i64, n: u32) -> (DeviceClock, i64) {
        let mut clock = DeviceClock::of(CLOCK);
        let (mut now, mut dice, mut widest) = (1_000_000i64, 12345u64, 0);
        let mut roll = |most: u64| {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            (dice % most) as i64
        };
        for k in 0..n {
            let pause = if k % 1000 == 999 { 50_000_000 } else { 2_000 };
            let accepted = now + roll(pause);
            let began = accepted + 500 + roll(3000);
            let ended = began + 20 + roll(200);
            let received = ended + 500 + roll(3000);
            let device = |time: i64| ((time as f64 * (1.0 + drift)) as i64 + offset) / STEP * STEP;
            let handled =
                Handled { unseen: (0, 0), began: (device(began), 0), ended: (device(ended), 0) };
            clock.learn(Some(accepted), handled, received);
            for (device, truth) in [(device(began), began), (device(ended), ended)] {
                let (mapped, error) = clock.map(device).unwrap();
                assert!((mapped - truth).abs() <= error, "{k}: {mapped} for {truth}, {error}");
                assert!(mapped + error >= accepted && mapped - error <= received);
                widest = widest.max(error);
            }
            now = received;
        }
        (clock, widest)
    }

    #[test]
    fn the_error_is_held_while_clocks_drift() {
        for drift in [0.0, 7e-6, -7e-6, 5e-4, -5e-4] {
            for offset in [0, 1 << 60, -(1 << 60)] {
                let (clock, widest) = run(drift, offset, 20_000);
                assert_eq!(clock.resets(), 0, "{drift} {offset}");
                assert!(widest < 4_000, "{widest}: half a round trip at most");
            }
        }
    }

    #[test]
    fn clocks_that_drift_too_fast_or_jump_begin_anew_and_are_told() {
        let mut clock = DeviceClock::of(CLOCK);
        assert_eq!(clock.map(5), None);
        let at = |time| Handled { unseen: (0, 0), began: (time, 0), ended: (time + 10, 0) };
        clock.learn(Some(1000), at(500), 2000);
        assert_eq!(clock.resets(), 0);
        clock.learn(Some(101_000), at(600), 102_000); // 100 us passed there, 100 ns here
        assert_eq!(clock.resets(), 1);
        let (mapped, error) = clock.map(600).unwrap();
        assert!((mapped - 101_500).abs() <= error);
        clock.learn(Some(200_000), at(700), 150_000); // received before it was sent
        assert_eq!((clock.resets(), clock.map(700)), (2, None));
    }

    #[test]
    fn without_a_beginning_nothing_is_known_and_old_messages_teach_too() {
        let mut clock = DeviceClock::of(CLOCK);
        let at = |time| Handled { unseen: (0, 0), began: (time, 0), ended: (time, 0) };
        clock.learn(None, at(500), 2000);
        assert_eq!(clock.map(500), None);
        clock.learn(Some(10_000), at(9_000), 20_000);
        let (_, wide) = clock.map(9_000).unwrap();
        clock.learn(Some(8_000), at(7_000), 8_200);
        let (mapped, narrow) = clock.map(9_000).unwrap();
        assert!(narrow < wide / 2, "{narrow} {wide}");
        assert!((10_000..10_200).contains(&mapped), "{mapped}");
    }

    /// The host sends to one device, which sends to another one, and that to the host: each has a clock of its own, which drifts.
    #[test]
    fn clocks_of_devices_bound_each_other_and_the_error_is_held() {
        let offsets = [123_456_789i64, -(1 << 50)];
        for drift in [0.0, 5e-4, -5e-4] {
            let mut clocks = [DeviceClock::of(CLOCK), DeviceClock::of(CLOCK)];
            let (mut now, mut widest) = (1_000_000i64, 0);
            for k in 0..5000 {
                let shown = |device: usize, time: i64| {
                    let rate = 1.0 + if device == 0 { drift } else { -drift };
                    ((time as f64 * rate) as i64 + offsets[device]) / STEP * STEP
                };
                let accepted = now + k % 700;
                let times = [accepted + 900, accepted + 1500 + k % 300];
                let handled = [0, 1].map(|device| {
                    let (began, ended) = (times[device], times[device] + 50);
                    let of = |time| (shown(device, time), 0);
                    Handled { unseen: (0, 0), began: of(began), ended: of(ended) }
                });
                let received = times[1] + 50 + 800;
                let [first, second] = &mut clocks;
                first.learn_sent(handled[0], accepted);
                second.learn_received(handled[1], received);
                DeviceClock::learn_link(first, handled[0], second, handled[1]);
                for device in [0, 1] {
                    let (mapped, error) = clocks[device].map(handled[device].began.0).unwrap();
                    let off = (mapped - times[device]).abs();
                    assert!(off <= error, "{k} {device}: off by {off}, {error} told");
                    widest = widest.max(error);
                }
                now = received;
            }
            assert!(widest < 3_000, "{widest}: half of the way at most");
            assert_eq!(clocks.map(|clock| clock.resets()), [0, 0]);
        }
    }

    #[test]
    fn where_ticks_are_time_nothing_that_was_proved_grows_old() {
        let second = 1_000_000_000;
        for (ticks, widest) in [(Ticks::Time, 100), (CLOCK, i64::MAX)] {
            let mut clock = DeviceClock::of(ticks);
            for (sent, took) in [(1_000, 50), (second, 9_000), (2 * second, 20_000)] {
                let at = Handled { unseen: (0, 0), began: (sent, 0), ended: (sent + 10, 0) };
                clock.learn(Some(sent), at, sent + took);
            }
            let (_, error) = clock.map(2 * second).unwrap();
            assert!(error < widest, "{error}");
            assert_eq!(error < 100, ticks == Ticks::Time, "{error}");
        }
    }

    #[test]
    fn messages_that_only_come_in_and_others_that_only_go_out_bound_it_together() {
        let at = |time| Handled { unseen: (0, 0), began: (time, 0), ended: (time + 10, 0) };
        for sent_first in [true, false] {
            let mut clock = DeviceClock::of(CLOCK);
            for sends in [sent_first, !sent_first] {
                assert_eq!(clock.map(500), None);
                match sends {
                    true => clock.learn_sent(at(500), 10_000), // 9,500 ahead at least
                    false => clock.learn_received(at(600), 10_310), // and 9,700 at most
                }
            }
            let (mapped, error) = clock.map(500).unwrap();
            assert!((10_050..10_130).contains(&mapped) && error < 200, "{mapped} {error}");
            assert_eq!(clock.resets(), 0);
        }
    }
}
