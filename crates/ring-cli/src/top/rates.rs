//! Two samples, and what is shown of them: rates, and how long messages took between the two.

use super::sample::{Buckets, Channel, ChannelId, Kernel, KernelId, Link, LinkId, Memory, Sample};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is shown of the last interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// Of each kernel.
    pub kernels: Vec<OfKernel>,
    /// Of each channel.
    pub channels: Vec<OfChannel>,
    /// Of each link.
    pub links: Vec<OfLink>,
    /// Memory of runtimes, by device and by its name.
    pub memories: BTreeMap<(String, String), Memory>,
}

/// What is shown of a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfKernel {
    /// Which.
    pub id: KernelId,
    /// What the page says of it.
    pub now: Kernel,
    /// How long handlers ran, in the interval.
    pub handler: Times,
    /// How long messages waited before, in the interval.
    pub queueing: Times,
}

/// What is shown of a channel; `None` is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfChannel {
    /// Which.
    pub id: ChannelId,
    /// The state of its kernel.
    pub state: Option<String>,
    /// Messages handled a second.
    pub messages: Option<f64>,
    /// Bytes of requests and responses a second.
    pub bytes: Option<f64>,
    /// Requests that wait to be taken.
    pub waiting: Option<f64>,
    /// Responses that wait to be received.
    pub unread: Option<f64>,
    /// How often a second a sender found no room.
    pub stalls: Option<f64>,
    /// Messages refused and indices that could not be, since the launch.
    pub errors: Option<f64>,
}

/// What is shown of a link; `None` is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OfLink {
    /// Which.
    pub id: LinkId,
    /// Messages a second.
    pub messages: Option<f64>,
    /// Bytes a second.
    pub bytes: Option<f64>,
    /// Messages that wait to be taken.
    pub waiting: Option<f64>,
    /// How full the fullest ring is, from 0 to 1.
    pub fullest: Option<f64>,
    /// How often a second a channel waited for room.
    pub stalls: Option<f64>,
}

/// What is shown of `now`, and of what has changed since `before`, some time ago.
///
/// A counter that has gone back is of a program that began anew: no rate is known of that interval.
pub fn between(before: Option<(&Sample, Duration)>, now: &Sample) -> Rates {
    let kernel = |(id, now): (&KernelId, &Kernel)| {
        let before = before.and_then(|(before, _)| before.kernels.get(id));
        let times = |of: fn(&Kernel) -> &Buckets| {
            before.map_or(Times::default(), |before| Times::between(of(before), of(now)))
        };
        let (handler, queueing) =
            (times(|kernel| &kernel.handler), times(|kernel| &kernel.queueing));
        OfKernel { id: id.clone(), now: now.clone(), handler, queueing }
    };
    let channel = |(id, now_of): (&ChannelId, &Channel)| {
        let before = before.and_then(|(before, time)| Some((before.channels.get(id)?, time)));
        let state = now.kernels.get(&id.kernel).and_then(|kernel| kernel.state.clone());
        of_channel(id, state, before, now_of)
    };
    let link = |(id, now): (&LinkId, &Link)| {
        let rate = |of: fn(&Link) -> Option<f64>| {
            let (before, time) = before?;
            a_second(of(before.links.get(id)?)?, of(now)?, time)
        };
        OfLink {
            id: id.clone(),
            messages: rate(|link| link.messages),
            bytes: rate(|link| link.bytes),
            waiting: now.waiting,
            fullest: now.fullest,
            stalls: rate(|link| link.stalls),
        }
    };
    Rates {
        kernels: now.kernels.iter().map(kernel).collect(),
        channels: now.channels.iter().map(channel).collect(),
        links: now.links.iter().map(link).collect(),
        memories: now.memories.clone(),
    }
}

fn of_channel(
    id: &ChannelId,
    state: Option<String>,
    before: Option<(&Channel, Duration)>,
    now: &Channel,
) -> OfChannel {
    let rate = |of: fn(&Channel) -> Option<f64>| {
        let (before, time) = before?;
        a_second(of(before)?, of(now)?, time)
    };
    OfChannel {
        id: id.clone(),
        state,
        messages: rate(|channel| channel.handled),
        bytes: sum(rate(|channel| channel.request_bytes), rate(|channel| channel.response_bytes)),
        // What lies in links between kernels is in the inbox only; what the device has not seen yet, in the other only.
        waiting: [now.waiting, now.inbox].into_iter().flatten().reduce(f64::max),
        unread: now.unread,
        stalls: rate(|channel| channel.stalls),
        errors: sum(now.refused, now.index_errors),
    }
}

fn a_second(before: f64, now: f64, time: Duration) -> Option<f64> {
    let rate = (now - before) / time.as_secs_f64();
    (rate.is_finite() && rate >= 0.0).then_some(rate)
}

/// The sum of those that are known.
fn sum(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    [a, b].into_iter().flatten().reduce(|a, b| a + b)
}

/// Times in the buckets of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// The upper end of each bucket in seconds, and how many there are in it.
    pub buckets: Vec<(f64, f64)>,
}

impl Times {
    /// Those that came between two looks at a histogram; none if it began anew, or has other buckets.
    fn between(before: &Buckets, now: &Buckets) -> Times {
        let is_same = before.len() == now.len() && before.iter().zip(now).all(|(a, b)| a.0 == b.0);
        let (mut buckets, mut below) = (Vec::new(), 0.0);
        for (before, now) in before.iter().zip(now).filter(|_| is_same) {
            let up_to = now.1 - before.1;
            buckets.push((now.0, up_to - below));
            below = up_to;
        }
        let is_sound = buckets.iter().all(|(_, count)| *count >= 0.0);
        if is_sound { Times { buckets } } else { Times::default() }
    }

    /// How many there are.
    pub fn count(&self) -> f64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The time in seconds that this part of them did not exceed: an estimate, as if the times of a bucket lay evenly in it. Of
    /// those in the last bucket, which has no end, its beginning. `None` if there are none.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let (mut wanted, mut begin) = (self.count() * part, 0.0);
        let mut found = None;
        for (end, count) in self.buckets.iter().filter(|(end, _)| *end >= 0.0) {
            if *count > 0.0 {
                let is_endless = end.is_infinite();
                let inside = (wanted / count).clamp(0.0, 1.0);
                found = Some(if is_endless { begin } else { begin + (end - begin) * inside });
                if wanted <= *count {
                    break;
                }
            }
            wanted -= count;
            begin = *end;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn id(channel: u64) -> ChannelId {
        let kernel = KernelId { device: "cpu".into(), launch: Some(1), kernel: "echo".into() };
        ChannelId { kernel, channel }
    }

    fn sample(channels: &[(u64, Channel)], handler: &[(f64, f64)]) -> Sample {
        let channels = channels.iter().map(|(number, channel)| (id(*number), channel.clone()));
        let kernel =
            Kernel { state: Some("active".into()), handler: handler.to_vec(), ..Kernel::default() };
        let kernels = [(id(0).kernel, kernel)].into();
        Sample { kernels, channels: channels.collect(), ..Sample::default() }
    }

    fn handled(count: f64) -> Channel {
        Channel { handled: Some(count), ..Channel::default() }
    }

    #[test]
    fn rates_are_what_has_come_in_the_interval() {
        let before = Channel {
            handled: Some(100.0),
            request_bytes: Some(1000.0),
            response_bytes: Some(500.0),
            stalls: Some(3.0),
            ..Channel::default()
        };
        let now = Channel {
            handled: Some(600.0),
            request_bytes: Some(3000.0),
            response_bytes: Some(1500.0),
            stalls: Some(4.0),
            refused: Some(2.0),
            index_errors: Some(1.0),
            waiting: Some(5.0),
            inbox: Some(7.0),
            unread: Some(9.0),
        };
        let [before, now] = [before, now].map(|channel| sample(&[(0, channel)], &[]));
        let rates = between(Some((&before, 2 * SECOND)), &now);
        let [channel] = &rates.channels[..] else { panic!("{rates:?}") };
        assert_eq!(channel.state.as_deref(), Some("active"));
        assert_eq!((channel.messages, channel.bytes), (Some(250.0), Some(1500.0)));
        assert_eq!((channel.stalls, channel.errors), (Some(0.5), Some(3.0)));
        assert_eq!((channel.waiting, channel.unread), (Some(7.0), Some(9.0)));
    }

    #[test]
    fn no_rate_is_known_of_the_first_sample_nor_of_a_new_channel() {
        let now = sample(&[(0, handled(9.0)), (1, handled(9.0))], &[(1.0, 5.0)]);
        let rates = between(None, &now);
        assert_eq!(rates.channels[0].messages, None);
        assert_eq!(rates.kernels[0].handler, Times::default());
        let before = sample(&[(0, handled(4.0)), (7, handled(4.0))], &[]);
        let rates = between(Some((&before, SECOND)), &now);
        let messages: Vec<_> = rates.channels.iter().map(|channel| channel.messages).collect();
        assert_eq!(messages, [Some(5.0), None], "and none that is gone");
    }

    #[test]
    fn counters_that_go_back_give_no_rate() {
        let (before, now) = (sample(&[(0, handled(9e9))], &[]), sample(&[(0, handled(1.0))], &[]));
        assert_eq!(between(Some((&before, SECOND)), &now).channels[0].messages, None);
        // Nor does an interval of no length.
        let rates = between(Some((&now, Duration::ZERO)), &now);
        assert_eq!(rates.channels[0].messages, None);
    }

    #[test]
    fn histograms_are_of_the_interval() {
        let ends = [1e-6, 2e-6, 4e-6, f64::INFINITY];
        let of = |counts: [f64; 4]| {
            sample(&[], &ends.map(|end| end).into_iter().zip(counts).collect::<Vec<_>>())
        };
        let between_them = |before: &Sample, now: &Sample| {
            between(Some((before, SECOND)), now).kernels[0].handler.clone()
        };
        let (before, now) = (of([5.0, 6.0, 6.0, 6.0]), of([5.0, 16.0, 26.0, 26.0]));
        let times = between_them(&before, &now);
        assert_eq!(times.buckets, [(1e-6, 0.0), (2e-6, 10.0), (4e-6, 10.0), (f64::INFINITY, 0.0)]);
        assert_eq!(times.count(), 20.0);
        // Begun anew, also where there are more in all, and with other buckets.
        assert_eq!(between_them(&now, &before), Times::default());
        assert_eq!(between_them(&of([9.0; 4]), &of([1.0, 2.0, 30.0, 40.0])), Times::default());
        assert_eq!(between_them(&sample(&[], &[(1e-6, 1.0)]), &now), Times::default());
    }

    #[track_caller]
    fn is_near(found: Option<f64>, expected: f64) {
        let found = found.expect("there are times");
        assert!((found - expected).abs() <= expected * 1e-9, "{found} is not {expected}");
    }

    #[test]
    fn quantiles_of_known_distributions_are_found() {
        // A thousand that lie evenly from 0 to 8.
        let even = Times { buckets: vec![(1.0, 125.0), (2.0, 125.0), (4.0, 250.0), (8.0, 500.0)] };
        for part in [0.1, 0.125, 0.25, 0.5, 0.75, 0.99, 1.0] {
            is_near(even.quantile(part), 8.0 * part);
        }
        assert_eq!(even.quantile(0.0), Some(0.0));
        // All in one bucket, and in the one that has no end.
        let one = Times { buckets: vec![(1.0, 0.0), (2.0, 10.0), (4.0, 0.0)] };
        is_near(one.quantile(0.5), 1.5);
        is_near(one.quantile(1.0), 2.0);
        let endless = Times { buckets: vec![(1.0, 1.0), (2.0, 0.0), (f64::INFINITY, 9.0)] };
        is_near(endless.quantile(0.99), 2.0);
        is_near(endless.quantile(0.05), 0.5);
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Times::default().quantile(0.5), None);
        assert_eq!(Times { buckets: vec![(1.0, 0.0)] }.quantile(0.5), None);
    }
}
